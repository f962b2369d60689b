"""The demo's story: rates before and after the drift, for the worker and for its rivals."""

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from npstream.cli.ranges import Range, topic_source
from npstream.demo.story import Story, make_story, picture, report, table, to_json
from npstream.demo.stream import DemoStream, make_stream
from npstream.replay.replay import replay
from npstream.report.rates import Rates
from npstream.testing import Stage

SETTINGS = {"topics": {"events": "demo"}, "model": {"d": 2, "D": 20, "tau": 0.05}}


@pytest.fixture(scope="module")
def stream() -> DemoStream:
    """A short stream."""
    return make_stream(8000, 300, 7)


@pytest.fixture(scope="module")
def story(stream: DemoStream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """The story after the stream went through the topic."""
    stage = Stage(SETTINGS, tmp_path_factory.mktemp("story"), 2)
    stage.send(list(stream.messages()))
    log = stage.log()
    source = topic_source(log, "demo", Range())
    found = make_story(stage.settings.partition_config(), source, stream)
    assert [part.chain for part in replay(stage.settings.partition_config(), source).partitions] == found.chains
    yield found
    log.close()


def test_every_way_is_judged_on_every_event(story: Story, stream: DemoStream) -> None:
    """Before and after the drift together count each event once, for the worker and for both rivals."""
    targets = int((stream.y > 0).sum())
    for way in story.ways:
        counted: Rates = way.before + way.after
        assert (counted.negatives, counted.positives) == (8000 - targets, targets), way.name


def test_a_fixed_threshold_loses_its_rate_and_a_tracked_one_does_not(story: Story) -> None:
    """The point of the picture: after the drift npstream is nearer to tau than the fixed model."""
    rates = {way.name: way.after.fpr for way in story.ways}

    assert abs(rates["npstream"] - 0.05) < abs(rates["fixed model and threshold"] - 0.05)
    assert rates["npstream"] < 2 * 0.05


def test_the_forms_agree(story: Story) -> None:
    """Table, document, picture and page have the same ways."""
    header, rows = table(story)
    names = [way["name"] for way in to_json(story)["ways"]]

    assert [row[0] for row in rows] == names
    assert all(len(row) == len(header) for row in rows)
    assert "".join(names[0]) in "".join(ElementTree.fromstring(picture(story)).itertext())
    assert all(name.replace("'", "&#x27;") in report(story) for name in names)


def test_the_picture_is_written_alike_twice(story: Story) -> None:
    """The README's picture changes only when the decisions do."""
    assert picture(story) == picture(story)


def test_the_page_asks_for_nothing_outside(story: Story, tmp_path: Path) -> None:
    """No address but the name of SVG's own vocabulary."""
    html = report(story)

    assert html.count("http") == html.count("http://www.w3.org/2000/svg")
