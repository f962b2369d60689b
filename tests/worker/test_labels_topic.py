"""Labels on a topic of their own, with a worker on an embedded log: the recorded merge explains everything."""

from collections.abc import Sequence
from contextlib import closing
from itertools import count, pairwise
from pathlib import Path

import pytest

from npstream.codec.envelope import LABELS_HEADER, OFFSET_HEADER
from npstream.codec.position import encode_position
from npstream.errors import Fatal
from npstream.history.audit import Verdict, audit
from npstream.history.coverage import cover
from npstream.history.rebuild import Past, read_past
from npstream.partition import PartitionConfig
from npstream.port import FinishCommit
from npstream.records import Channel, Merge, Output, Position, Record, Share, Topics
from npstream.testing import MortalBroker
from npstream.worker import Cadence
from tests.embedded import retention
from tests.partition.builders import config, processor, two_topics, with_labels_topic
from tests.stage.stage import Plan, PowerCut, Stage, on_file

TOPICS = Topics("events", "decisions", "dead", "checkpoints", "labels")
PUBLISHED = (Channel.DECISIONS, Channel.DEAD_LETTERS)

Plain = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]


def bench_with(path: Path, events: Sequence[Record], labels: Sequence[Record], partitions: int = 1) -> Stage:
    """A log with these in each partition."""
    bench = on_file(path, partitions, TOPICS)
    for partition in range(partitions):
        bench.feed(partition, events)
        bench.feed(partition, labels, Channel.LABELS)
    return bench


def published(bench: Stage, channel: Channel, partition: int = 0) -> list[Plain]:
    """What the worker published, headers as a tuple."""
    return [(key, value, tuple(headers), ts) for key, value, headers, ts in bench.published(channel, partition)]


def recorded(bench: Stage, labels: Sequence[Record], partition: int = 0) -> list[Merge]:
    """The merge that the decisions record."""
    marks = [(-1, 0)]
    for _, _, headers, _ in bench.published(Channel.DECISIONS, partition):
        named = dict(headers)
        marks.append((int(named[OFFSET_HEADER] or b""), int(named[LABELS_HEADER] or b"")))
    return [Merge(offset, labels[old:new]) for (_, old), (offset, new) in pairwise(marks) if new > old]


def expected(
    events: Sequence[Record], merges: Sequence[Merge], channel: Channel, using: PartitionConfig, partition: int = 0
) -> list[Plain]:
    """What one undisturbed processor publishes that follows a merge."""
    outputs: list[Output] = processor(using, partition).process(events, merges).outputs
    return [
        (output.key, output.value, tuple(output.headers), output.timestamp_ms)
        for output in outputs
        if output.channel == channel
    ]


def check(bench: Stage, events: Sequence[Record], labels: Sequence[Record], partition: int = 0) -> list[Merge]:
    """Everything published is what the recorded merge leads to, and audit proves it; returns the merge."""
    merges = recorded(bench, labels, partition)
    for channel in PUBLISHED:
        want = expected(events, merges, channel, with_labels_topic(), partition)
        assert published(bench, channel, partition) == want
    position = position_of(bench, partition)
    assert position is not None
    with closing(bench.log()) as log:
        verdict = audited(read_past(log, "g", TOPICS.events, partition, None, TOPICS.labels), position)
    assert (verdict.holds, verdict.proof) == (True, True)
    return merges


def audited(past: Past, position: Position) -> Verdict:
    """The audit of everything decided."""
    coverage = cover(past, None, position.next_offset, position.next_offset)
    assert coverage is not None
    assert coverage.is_whole
    return audit(past, coverage, position)


def position_of(bench: Stage, partition: int = 0) -> Position | None:
    """What is committed."""
    return bench.positions()[partition]


def test_an_undisturbed_run_publishes_its_merge(tmp_path: Path) -> None:
    """All labels are learned that came before the last observation; decisions and audit agree on the order."""
    events, labels = two_topics(600)
    bench = bench_with(tmp_path / "log.db", events, labels, partitions=2)
    bench.decide(with_labels_topic())

    for partition in (0, 1):
        merges = check(bench, events, labels, partition)
        assert len(merges) > 3
        assert merges[-1].next_label == len(labels)


def test_labels_of_a_partition_that_lags_come_in_the_order_of_time(tmp_path: Path) -> None:
    """While there are events to read, a batch is preceded by the labels that are not younger than its first event."""
    events, labels = two_topics(600)
    bench = bench_with(tmp_path / "log.db", events, labels)
    bench.decide(with_labels_topic(), batch_max=50)

    for merge in recorded(bench, labels)[:-3]:
        assert max(label.timestamp_ms for label in merge.records) <= events[merge.before].timestamp_ms


def disturbed(path: Path, fail_at: Sequence[int]) -> int:
    """Run with failures at these calls and compare; returns how many were met."""
    events, labels = two_topics(400)
    bench = bench_with(path, events, labels)
    plan = Plan(fail_at)
    seen = bench.decide(with_labels_topic(), wrap=lambda broker: MortalBroker(broker, plan.step))

    assert check(bench, events, labels)[-1].next_label == len(labels)
    return seen.restarts


def test_a_failure_at_any_call_leaves_no_trace(tmp_path: Path) -> None:
    """Whichever broker call fails, before or after it took effect, reading labels included, nothing shows it."""
    calls = next(n for n in count(1) if disturbed(tmp_path / f"{n}.db", [n]) == 0) - 1

    assert calls > 10


@pytest.mark.parametrize("commits", [2, 4, 6])
def test_a_crash_is_replayed_with_the_recorded_merge(tmp_path: Path, commits: int) -> None:
    """The position holds the merges since the snapshot; the replay follows them and ends on the proof."""
    events, labels = two_topics(600)
    bench = bench_with(tmp_path / "log.db", events, labels)
    rare = Cadence(every_events=10**9, every_seconds=1e9)
    with pytest.raises(RuntimeError, match="power cut"):
        bench.decide(with_labels_topic(), wrap=lambda broker: PowerCut(broker, commits), cadence=rare, batch_max=60)
    position = position_of(bench)
    assert position is not None
    assert position.labels is not None
    assert len(position.labels.merges) == commits - 2
    seen = bench.decide(with_labels_topic(), cadence=rare)

    assert seen.replays[0] == position.next_offset
    check(bench, events, labels)


def test_many_merges_make_a_checkpoint_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The position never grows beyond what brokers take, however rare checkpoints are."""
    monkeypatch.setattr("npstream.worker.partition_task.MERGES_MAX", 60)
    events, labels = two_topics(600)
    bench = bench_with(tmp_path / "log.db", events, labels)
    sizes: list[int] = []

    class Measured(MortalBroker):
        def start_commit(self, shares: Sequence[Share]) -> FinishCommit:
            sizes.extend(len(encode_position(share.position)) for share in shares)
            return super().start_commit(shares)

    rare = Cadence(every_events=10**9, every_seconds=1e9)
    bench.decide(with_labels_topic(), wrap=lambda broker: Measured(broker, lambda: None), cadence=rare, batch_max=7)

    assert max(sizes) < 300
    assert any(later < earlier - 40 for earlier, later in pairwise(sizes))
    check(bench, events, labels)


def test_a_checkpoint_is_due_by_events_and_labels(tmp_path: Path) -> None:
    """After so many of both since the one before, neither sooner nor later; and one when the worker leaves."""
    events, labels = two_topics(600)
    bench = bench_with(tmp_path / "log.db", events, labels)
    marks: list[tuple[int, bool]] = []

    class Watched(MortalBroker):
        def start_commit(self, shares: Sequence[Share]) -> FinishCommit:
            for share in shares:
                assert share.position.labels is not None
                marks.append((share.position.next_offset + share.position.labels.next_label, bool(share.chunks)))
            return super().start_commit(shares)

    every = Cadence(every_events=150, every_seconds=1e9)
    bench.decide(with_labels_topic(), wrap=lambda broker: Watched(broker, lambda: None), cadence=every, batch_max=20)

    due, saved = [True], marks[0][0]
    for reached, _ in marks[1:-1]:
        due.append(reached - saved >= 150)
        saved = reached if due[-1] else saved
    assert [made for _, made in marks] == [*due, True]
    assert due.count(True) > 3


def test_labels_that_were_deleted_before_they_were_learned_pause_the_partition(tmp_path: Path) -> None:
    """As for events: the reason says where and what to do."""
    events, labels = two_topics(400)
    bench = bench_with(tmp_path / "log.db", events[:200], labels)
    bench.decide(with_labels_topic(), batch_max=20)
    position = position_of(bench)
    assert position is not None
    assert position.labels is not None
    bench.feed(0, labels, Channel.LABELS)
    with closing(bench.log()) as log:
        retention.trim(log, Channel.LABELS, 0, position.labels.next_label + 1)
    bench.feed(0, events[200:])

    with pytest.raises(Fatal, match=r"labels partition 0: offset \d+ is outside the records kept.*npstream reset"):
        bench.decide(with_labels_topic())


def test_a_labels_topic_can_be_added_to_a_group(tmp_path: Path) -> None:
    """From the change on decisions carry its offset; the whole range is still proven by audit."""
    events, labels = two_topics(400)
    bench = bench_with(tmp_path / "log.db", events[:200], labels)
    bench.decide(config())
    bench.feed(0, events[200:])
    bench.decide(with_labels_topic())

    position = position_of(bench)
    assert position is not None
    with closing(bench.log()) as log:
        verdict = audited(read_past(log, "g", "events", 0, None, "labels"), position)
    assert (verdict.holds, verdict.proof, verdict.changes) == (True, True, 1)
    assert LABELS_HEADER in dict(bench.published(Channel.DECISIONS)[-1][2])
    assert LABELS_HEADER not in dict(bench.published(Channel.DECISIONS)[0][2])
