"""Reports: every number once, the same in all forms; pages that need nothing from the network."""

import csv
import io
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np
import orjson
import pytest

from npstream.records import Record
from npstream.replay.replay import replay
from npstream.replay.report import Run, to_csv, to_html, to_json, to_text
from npstream.replay.source import ArraySource, RecordSource, Source
from tests.replay.data import config, rows, tau

_VOID = {"meta", "br", "hr", "img", "input", "link"}


def run(name: str = "run", source: Source | None = None, rate: float = 0.1) -> Run:
    """A replay of a small data set."""
    result = replay(tau(config(), rate), source or ArraySource(*rows(900), 2, 5))
    return Run(name, {"model": {"tau": rate}}, result, 0.5)


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    """Two rates side by side; the name of one would break a careless page."""
    return [run("tau=0.1"), run('<script>alert("2")</script> & co', rate=0.2)]


class Balanced(HTMLParser):
    """Checks that every tag is closed in order, and collects attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, (tag, self.getpos())


def parsed(html: str) -> Balanced:
    """The page, read to its end."""
    parser = Balanced()
    parser.feed(html)
    parser.close()
    return parser


def title(figure: ElementTree.Element) -> str:
    """What a figure is called."""
    return next(each.text or "" for each in figure if each.tag.endswith("title"))


def figures(html: str) -> Iterator[ElementTree.Element]:
    """Every figure of a page as XML."""
    for text in re.findall(r"<figure>(.*?)</figure>", html, re.DOTALL):
        yield ElementTree.fromstring(text)


def test_the_document_has_what_scripts_rely_on(runs: list[Run]) -> None:
    """Settings, events, tau, rates, NP-score, digest, and the same rates for each quarter."""
    document = orjson.loads(orjson.dumps(to_json(runs[0])))

    rates = {"fpr", "fpr_interval", "tpr", "np_score", "negatives", "positives", "false_positives", "true_positives"}
    own = {"name", "settings", "events", "seconds", "tau", "alarm_rate", "digest", "tally"}
    own |= {"tiers", "quarters", "partitions"}
    assert own | rates == set(document)
    assert document["alarm_rate"] == document["tally"]["alarms"] / document["tally"]["decisions"]
    assert [set(quarter) for quarter in document["quarters"]] == [rates] * 4
    assert document["tau"] == 0.1
    assert document["settings"] == {"model": {"tau": 0.1}}
    assert re.fullmatch("[0-9a-f]{32}", document["digest"])


def test_rates_of_the_document_follow_from_its_counts(runs: list[Run]) -> None:
    """FPR, TPR and NP-score can be computed again from the counts beside them, and lie in their interval."""
    document = to_json(runs[0])

    for part in (document, *document["quarters"], *document["partitions"]):
        fpr, tpr = part["false_positives"] / part["negatives"], part["true_positives"] / part["positives"]
        assert (part["fpr"], part["tpr"]) == (fpr, tpr)
        assert math.isclose(part["np_score"], max(fpr - 0.1, 0) / 0.1 + 1 - tpr)
        assert part["fpr_interval"][0] <= fpr <= part["fpr_interval"][1]


@pytest.mark.parametrize(("label", "fpr"), [(b"", "no labels"), (b',"y":-1', "0.0000"), (b',"y":1', "-")])
def test_what_was_not_measured_is_not_shown_as_a_number(label: bytes, fpr: str) -> None:
    """No label of a class, no rate of it; and no NP-score, which needs both: a 0 would look perfect."""
    events = [Record(i, 1 + i, None, b'{"x":[0,0,%d]%s}' % (i, label), ()) for i in range(20)]
    silent = run(source=RecordSource({0: events}))

    document: Any = orjson.loads(orjson.dumps(to_json(silent)))
    text, page = to_text([silent]), to_html([silent], "events")

    for part in (document, *document["quarters"], *document["partitions"]):
        assert part["np_score"] is None
        assert part["fpr"] == (0.0 if part["negatives"] else None)
        assert (part["fpr_interval"] is None) is (part["negatives"] == 0)
    assert document["events"] == 20
    cells = re.split(r"\s{2,}", text.splitlines()[2])
    assert (cells[3], cells[7]) == (fpr, "-")
    assert "nan" not in text
    assert ">nan" not in page
    assert parsed(page).open == []


def test_the_table_has_a_line_for_each_run(runs: list[Run]) -> None:
    """Name, counts and the start of the digest, one run a line."""
    lines = to_text(runs).splitlines()[2:]

    assert [line.split()[-1] for line in lines] == [run.result.digest[:12] for run in runs]
    assert "\x1b" not in to_text(runs)


def test_samples_lead_to_the_final_counts(runs: list[Run]) -> None:
    """The CSV parses, counts only grow, and each partition's last line is its total."""
    samples = list(csv.DictReader(io.StringIO(to_csv(runs))))

    for found in runs:
        for part in found.result.partitions:
            own = [s for s in samples if (s["run"], s["partition"]) == (found.name, str(part.partition))]
            counts = [int(s["negatives"]) + int(s["positives"]) for s in own]
            assert counts == sorted(counts)
            assert int(own[-1]["false_positives"]) == part.rates.false_positives
            assert int(own[-1]["records"]) == 900


def test_the_page_is_well_formed_and_shows_every_run(runs: list[Run]) -> None:
    """Tags are closed in order, figures are XML, names are text, and both digests are there."""
    html = to_html(runs, "data.npz")

    assert parsed(html).open == []
    assert len(list(figures(html))) == 2 + 4 * len(runs)
    assert "<script" not in html
    for found in runs:
        assert found.result.digest in html


def test_the_page_refers_to_nothing_outside(runs: list[Run]) -> None:
    """No attribute loads anything and no style imports anything: the page works without a network."""
    html = to_html(runs, "data.npz")
    page = parsed(html)

    loading = [(name, value) for name, value in page.attributes if name in ("src", "href", "xlink:href", "action")]
    assert [pair for pair in loading if not pair[1].startswith("#")] == []
    assert not re.search(r"@import|url\((?!#)", html)
    named = set(re.findall(r"https?://[^\s\"'<>]+", html))
    assert named <= {"http://www.w3.org/2000/svg"}


def test_one_run_has_a_roc_and_what_it_did_on_it() -> None:
    """From no false positives to ten times tau; where only alarms and a sample are labelled there is none."""
    html = to_html([run()], "data")
    (roc,) = [figure for figure in figures(html) if "ROC" in "".join(figure.itertext())]
    drawn = [(each.get("points") or each.get("d") or "").split() for each in roc.iter()]
    sampled = replace(config(), labels=replace(config().labels, review=0.1))
    reviewed = Run("run", {}, replay(sampled, ArraySource(*rows(900), 2, 5)), 0.5)

    assert max(len(points) for points in drawn) > 150
    assert not [figure for figure in figures(to_html([reviewed], "data")) if "ROC" in "".join(figure.itertext())]


def test_a_rate_that_is_known_once_is_drawn() -> None:
    """The only labelled target comes with the last events."""
    x, y = rows(900)
    source = ArraySource(x, np.where(np.arange(len(y)) == len(y) - 1, 1, -1).astype(y.dtype), 1, 0)

    assert "<svg" in to_html([run(source=source)], "one target")


def test_the_rate_that_is_held_is_that_of_the_control() -> None:
    """Of non-targets, or of all observations: side by side each run shows the one that it was to hold."""
    by_alarm = replay(config(control="alarm_rate"), ArraySource(*rows(2_000), 1, 5))
    document = to_json(found := Run("run", {}, by_alarm, 0.5))

    assert f" {document['alarm_rate'] / 0.1:.2f} " in to_text([found])
    assert f" {document['fpr'] / 0.1:.2f} " not in to_text([found])


def test_under_alarm_rate_the_target_is_drawn_where_it_is_held() -> None:
    """A curve of alarms among all decisions has it, the one of false positives has not; tiers have the same rate."""
    tiers = (("block", 0.05), ("review", 0.2))
    by_alarm = Run(
        "run", {}, replay(config(control="alarm_rate", tau=0.2, tiers=tiers), ArraySource(*rows(2_000), 1, 5)), 0.5
    )
    drawn = {title(figure): "".join(figure.itertext()) for figure in figures(to_html([by_alarm], "data"))}
    document = to_json(by_alarm)
    samples = list(csv.DictReader(io.StringIO(to_csv([by_alarm]))))

    assert "tau = 0.2" in drawn["Alarm rate so far"]
    assert "tau = " not in drawn["False-positive rate so far"]
    assert [int(samples[-1][name]) for name in ("alarms", "decisions")] == [
        document["tally"][name] for name in ("alarms", "decisions")
    ]
    for name, tier in document["tiers"].items():
        rate = tier["alarms"] / document["tally"]["decisions"]
        assert re.search(rf"{name} +{tier['tau']:g} +{rate:.2%} +{rate / tier['tau']:.2f} ", to_text([by_alarm]))
    by_partition = re.search(
        r"<th>NP-score</th></tr></thead><tbody>\n<tr><td>0</td>(.*?)</tr>", to_html([by_alarm], "data")
    )
    assert by_partition
    assert f"<td>{document['alarm_rate']:.2%}</td>" in by_partition[1]
    assert "Alarm rate so far" not in {title(figure) for figure in figures(to_html([run()], "data"))}


def test_a_report_is_made_for_paper_too() -> None:
    """A4, light whatever the reader's setting, a page for each run, no table that must be scrolled."""
    html = to_html([run()], "data")

    assert "@page{size:A4" in html
    assert re.search(r"@media print\{.*color-scheme:light.*section\+section\{break-before:page\}", html)
    assert "@media (prefers-color-scheme:dark)" not in html
