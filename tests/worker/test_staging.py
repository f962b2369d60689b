"""A full batch is committed while the next is processed: in which order, and what if ownership ends meanwhile."""

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import pytest

from npstream.errors import Fatal, StateCorrupt
from npstream.partition import Step
from npstream.port import Broker, FinishCommit, Listener
from npstream.records import Batch, Pointer, Record, Share
from npstream.testing import MortalBroker
from npstream.worker import Cadence, PartitionTask
from tests.partition.builders import config, labelled
from tests.stage.stage import PowerCut, Stage, on_file
from tests.worker.test_worker import decisions, oracle

BATCH = 100


def frozen_clock() -> float:
    """A clock that never moves: it is never time to report on partitions."""
    return 0.0


def run(bench: Stage, wrap: Callable[[Broker], Broker], cadence: Cadence | None = None) -> None:
    """A worker that stages every full batch."""
    bench.decide(config(), wrap=wrap, cadence=cadence, batch_max=BATCH, clock=frozen_clock)


class Diary(MortalBroker):
    """A broker that writes down what is asked of it, and when a commit is finished."""

    def __init__(self, broker: Broker, lines: list[str]) -> None:
        super().__init__(broker, lambda: None)
        self._lines = lines

    def poll(self, max_records: int, timeout_s: float) -> list[Batch]:
        """Note how many records came."""
        batches = super().poll(max_records, timeout_s)
        self._lines.append(f"poll {sum(len(records) for _, records in batches)}")
        return batches

    def start_commit(self, shares: Sequence[Share]) -> FinishCommit:
        """Note the offset that is committed, now and when the commit is finished."""
        finish, at = super().start_commit(shares), shares[0].position.next_offset
        self._lines.append(f"start {at}")
        return lambda: self._note(finish, at)

    def _note(self, finish: FinishCommit, at: int) -> dict[int, Pointer]:
        self._lines.append(f"finish {at}")
        return finish()


def test_a_full_batch_is_committed_while_the_next_is_processed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commit starts after the next poll and ends after what that brought is processed; no poll in between."""
    lines: list[str] = []
    honest = PartitionTask.process

    def process(self: PartitionTask, records: list[Record], labels: Sequence[Record]) -> Step:
        lines.append(f"process {len(records)}")
        return honest(self, records, labels)

    monkeypatch.setattr(PartitionTask, "process", process)
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, labelled(2 * BATCH + 50))
    run(bench, lambda broker: Diary(broker, lines))

    first = lines.index(f"poll {BATCH}")
    assert lines[first:] == [
        f"poll {BATCH}",
        "start 0",  # a first state is committed before the first decision
        "finish 0",
        f"process {BATCH}",
        f"poll {BATCH}",
        f"start {BATCH}",
        f"process {BATCH}",
        f"finish {BATCH}",
        "poll 50",
        f"start {2 * BATCH}",
        "process 50",
        f"finish {2 * BATCH}",
        f"start {2 * BATCH + 50}",  # not full: nobody may be coming, so it is not kept waiting
        f"finish {2 * BATCH + 50}",
    ]


def test_once_a_second_a_full_batch_is_committed_at_once(tmp_path: Path) -> None:
    """So that there is a moment at which what is reported of a partition is what is committed of it."""
    lines: list[str] = []
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, labelled(2 * BATCH))
    seconds = count(step=2.0)
    bench.decide(config(), wrap=lambda broker: Diary(broker, lines), batch_max=BATCH, clock=lambda: next(seconds))

    first = lines.index(f"poll {BATCH}")
    assert lines[first + 3 : first + 7] == [f"start {BATCH}", f"finish {BATCH}", f"poll {BATCH}", f"start {2 * BATCH}"]


class Ending(MortalBroker):
    """Ownership ends inside the second poll, when a full batch is staged; in the third the worker dies."""

    def __init__(self, broker: Broker, end: Callable[[Listener], None]) -> None:
        super().__init__(broker, lambda: None)
        self._end = end
        self._polls = 0

    def subscribe(self, listener: Listener) -> None:
        """Keep the listener."""
        self._listener = listener
        super().subscribe(listener)

    def poll(self, max_records: int, timeout_s: float) -> list[Batch]:
        """Call the listener, or die."""
        self._polls += 1
        if self._polls == 3:
            raise RuntimeError("power cut")
        batches = super().poll(max_records, timeout_s)
        if self._polls == 2:
            self._end(self._listener)
            return []
        return batches


def test_a_staged_batch_is_published_when_its_partition_is_revoked(tmp_path: Path) -> None:
    """The owner may commit for the last time: the next one has nothing to replay."""
    records = labelled(3 * BATCH)
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, records)
    with pytest.raises(RuntimeError, match="power cut"):
        bench.decide(
            config(),
            wrap=lambda broker: Ending(broker, lambda it: it.on_revoked([0])),
            batch_max=BATCH,
            clock=frozen_clock,
        )

    assert decisions(bench) == oracle(records[:BATCH])
    assert bench.decide(config()).replays == []
    assert decisions(bench) == oracle(records)


def test_a_staged_batch_is_dropped_when_its_partition_is_lost(tmp_path: Path) -> None:
    """Another worker owns it by now and decides those events itself."""
    records = labelled(3 * BATCH)
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, records)
    with pytest.raises(RuntimeError, match="power cut"):
        bench.decide(
            config(),
            wrap=lambda broker: Ending(broker, lambda it: it.on_lost([0])),
            batch_max=BATCH,
            clock=frozen_clock,
        )

    assert decisions(bench) == []
    bench.decide(config())
    assert decisions(bench) == oracle(records)


def test_a_staged_batch_is_published_when_its_partition_cannot_be_read_on(tmp_path: Path) -> None:
    """Its events may be deleted by now, so that nobody could decide them again."""
    records = labelled(3 * BATCH)
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, records)
    gone = StateCorrupt("deleted")
    with pytest.raises(Fatal, match="deleted"):
        run(bench, lambda broker: Ending(broker, lambda it: it.on_failed(0, gone)))

    assert decisions(bench) == oracle(records[:BATCH])


def test_a_batch_points_to_the_snapshot_of_the_commit_before_it(tmp_path: Path) -> None:
    """Where a snapshot lies is known when its commit is finished, and the next position must lead there."""
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, labelled(4 * BATCH))
    every_other = Cadence(every_events=2 * BATCH, every_seconds=1e9)
    with pytest.raises(RuntimeError, match="power cut"):  # after the first commit and three batches
        bench.decide(
            config(), wrap=lambda broker: PowerCut(broker, 4), cadence=every_other, batch_max=BATCH, clock=frozen_clock
        )

    assert bench.decide(config()).replays == [BATCH]
