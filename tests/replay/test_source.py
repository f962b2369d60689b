"""Sources: what a replay is fed, in what order, and what is held back."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from npstream.codec.decoder import EventConfig, EventDecoder
from npstream.embedded import EmbeddedLog, create_topics
from npstream.records import Channel, Record, Topics
from npstream.replay.replay import replay
from npstream.replay.source import ROUND, ArraySource, RecordSource, Source, TopicSource
from npstream.replay.split import HELD_BACK_MAX, MergedSource, as_one, hold_back
from tests.replay.data import config, event_lines, late_lines, records, rows

JSON = config().events


def everything(source: Source) -> dict[int, list[Record]]:
    """All records of a source, by partition."""
    found: dict[int, list[Record]] = {}
    for batches in source.rounds():
        for batch in batches:
            found.setdefault(batch.partition, []).extend(batch.records)
    return found


@pytest.mark.parametrize(("partitions", "delay"), [(1, 0), (3, 0), (1, 7), (4, 5), (2, 5000)])
def test_ranges_say_exactly_what_comes(partitions: int, delay: int) -> None:
    """Offsets run without a gap from the first to the last that the range names, in every partition."""
    source = ArraySource(*rows(2 * ROUND + 11), partitions, delay)

    found = everything(source)

    offsets = {p: [record.offset for record in part] for p, part in found.items()}
    assert offsets == {p: list(range(begin, end)) for p, (begin, end) in source.ranges.items()}


def test_rows_are_dealt_in_turn() -> None:
    """Row i goes to partition i modulo their number, features and label untouched."""
    x, y = rows(25)
    found = everything(ArraySource(x, y, 4))

    dealt = {p: list(range(p, 25, 4)) for p in range(4)}
    for p, part in found.items():
        assert part == [
            Record(
                offset, offset + 1, None, x[row].astype("<f4").tobytes(), (("id", b"%d" % row), ("y", b"%d" % y[row]))
            )
            for offset, row in enumerate(dealt[p])
        ]


def test_a_delayed_label_follows_so_many_rows_later() -> None:
    """Each row comes without its label; the label comes right after the row `delay` places later."""
    found = everything(ArraySource(*rows(6), 1, 2))[0]

    reported = [(dict(r.headers)["id"], "label" if "y" in dict(r.headers) else "row") for r in found]
    assert reported[:6] == [
        (b"0", "row"),
        (b"1", "row"),
        (b"2", "row"),
        (b"0", "label"),
        (b"3", "row"),
        (b"1", "label"),
    ]
    assert sorted(reported) == sorted((b"%d" % i, kind) for i in range(6) for kind in ("row", "label"))


def test_rows_keep_the_ids_that_they_have() -> None:
    """Ids of a file are JSON, so that numbers stay numbers and a comma is text; a row without a label says none."""
    x, _ = rows(3)
    y = np.array([1, 0, -1], np.int8)

    labelled = everything(ArraySource(x, y, ids=["a,b", 7, "7"]))[0]
    late = everything(ArraySource(x, y, 1, 1, ids=["a,b", 7, "7"]))[0]

    assert [r.headers for r in labelled] == [
        (("id", b'"a,b"'), ("y", b"1")),
        (("id", b"7"),),
        (("id", b'"7"'), ("y", b"-1")),
    ]
    assert [dict(r.headers) for r in late if not r.value] == [{"id": b'"a,b"', "y": b"1"}, {"id": b'"7"', "y": b"-1"}]
    decoded = EventDecoder(EventConfig(d=3, format="columns")).decode([*labelled, *labelled[:1]])
    assert decoded.ids == ["a,b", 7, "7", "a,b"]
    assert decoded.x[:3].tolist() == x.tolist()


def test_held_back_rows_are_the_last() -> None:
    """Learning and holding back divide the rows without loss, in order."""
    x, y = rows(100)

    earlier, later = hold_back(ArraySource(x, y, 1, 3), 15, JSON)

    assert isinstance(earlier, ArraySource)
    assert isinstance(later, ArraySource)
    assert (len(earlier.y), len(later.y), later.delay) == (85, 15, 3)
    assert np.concatenate([earlier.x, later.x]).tolist() == x.tolist()


def test_no_more_than_a_share_is_held_back() -> None:
    """Most of a short history is for learning, whatever is asked for."""
    _, later = hold_back(ArraySource(*rows(50)), 2000, JSON)

    assert later.ranges == {0: (0, int(HELD_BACK_MAX * 50))}


def test_records_are_held_back_in_every_partition() -> None:
    """Each partition gives its last records, so that what is held back is the newest."""
    lines = [line for line in event_lines(200) if b'"x"' in line and b'"y"' in line]
    source = RecordSource({0: records(lines), 3: records(lines[:60], first=7)})

    earlier, later = hold_back(source, 20, JSON)

    held = {p: (begin, end) for p, (begin, end) in later.ranges.items()}
    assert held == {p: (end - 10, end) for p, (_, end) in source.ranges.items()}
    assert {p: end for p, (_, end) in earlier.ranges.items()} == {p: begin for p, (begin, _) in held.items()}


@pytest.mark.parametrize("partitions", [1, 2])
def test_held_back_events_have_their_labels_however_late(tmp_path: Path, partitions: int) -> None:
    """Enough is held back for so many observations and the labels that come after them, in memory and on a topic."""
    lines = records(late_lines(1000, 60))
    memory = RecordSource(dict.fromkeys(range(partitions), lines), "events")
    path, topics = tmp_path / "log.db", Topics("events", "decisions", "dead", "checkpoints")
    create_topics(path, topics, partitions)
    with closing(EmbeddedLog(path, topics)) as log:
        for p in range(partitions):
            log.append(Channel.EVENTS, p, [(r.key, r.value, r.headers, r.timestamp_ms) for r in lines])
        topic = TopicSource(log, "events", memory.ranges)

        for source in (memory, topic):
            earlier, later = hold_back(source, 100, JSON)
            result = replay(config(), later)

            assert result.rates.negatives + result.rates.positives == 100 // partitions * partitions
            assert {p: end for p, (_, end) in earlier.ranges.items()} == {p: b for p, (b, _) in later.ranges.items()}


def test_labels_that_come_too_late_do_not_make_more_than_a_share_held_back() -> None:
    """Where the last fifth has no label of its own, its last records are held back as they are."""
    _, later = hold_back(RecordSource({0: records(late_lines(1000, 900))}), 100, JSON)

    assert later.ranges == {0: (1900, 2000)}


def test_partitions_become_one_in_the_order_of_time() -> None:
    """A merged source has every record once, by timestamp, numbered from zero."""
    one, other = records(event_lines(30)), records(event_lines(50, seed=1))
    other = [record._replace(timestamp_ms=record.timestamp_ms + 5) for record in other]

    merged = as_one(RecordSource({0: one, 2: other}))

    assert isinstance(merged, MergedSource)
    found = everything(merged)[0]
    assert [record.offset for record in found] == list(range(len(one) + len(other)))
    assert [record.timestamp_ms for record in found] == sorted(r.timestamp_ms for r in one + other)
    assert sorted(r.value or b"" for r in found) == sorted(r.value or b"" for r in one + other)
    assert merged.ranges == {0: (0, len(found))}


def test_a_single_partition_stays_as_it_is() -> None:
    """Offsets of one partition are kept: default ids are made of them."""
    source = RecordSource({2: records(event_lines(30), first=100)})

    assert as_one(source) is source
