"""Small figures as SVG text: lines, bands, points and segments on one pair of axes.

Pure string building, no dependency. A figure carries its own style sheet, so it
reads on a light and on a dark page, inlined in HTML or as a file of its own.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

# Okabe and Ito's colour-blind safe set, (on a light page, on a dark page).
_COLOURS = (
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#f28e4b"),
    ("#009e73", "#2fc79b"),
    ("#b0578d", "#e09cc5"),
    ("#8a6d00", "#e6c229"),
    ("#555555", "#bbbbbb"),
)
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "1 2")
_CHAR_PX = 6.4  # width of an average character at 11 px, used to lay out the legend


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A polyline; x ascends, a non-finite y leaves a gap. `dash` picks one of six dash patterns, 0 is solid."""

    x: Sequence[float]
    y: Sequence[float]
    label: str = ""
    colour: int = 0
    dash: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The area between two curves over the same x, drawn pale."""

    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    label: str = ""
    colour: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Dots."""

    x: Sequence[float]
    y: Sequence[float]
    label: str = ""
    colour: int = 0
    radius: float = 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """Loose strokes (x0, y0, x1, y1), as a contour has them."""

    strokes: Sequence[tuple[float, float, float, float]]
    label: str = ""
    colour: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceLine:
    """A reference across the whole plot: horizontal at `y`, or vertical at `x`."""

    y: float | None = None
    x: float | None = None
    label: str = ""


Layer = Line | Band | Points | Segments | ReferenceLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What to draw. Labels carry their units; a missing range is taken from the layers."""

    title: str
    x_label: str
    y_label: str
    layers: Sequence[Layer]
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    x_log: bool = False
    y_log: bool = False
    width: int = 640
    height: int = 380


@dataclass(frozen=True, slots=True)
class _Axis:
    """Maps data to pixels along one direction."""

    low: float
    high: float
    start_px: float
    end_px: float
    log: bool

    def px(self, value: float) -> float:
        low, high = self._scaled(self.low), self._scaled(self.high)
        return self.start_px + (self._scaled(value) - low) / (high - low) * (self.end_px - self.start_px)

    def _scaled(self, value: float) -> float:
        return math.log10(max(value, self.low)) if self.log else value

    def ticks(self) -> list[float]:
        return log_ticks(self.low, self.high) if self.log else ticks(self.low, self.high)


def svg(figure: Figure) -> str:
    """The figure as one SVG element, well-formed XML. Raises ValueError when there is nothing finite to draw."""
    legend, legend_px = _legend(figure)
    height = figure.height + legend_px
    x_axis, y_axis = _axes(figure)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="npfig" viewBox="0 0 {figure.width} {height}" '
        f'width="{figure.width}" height="{height}" role="img">',
        f"<title>{escape(figure.title)}</title><style>{_style()}</style>",
        f'<rect class="npfig-paper" width="{figure.width}" height="{height}"/>',
        *_frame(figure, x_axis, y_axis),
        # Nested svg clips what falls outside of a given range without needing an id that is unique on the page.
        f'<svg x="{_n(x_axis.start_px)}" y="{_n(y_axis.end_px)}" width="{_n(x_axis.end_px - x_axis.start_px)}" '
        f'height="{_n(y_axis.start_px - y_axis.end_px)}" viewBox="{_n(x_axis.start_px)} {_n(y_axis.end_px)} '
        f'{_n(x_axis.end_px - x_axis.start_px)} {_n(y_axis.start_px - y_axis.end_px)}">',
        *(_draw(layer, x_axis, y_axis) for layer in figure.layers),
        "</svg>",
        *legend,
        "</svg>",
    ]
    return "\n".join(parts)


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten) within [low, high], `about` many."""
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten within [low, high]; the powers alone when the range is wide."""
    wide = math.log10(high / low) > 3
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = [m * 10.0**p for p in powers for m in ((1,) if wide else (1, 2, 5))]
    return [t for t in every if low * (1 - 1e-9) <= t <= high * (1 + 1e-9)]


def decimate(x: Sequence[float], y: Sequence[float], columns: int) -> tuple[list[float], list[float]]:
    """Keep first, lowest, highest and last point of each of `columns` equal runs of points.

    What is left looks the same at that many pixels: no peak is lost. Short input comes back as it is.
    """
    n = len(x)
    if n <= 4 * columns:
        return list(x), list(y)
    keep: list[int] = []
    for c in range(columns):
        run = range(c * n // columns, (c + 1) * n // columns)
        picked = {run[0], min(run, key=lambda i: y[i]), max(run, key=lambda i: y[i]), run[-1]}
        keep.extend(sorted(picked))
    return [x[i] for i in keep], [y[i] for i in keep]


def _axes(figure: Figure) -> tuple[_Axis, _Axis]:
    left, right, top, bottom = 64, 26, 34, 46
    x_low, x_high = figure.x_range or _extent(_xs(figure.layers), figure.x_log)
    y_low, y_high = figure.y_range or _extent(_ys(figure.layers), figure.y_log)
    x_axis = _Axis(x_low, x_high, left, figure.width - right, figure.x_log)
    return x_axis, _Axis(y_low, y_high, figure.height - bottom, top, figure.y_log)


def _extent(values: Iterator[float], log: bool) -> tuple[float, float]:
    usable = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
    if not usable:
        raise ValueError("the figure has no finite value to draw; give it data or explicit ranges")
    low, high = min(usable), max(usable)
    if low < high:
        return low, high
    return (low / 2, high * 2) if log else (low - 0.5, high + 0.5)


def _xs(layers: Sequence[Layer]) -> Iterator[float]:
    for layer in layers:
        match layer:
            case Line() | Band() | Points():
                yield from layer.x
            case Segments():
                for x0, _, x1, _ in layer.strokes:
                    yield from (x0, x1)
            case ReferenceLine():
                if layer.x is not None:
                    yield layer.x


def _ys(layers: Sequence[Layer]) -> Iterator[float]:
    for layer in layers:
        match layer:
            case Line() | Points():
                yield from layer.y
            case Band():
                yield from layer.low
                yield from layer.high
            case Segments():
                for _, y0, _, y1 in layer.strokes:
                    yield from (y0, y1)
            case ReferenceLine():
                if layer.y is not None:
                    yield layer.y


def _frame(figure: Figure, x_axis: _Axis, y_axis: _Axis) -> Iterator[str]:
    left, right, top, bottom = x_axis.start_px, x_axis.end_px, y_axis.end_px, y_axis.start_px
    yield f'<text class="npfig-title" x="{_n(left)}" y="20">{escape(figure.title)}</text>'
    for tick in x_axis.ticks():
        px = _n(x_axis.px(tick))
        yield f'<line class="npfig-grid" x1="{px}" y1="{_n(top)}" x2="{px}" y2="{_n(bottom)}"/>'
        yield f'<text x="{px}" y="{_n(bottom + 15)}" text-anchor="middle">{_tick_text(tick)}</text>'
    for tick in y_axis.ticks():
        px = _n(y_axis.px(tick))
        yield f'<line class="npfig-grid" x1="{_n(left)}" y1="{px}" x2="{_n(right)}" y2="{px}"/>'
        yield f'<text x="{_n(left - 6)}" y="{px}" dy="0.35em" text-anchor="end">{_tick_text(tick)}</text>'
    yield f'<path class="npfig-axis" d="M{_n(left)} {_n(top)}V{_n(bottom)}H{_n(right)}"/>'
    middle_x, middle_y = _n((left + right) / 2), _n((top + bottom) / 2)
    yield f'<text x="{middle_x}" y="{_n(bottom + 34)}" text-anchor="middle">{escape(figure.x_label)}</text>'
    yield (
        f'<text transform="translate(14 {middle_y}) rotate(-90)" text-anchor="middle">{escape(figure.y_label)}</text>'
    )


def _draw(layer: Layer, x_axis: _Axis, y_axis: _Axis) -> str:
    match layer:
        case Line():
            return f'<path class="npfig-line {_hue(layer)}"{_dash(layer)} d="{_path(layer, x_axis, y_axis)}"/>'
        case Band():
            return f'<path class="npfig-band {_hue(layer)}" d="{_outline(layer, x_axis, y_axis)}"/>'
        case Points():
            dots = "".join(
                f'<circle cx="{_n(x_axis.px(x))}" cy="{_n(y_axis.px(y))}" r="{_n(layer.radius)}"/>'
                for x, y in zip(layer.x, layer.y, strict=True)
                if math.isfinite(x) and math.isfinite(y)
            )
            return f'<g class="npfig-dots {_hue(layer)}">{dots}</g>'
        case Segments():
            moves = "".join(
                f"M{_n(x_axis.px(x0))} {_n(y_axis.px(y0))}L{_n(x_axis.px(x1))} {_n(y_axis.px(y1))}"
                for x0, y0, x1, y1 in layer.strokes
            )
            return f'<path class="npfig-line {_hue(layer)}" d="{moves}"/>'
        case ReferenceLine():
            move = f"M{_n(x_axis.px(layer.x))} 0V10000" if layer.x is not None else ""
            move += f"M0 {_n(y_axis.px(layer.y))}H10000" if layer.y is not None else ""
            return f'<path class="npfig-rule" d="{move}"/>'


def _path(line: Line, x_axis: _Axis, y_axis: _Axis) -> str:
    columns = int(x_axis.end_px - x_axis.start_px)
    out: list[str] = []
    for xs, ys in _finite_runs(line.x, line.y):
        pen = "M"
        for x, y in zip(*decimate(xs, ys, columns), strict=True):
            out.append(f"{pen}{_n(x_axis.px(x))} {_n(y_axis.px(y))}")
            pen = "L"
    return "".join(out)


def _outline(band: Band, x_axis: _Axis, y_axis: _Axis) -> str:
    columns = int(x_axis.end_px - x_axis.start_px)
    upper = list(zip(*decimate(band.x, band.high, columns), strict=True))
    lower = list(zip(*decimate(band.x, band.low, columns), strict=True))
    around = [(x, y) for x, y in upper + lower[::-1] if math.isfinite(y)]
    return "M" + "L".join(f"{_n(x_axis.px(x))} {_n(y_axis.px(y))}" for x, y in around) + "Z" if around else ""


def _finite_runs(x: Sequence[float], y: Sequence[float]) -> Iterator[tuple[list[float], list[float]]]:
    xs: list[float] = []
    ys: list[float] = []
    for a, b in zip(x, y, strict=True):
        if math.isfinite(a) and math.isfinite(b):
            xs.append(a)
            ys.append(b)
        elif xs:
            yield xs, ys
            xs, ys = [], []
    if xs:
        yield xs, ys


def _legend(figure: Figure) -> tuple[list[str], int]:
    """Entries below the plot, wrapped to the figure's width, and the height they take."""
    x, row, out = 64.0, 0, []
    for layer in figure.layers:
        if not layer.label:
            continue
        width = 34 + _CHAR_PX * len(layer.label)
        if x + width > figure.width and x > 64:
            x, row = 64.0, row + 1
        y = figure.height + 6 + 18 * row
        out.append(f'{_swatch(layer, x, y)}<text x="{_n(x + 26)}" y="{y + 4}">{escape(layer.label)}</text>')
        x += width + 8
    return out, 18 * (row + 1) + 4 if out else 0


def _swatch(layer: Layer, x: float, y: int) -> str:
    match layer:
        case Points():
            return f'<g class="npfig-dots {_hue(layer)}"><circle cx="{_n(x + 10)}" cy="{y}" r="3"/></g>'
        case Band():
            return f'<rect class="npfig-band {_hue(layer)}" x="{_n(x)}" y="{y - 5}" width="20" height="10"/>'
        case ReferenceLine():
            return f'<path class="npfig-rule" d="M{_n(x)} {y}h20"/>'
        case Line():
            return f'<path class="npfig-line {_hue(layer)}"{_dash(layer)} d="M{_n(x)} {y}h20"/>'
        case Segments():
            return f'<path class="npfig-line {_hue(layer)}" d="M{_n(x)} {y}h20"/>'


def _hue(layer: Line | Band | Points | Segments) -> str:
    return f"npfig-{layer.colour % len(_COLOURS)}"


def _dash(line: Line) -> str:
    pattern = _DASHES[line.dash % len(_DASHES)]
    return f' stroke-dasharray="{pattern}"' if pattern else ""


def _style() -> str:
    def hues(page: int) -> str:
        return "".join(f".npfig-{i}{{color:{pair[page]}}}" for i, pair in enumerate(_COLOURS))

    return (
        ".npfig{max-width:100%;height:auto;font:11px system-ui,sans-serif}"
        ".npfig text{fill:#333}.npfig .npfig-title{font-size:13px;font-weight:600}"
        ".npfig-paper{fill:#fff}.npfig-grid{stroke:#e4e4e4}.npfig-axis{stroke:#888;fill:none}"
        ".npfig-rule{stroke:#444;stroke-width:1.4;stroke-dasharray:4 3;fill:none}"
        ".npfig-line{stroke:currentColor;fill:none;stroke-width:1.6;stroke-linejoin:round}"
        ".npfig-band{fill:currentColor;fill-opacity:.18;stroke:none}.npfig-dots{fill:currentColor}"
        + hues(0)
        + "@media screen and (prefers-color-scheme:dark){.npfig text{fill:#ddd}.npfig-paper{fill:#16181d}"
        ".npfig-grid{stroke:#2d3038}.npfig-rule{stroke:#ccc}" + hues(1) + "}"
    )


def _tick_text(value: float) -> str:
    if value != 0 and (abs(value) >= 1e6 or abs(value) < 1e-4):
        return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{value:.6g}" if abs(value) < 10_000 else f"{value:,.0f}"


def _n(value: float) -> str:
    """A coordinate with one decimal: a tenth of a pixel is finer than anything seen."""
    return f"{value:.1f}".removesuffix(".0")
