"""A worker driven from outside, one turn at a time: no thread, no signal, no sleep."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from npstream.errors import Retryable, StateCorrupt
from npstream.observe import Observer
from npstream.port import Broker, FinishCommit, Listener
from npstream.records import Batch, Phase, Reading, Share
from npstream.testing import MortalBroker
from npstream.worker import Cadence, Limits, Worker
from tests.partition.builders import config, mixed
from tests.stage.stage import Stage, on_file
from tests.worker.test_worker import decisions, oracle


class Phases(Observer):
    """Writes down each new phase of partition 0."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def restoring(self, partition: int) -> None:
        self._note(partition, Phase.RESTORING)

    def replaying(self, reading: Reading) -> None:
        self._note(reading.partition, reading.phase)

    def observed(self, reading: Reading) -> None:
        self._note(reading.partition, reading.phase)

    def paused(self, partition: int, reason: str) -> None:
        self._note(partition, Phase.PAUSED)

    def _note(self, partition: int, phase: Phase) -> None:
        if partition == 0 and self.seen[-1:] != [phase]:
            self.seen.append(phase)


class Seconds:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.5
        return self.now


def driven(bench: Stage, observer: Observer, wrap: Callable[[Broker], Broker] = lambda broker: broker) -> Worker:
    """A worker that nobody runs."""
    limits, cadence = Limits(batch_max=100, poll_s=0.0), Cadence(every_events=250, every_seconds=1e9)
    return bench.worker(config(), threading.Event(), observer, limits, cadence=cadence, wrap=wrap, clock=Seconds())


def test_turns_made_by_hand_publish_what_a_run_does(tmp_path: Path) -> None:
    """Seven turns of a hundred events decide all of them; leaving writes the last checkpoint."""
    records = mixed(600)
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, records)
    phases = Phases()
    worker = driven(bench, phases)

    waits = [worker.turn() for _ in range(7)]
    worker.leave()

    assert waits == [0.0] * 7
    assert decisions(bench) == oracle(records)
    assert phases.seen == [Phase.RESTORING, Phase.FIRST_COMMIT_DUE, Phase.LIVE]


class Failing(MortalBroker):
    """Fails its third poll of every session."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, lambda: None)
        self._polls = 0

    def poll(self, max_records: int, timeout_s: float) -> list[Batch]:
        self._polls += 1
        if self._polls == 3:
            raise Retryable("injected")
        return super().poll(max_records, timeout_s)


def test_a_turn_that_fails_says_how_long_to_wait_and_the_next_one_restores(tmp_path: Path) -> None:
    """It neither raises nor sleeps; the session after it replays to what was committed."""
    records = mixed(600)
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, records)
    phases = Phases()
    worker = driven(bench, phases, Failing)

    waits = [worker.turn() for _ in range(6)]

    assert waits == [0.0, 0.0, 0.2, 0.0, 0.0, 0.5]  # longer, since the second session committed nothing
    session = [Phase.RESTORING, Phase.REPLAYING, Phase.LIVE]
    assert phases.seen == [Phase.RESTORING, Phase.FIRST_COMMIT_DUE, Phase.LIVE, *session]
    assert decisions(bench) == oracle(records)[: len(decisions(bench))]


class Down(MortalBroker):
    """Fails every poll until it is `up`."""

    up = False

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, lambda: None)

    def poll(self, max_records: int, timeout_s: float) -> list[Batch]:
        if not Down.up:
            raise Retryable("injected")
        return super().poll(max_records, timeout_s)


def test_the_wait_grows_with_each_failure_and_starts_over_after_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a fifth of a second to five seconds and no longer; a commit in between makes the next one short again."""
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, mixed(50))
    worker = driven(bench, Observer(), Down)

    waits = [worker.turn() for _ in range(7)]
    monkeypatch.setattr(Down, "up", True)
    worker.turn()
    monkeypatch.setattr(Down, "up", False)

    assert waits == [0.2, 0.5, 1.0, 2.0, 5.0, 5.0, 5.0]
    assert [worker.turn() for _ in range(2)] == [0.2, 0.5]


class Unreadable(MortalBroker):
    """Reports after its first poll that partition 0 cannot be read any further."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, lambda: None)
        self._polls = 0

    def subscribe(self, listener: Listener) -> None:
        self._listener = listener
        super().subscribe(listener)

    def start_commit(self, shares: Sequence[Share]) -> FinishCommit:
        assert [share.partition for share in shares if self._polls > 2] in ([], [1]), "a paused partition publishes"
        return super().start_commit(shares)

    def poll(self, max_records: int, timeout_s: float) -> list[Batch]:
        self._polls += 1
        if self._polls == 2:
            self._listener.on_failed(0, StateCorrupt("injected"))
        return super().poll(max_records, timeout_s)


def test_what_the_worker_has_paused_the_broker_does_not_read(tmp_path: Path) -> None:
    """The phase is kept in one place: the broker asks for it and hands out nothing more of that partition."""
    bench = on_file(tmp_path / "log.db", partitions=2)
    records = mixed(600)
    for partition in (0, 1):
        bench.feed(partition, records)
    phases = Phases()
    worker = driven(bench, phases, Unreadable)

    for _ in range(12):
        worker.turn()
    worker.leave()

    assert phases.seen[-1] == Phase.PAUSED
    assert 0 < len(decisions(bench, 0)) < len(decisions(bench, 1)) == len(oracle(records))
