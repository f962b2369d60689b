"""Labels by id for events that may be long gone from memory: found in the topic, and given back to it with the label.

A label in the topic is its own marker: whoever looks for what is to be labelled
comes past what was labelled before, since a label lies behind its event, and
is deleted after it. So nothing else must be kept or published with it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from statistics import median_low
from typing import NamedTuple, TypeVar

from npstream.codec.event import Kind
from npstream.codec.finder import EventFinder, Found
from npstream.codec.learn_header import labelled_again
from npstream.errors import UsageError
from npstream.port import Labelling, Log
from npstream.records import Channel, Record

FOUND_MAX_BYTES = 500_000_000
"""Most bytes of events that are held at a time; they are published when all are known."""

_BATCH = 4_000
_STRETCH_MIN, _STRETCH_MAX = 20_000, 1_000_000
_TAIL = 100

T = TypeVar("T")


class Stretch(NamedTuple):
    """Part of a partition of the events topic."""

    partition: int
    begin: int
    end: int


class StretchFound(NamedTuple):
    """What one stretch holds."""

    stretch: Stretch
    found: list[Found]


def stretches(ranges: Mapping[int, tuple[int, int]], parts: int) -> list[Stretch]:
    """Ranges of partitions cut into pieces of about equal size, some `parts` of them."""
    total = sum(end - begin for begin, end in ranges.values())
    size = min(max(total // parts, _STRETCH_MIN), _STRETCH_MAX)
    return [
        Stretch(partition, at, min(at + size, end))
        for partition, (begin, end) in ranges.items()
        for at in range(begin, end, size)
    ]


def look_through(log: Log, finder: EventFinder, stretch: Stretch) -> StretchFound:
    """The wanted events and labels of one stretch, in order. Raises `UsageError` where they are too many to hold."""
    found: list[Found] = []
    records = log.read(Channel.EVENTS, stretch.partition, stretch.begin, stretch.end)
    for batch in _batches(records, _BATCH):
        found += finder.find(batch)
    check_size(found)
    return StretchFound(stretch, found)


def check_size(found: Sequence[Found]) -> None:
    """Raises `UsageError` when events are too many to hold."""
    if sum(len(each.record.value or b"") for each in found) > FOUND_MAX_BYTES:
        raise UsageError(
            f"the events of this file take more than {FOUND_MAX_BYTES // 1_000_000} MB: split the file, and give the "
            "parts one after another"
        )


@dataclass
class Matched:
    """Which labels are to be published, by partition, and what became of the others.

    `corrected` of the new ones were published with another label before, `known` with the same one; `with_label` came
    with a label of their own, `other_label` of them with another one; `bad` events became dead letters.
    """

    new: dict[int, list[tuple[Record, int]]] = field(default_factory=dict)
    known: int = 0
    corrected: int = 0
    with_label: int = 0
    other_label: int = 0
    bad: list[str] = field(default_factory=list)
    not_found: list[str] = field(default_factory=list)

    @property
    def to_publish(self) -> int:
        """How many are new."""
        return sum(map(len, self.new.values()))


def match(signs: Mapping[str, int], findings: Sequence[StretchFound]) -> Matched:
    """Labels and what the topic holds of their ids, partition by partition.

    The first event of an id is the one that is meant, as for any label.
    """
    matched = Matched()
    seen: set[str] = set()
    bad: set[str] = set()
    events: dict[tuple[int, str], Found] = {}
    given: dict[tuple[int, str], Found] = {}
    for stretch, found in sorted(findings):
        for each in found:
            place = stretch.partition, each.name
            if each.kind in (Kind.OBSERVATION, Kind.LABELLED):
                events.setdefault(place, each)
            elif each.kind == Kind.ECHO:
                given[place] = each
            elif each.kind == Kind.BAD:
                bad.add(each.name)
    for place in events | given:
        partition, name = place
        seen.add(name)
        sign, last = signs[name], given.get(place)
        event = events.get(place, last)
        assert event is not None
        if last is not None and last.y == sign:
            matched.known += 1
        elif event.kind == Kind.LABELLED:
            matched.with_label += 1
            matched.other_label += event.y != sign
        else:
            matched.corrected += last is not None
            matched.new.setdefault(partition, []).append((event.record, sign))
    bad -= seen
    matched.bad = [name for name in signs if name in bad]
    matched.not_found = [name for name in signs if name not in seen and name not in bad]
    return matched


def publish(log: Log, writer: Labelling, matched: Matched, chunk: int) -> Iterator[int]:
    """Give the events back with their labels, each chunk at once or not at all; yields how many each had.

    They get the time of the newest events of their partition: event time neither stands still nor leaps.
    """
    for partition, labels in sorted(matched.new.items()):
        stamp = _stamp(log, partition)
        for few in _batches(sorted(labels), chunk):
            writer.publish(partition, [(*labelled_again(record, sign), stamp) for record, sign in few])
            yield len(few)


def _stamp(log: Log, partition: int) -> int:
    """Of the newest events, the one in the middle, so that a single wrong clock does not set it."""
    end = log.ends(Channel.EVENTS, partition).stable
    tail = [record.timestamp_ms for record in log.read(Channel.EVENTS, partition, max(0, end - _TAIL), end)]
    return median_low(tail)


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    own = iter(items)
    while few := list(islice(own, size)):
        yield few
