"""A worker on a real broker whose clients fail where they should, one case after another on the same topics.

What a case leaves behind the next one starts from, so that at the end every
event must have been decided exactly once, whatever failed on the way.
"""

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from npstream.errors import Fatal
from npstream.observe import Observer
from npstream.records import Channel, Share
from npstream.worker import Cadence, Limits
from tests.contracts.builders import eventually
from tests.kafka.faults import Fault, Faults, installed
from tests.stage.places import PARTITIONS, KafkaPlace
from tests.stage.running import RunningWorker
from tests.stage.stage import Stage
from tests.system import oracle
from tests.system.stream import stream, system_config

_ROUND = 12
"""Events of each partition in a case."""
_PATIENT_S = 15.0
"""An outage that lasts longer ends the worker: as many sessions as a partition has strikes fit in."""


@dataclass(frozen=True)
class Outcome:
    """How a case ended: what ended the worker, if anything did, and which partitions were paused or fully decided."""

    ended: BaseException | None
    paused: Mapping[int, str]
    decided: frozenset[int]
    hits: int


@dataclass
class _Watch(Observer):
    """Notes how far each partition is committed, and which are paused."""

    committed_to: dict[int, int] = field(default_factory=dict)
    pauses: dict[int, str] = field(default_factory=dict)

    def assigned(self, partition: int, seconds: float, replay_from: int, replay_to: int) -> None:
        self.committed_to[partition] = replay_to
        self.pauses.pop(partition, None)

    def committed(self, shares: list[Share], seconds: float) -> None:
        self.committed_to |= {share.partition: share.position.next_offset for share in shares}

    def paused(self, partition: int, reason: str) -> None:
        self.pauses[partition] = reason


class Cases:
    """Three partitions of a stage, and a worker for each case."""

    def __init__(self, place: KafkaPlace, folder: Path) -> None:
        kafka = {**place.settings()["kafka"], "connect_timeout_ms": 5_000}
        self._stage = Stage(place, folder, PARTITIONS, kafka=kafka)
        self._faults = Faults(place.topics.events)
        self._fed = 0
        self._config = system_config()
        self._events = {p: stream(20_000, seed=5, partition=p) for p in range(PARTITIONS)}
        self._log = place.log()
        self._stack = ExitStack()
        self._feed()  # its own clients are built here, before any can fail

    def __enter__(self) -> "Cases":
        self._stack.enter_context(installed(self._faults))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def case(self, fault: Fault, *, restarts: bool = False, recover_s: float = _PATIENT_S) -> Outcome:
        """Let a calm worker catch up, then let its calls fail; `restarts`: make it begin a new session first."""
        watch = _Watch()
        self._feed()
        with self._worker(watch, recover_s) as worker:
            try:
                self._catch_up(watch, worker)
                again = [Fault("consume", RuntimeError, forever=False)] if restarts else []
                self._faults.arm(*again, fault)
                self._feed()
                self._wait(watch, fault, worker)
                return Outcome(worker.ended, dict(watch.pauses), self._decided(watch), fault.hits)
            finally:
                self._faults.arm()

    def _worker(self, watch: _Watch, recover_s: float = _PATIENT_S) -> RunningWorker:
        stop = threading.Event()
        limits = Limits(batch_max=10, recover_s=recover_s)
        return RunningWorker(
            self._stage.worker(self._config, stop, watch, limits, cadence=Cadence(every_events=30)), stop
        )

    def _catch_up(self, watch: _Watch, worker: RunningWorker) -> None:
        eventually(lambda: not worker.running or self._decided(watch) == frozenset(range(PARTITIONS)))
        assert worker.ended is None, f"the worker ended although nothing failed: {worker.ended}"

    def _wait(self, watch: _Watch, fault: Fault, worker: RunningWorker) -> None:
        """Until the worker has ended, or every partition is decided or paused and the fault has been met."""

        def settled() -> bool:
            resting = self._decided(watch) | watch.pauses.keys()
            return not worker.running or (resting >= frozenset(range(PARTITIONS)) and fault.hits > 0)

        eventually(settled)

    def _feed(self) -> None:
        for partition, events in self._events.items():
            self._log.append(Channel.EVENTS, partition, events[self._fed : self._fed + _ROUND])
        self._fed += _ROUND

    def _decided(self, watch: _Watch) -> frozenset[int]:
        return frozenset(p for p, offset in watch.committed_to.items() if offset == self._fed)

    def compare(self) -> int:
        """Let a calm worker finish, then compare all that was published with the oracle; returns how many are equal."""
        watch = _Watch()
        with self._worker(watch) as worker:
            self._catch_up(watch, worker)
        assert worker.ended is None, worker.ended
        every: dict[int, oracle.Changes] = {partition: [(0, self._config)] for partition in range(PARTITIONS)}
        return oracle.compare(self._log, every, self._stage.place.group, self._stage.place.topics.events)


def is_fatal(outcome: Outcome) -> bool:
    """Whether the worker ended on purpose."""
    return isinstance(outcome.ended, Fatal)
