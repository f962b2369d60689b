"""What must have been published: one undisturbed processor over the input topic, compared record by record."""

from collections import Counter
from collections.abc import Iterable, Sequence

from npstream.codec.changes import decode_change
from npstream.codec.chunks import ChangeKey, PromotionKey, parse_key
from npstream.codec.envelope import LABELS_HEADER, OFFSET_HEADER
from npstream.partition import PartitionConfig, PartitionProcessor
from npstream.port import Log
from npstream.records import Channel, KeyValue, Merge, Output, Record
from tests.system.stream import Plain

PUBLISHED = (Channel.DECISIONS, Channel.DEAD_LETTERS)

Changes = Sequence[tuple[int, PartitionConfig]]
"""Settings by the offset they count from; the first is the one a partition starts with."""


class Different(AssertionError):
    """The topics are not what the oracle says. The message says what was lost, doubled or altered."""


def expected(
    records: Sequence[Record],
    changes: Changes,
    group: str,
    topic: str,
    partition: int,
    merges: Sequence[Merge] = (),
) -> list[Output]:
    """The outputs of an undisturbed run whose settings change at the given offsets, and that follows a merge."""
    (begin, first), *later = changes
    processor = PartitionProcessor.cold(first, group, topic, partition, begin, None)
    outputs: list[Output] = []
    at = 0
    for offset, config in later:
        until = next((i for i, record in enumerate(records) if record.offset >= offset), len(records))
        outputs += processor.process(records[at:until], merges).outputs
        if processor.challenger is not None and config == processor.config.promoted:
            processor.promote(config)
        else:
            processor.reconfigure(config)
        at = until
    outputs += processor.process(records[at:], merges).outputs
    return outputs


def compare(log: Log, changes: dict[int, Changes], group: str, topic: str) -> int:
    """Compare both published topics on all partitions; return how many records are equal. Raises `Different`."""
    found: list[str] = []
    equal = 0
    for partition, own in changes.items():
        merges = recorded(log, partition) if own[-1][1].label_topic is not None else ()
        outputs = expected(list(read(log, Channel.EVENTS, partition)), own, group, topic, partition, merges)
        for channel in PUBLISHED:
            want = [_plain(output) for output in outputs if output.channel == channel]
            have = [(r.key, r.value, r.headers, r.timestamp_ms) for r in read(log, channel, partition)]
            equal += len(want)
            found += difference(f"{channel.name.lower()}/{partition}", want, have)
    if found:
        raise Different("\n".join(found))
    return equal


def recorded(log: Log, partition: int) -> list[Merge]:
    """How the labels topic was merged with the events, by the first decision that names each label offset."""
    labels, merges, done = list(read(log, Channel.LABELS, partition)), [], 0
    for record in read(log, Channel.DECISIONS, partition):
        named = dict(record.headers)
        next_label = int(named[LABELS_HEADER] or b"")
        if next_label > done:
            taken = [label for label in labels if done <= label.offset < next_label]
            merges.append(Merge(int(named[OFFSET_HEADER] or b""), taken))
            done = next_label
    return merges


def changes(log: Log, partition: int) -> Changes:
    """The settings of a partition by the offset they count from, as its change records say."""
    records = [KeyValue(r.offset, r.key or b"", r.value) for r in read(log, Channel.CHECKPOINTS, partition)]
    kinds = ChangeKey | PromotionKey
    found = [decode_change(record) for record in records if isinstance(parse_key(record.key), kinds)]
    return [(change.offset, PartitionConfig.from_dict(change.new)) for change in found]


def read(log: Log, channel: Channel, partition: int) -> Iterable[Record]:
    """Everything committed on one partition."""
    ends = log.ends(channel, partition)
    return log.read(channel, partition, ends.begin, ends.stable)


def difference(name: str, want: Sequence[Plain], have: Sequence[Plain]) -> list[str]:
    """In one line what is wrong with a partition, nothing when all is well."""
    want, have = [_comparable(item) for item in want], [_comparable(item) for item in have]
    if want == have:
        return []
    wanted, got = Counter(map(_offset, want)), Counter(map(_offset, have))
    lost, doubled = sum((wanted - got).values()), sum((got - wanted).values())
    altered = sum(item not in have for item in want[:100]) if not lost + doubled else 0
    at = next((i for i, (a, b) in enumerate(zip(want, have, strict=False)) if a != b), min(len(want), len(have)))
    here = f"wanted {want[at : at + 1]}, found {have[at : at + 1]}"
    return [f"{name}: {lost} lost, {doubled} doubled, {altered} altered; the first difference is at {at}: {here}"]


def _plain(output: Output) -> Plain:
    return output.key, output.value, output.headers, output.timestamp_ms


def _comparable(item: Plain) -> Plain:
    key, value, headers, timestamp_ms = item
    return key, value, tuple(tuple(header) for header in headers), timestamp_ms  # type: ignore[misc]


def _offset(item: Plain) -> bytes | None:
    return next((content for name, content in item[2] if name == OFFSET_HEADER), None)
