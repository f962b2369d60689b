"""Figures and pages as text."""

import math
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npstream.report.figure import Band, Figure, Line, Points, ReferenceLine, Segments, decimate, log_ticks, svg, ticks
from npstream.report.page import PageSection, Table, page, text_table

SVG = "{http://www.w3.org/2000/svg}"
EVERY_LAYER = (
    Band(x=[0, 1, 2], low=[0.1, 0.2, 0.1], high=[0.3, 0.5, 0.4], label="range", colour=1),
    Line(x=[0, 1, 2], y=[0.2, 0.3, math.nan], label='a < b & "c"', dash=1),
    Points(x=[0.5, math.nan], y=[0.2, 0.1], label="seen", colour=2),
    Segments(strokes=[(0, 0, 1, 1), (1, 1, 2, 0)], label="contour", colour=3),
    ReferenceLine(y=0.25, label="target"),
    ReferenceLine(x=1.5),
)


def figure(**changes: object) -> Figure:
    settings: dict[str, object] = {"title": "T < 1", "x_label": "events", "y_label": "rate", "layers": EVERY_LAYER}
    return Figure(**(settings | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("logs", [(False, False), (True, False), (False, True), (True, True)])
def test_svg_is_well_formed_and_carries_its_texts(logs: tuple[bool, bool]) -> None:
    """Whatever the layers and scales, the figure parses as XML and shows title, labels and legend unharmed."""
    root = ElementTree.fromstring(svg(figure(x_log=logs[0], y_log=logs[1])))

    texts = {element.text for element in root.iter(f"{SVG}text")}
    assert {"T < 1", "events", "rate", "range", 'a < b & "c"', "seen", "contour", "target"} <= texts


def test_svg_reads_on_light_and_dark_pages() -> None:
    """The style sheet inside the figure has colours for a dark page too."""
    assert "prefers-color-scheme:dark" in svg(figure())


def test_line_breaks_at_non_finite_values() -> None:
    """A NaN in the middle starts a new stroke instead of a bridge over the gap."""
    drawn = svg(figure(layers=[Line(x=[0, 1, 2, 3, 4], y=[1, 2, math.nan, 2, 1])]))
    path = next(e for e in ElementTree.fromstring(drawn).iter(f"{SVG}path") if "npfig-line" in e.attrib["class"])

    assert path.attrib["d"].count("M") == 2


def test_figure_without_a_finite_value_is_refused() -> None:
    """Nothing to draw is an error that says so, not an empty picture."""
    with pytest.raises(ValueError, match="no finite value"):
        svg(figure(layers=[Line(x=[0.0], y=[math.nan])]))


@settings(deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_round_ascending_and_inside(low: float, width: float) -> None:
    """Between 2 and 8 evenly spaced ticks, none outside of the range by more than rounding."""
    found = ticks(low, low + width)

    assert 2 <= len(found) <= 8
    assert found == sorted(found)
    assert all(low - 1e-6 * width <= t <= low + width * (1 + 1e-6) for t in found)


def test_log_ticks_thin_out_over_wide_ranges() -> None:
    """A narrow range gets 1-2-5 steps, a wide one powers of ten."""
    assert log_ticks(1, 100) == [1, 2, 5, 10, 20, 50, 100]
    assert log_ticks(1, 1e5) == [1, 10, 100, 1000, 10_000, 100_000]


@settings(deadline=None)
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=400), st.integers(1, 20))
def test_decimation_keeps_ends_and_peaks(y: list[float], columns: int) -> None:
    """However few columns, the first, last, lowest and highest values survive, in order, within the bound."""
    x = [float(i) for i in range(len(y))]
    kept_x, kept_y = decimate(x, y, columns)

    assert (kept_y[0], kept_y[-1], min(kept_y), max(kept_y)) == (y[0], y[-1], min(y), max(y))
    assert kept_x == sorted(set(kept_x))
    assert all(y[int(i)] == value for i, value in zip(kept_x, kept_y, strict=True))
    assert len(kept_x) <= 4 * columns


def test_page_escapes_text_and_inlines_figures() -> None:
    """Text cannot become markup, figures stay markup, and nothing is fetched from elsewhere."""
    table = Table(header=["set", "rate"], rows=[["<b>", "0.1"]], caption="c & d")
    html = page("a < b", [PageSection(heading="h", text=["x > y"], tables=[table], figures=[svg(figure())])])

    assert "<h1>a &lt; b</h1>" in html
    assert "&lt;b&gt;" in html
    assert html.count("<svg") == html.count("</svg>") == 2
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")


def test_text_table_aligns_columns() -> None:
    """The first column is set left, the others right, under a rule."""
    assert text_table(["set", "fpr"], [["a", "1"], ["long", "0.25"]]) == (
        "set    fpr\n----------\na        1\nlong  0.25"
    )
