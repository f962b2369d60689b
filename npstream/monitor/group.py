"""A whole group as it has committed, seen from outside: every partition, whoever works on it.

Positions and ends of the log are asked for every few seconds; the state of a partition
is read when there is a newer snapshot of it. Nothing is written, and nobody is joined.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog

from npstream.errors import NpstreamError, StateCorrupt
from npstream.model import Model
from npstream.monitor.document import status_document
from npstream.monitor.lag import Lag, LagWatch
from npstream.monitor.rounds import Rounds
from npstream.monitor.status import Identity, PartitionStatus, WorkerStatus
from npstream.partition.reading import reading_of
from npstream.port import Log, StateReader
from npstream.records import Channel, Phase, Position
from npstream.state import processor_to_look_at, snapshots_alone

_LOOK_S, _DUTY = 2.0, 4
"""Time between two looks; a look that takes long is followed by a pause four times as long."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One partition: where it is, and what its newest snapshot says. `problem`: why that cannot be read."""

    position: Position | None
    status: PartitionStatus
    model: Model | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """What a round has found. `problem`: why it was the last one for now."""

    seen: Mapping[int, Seen]
    members: tuple[str, ...] = ()
    problem: str = ""


class GroupWatch:
    """Looks at a group again and again on a thread of its own. `current` and `document` are for any thread.

    `open_log` and `open_state` connect; after an error both are opened again.
    """

    def __init__(
        self,
        identity: Identity,
        open_log: Callable[[], Log],
        open_state: Callable[[], StateReader],
        clock: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._identity = identity
        self._open_log, self._open_state = open_log, open_state
        self._clock = clock
        self._log: Log | None = None
        self._state: StateReader | None = None
        self._lag = LagWatch(open_log, lambda: self.statuses, clock, wall)
        self._rounds = Rounds("npstream-group", self.look, self.close, self._failed, clock, _pause_s)
        self.current = Look({})

    @property
    def statuses(self) -> Mapping[int, PartitionStatus]:
        """Every partition whose state is known."""
        return {number: seen.status for number, seen in self.current.seen.items() if seen.status.reading is not None}

    def start(self) -> None:
        """Begin to look."""
        self._rounds.start()

    def stop(self, timeout_s: float) -> None:
        """Look no more; waits at most `timeout_s` for a look that has begun."""
        self._rounds.stop(timeout_s)

    def _failed(self, error: Exception) -> None:
        problem = str(error)
        if not isinstance(error, NpstreamError):
            structlog.get_logger("npstream.monitor").error("group unknown", exc_info=error)
            problem = "the last look failed; the log of this command says why"
        self.current = replace(self.current, problem=problem)

    def connect(self) -> int:
        """Open the clients, where they are not open; return how many partitions there are. Raises what they raise."""
        self._log = self._log or self._open_log()
        self._state = self._state or self._open_state()
        return self._log.partitions(Channel.EVENTS)

    def look(self) -> None:
        """Look once at everything. Raises what the clients raise."""
        partitions = self.connect()
        assert self._state is not None
        positions = self._state.all_committed(range(partitions))
        seen = {number: self._moved(number, position) for number, position in positions.items()}
        stale = {number: at.position for number, at in seen.items() if at.position is not None and self._is_stale(at)}
        identity = self._identity
        for number, found in snapshots_alone(self._state, identity.group, identity.topic, stale):
            seen[number] = self._read(seen[number], found)
        self.current = Look(dict(sorted(seen.items())), tuple(self._state.members()))
        self._lag.look()

    def _moved(self, number: int, position: Position | StateCorrupt | None) -> Seen:
        """What is known of a partition, at its position of now."""
        before = self.current.seen.get(number, Seen(None, PartitionStatus(number, Phase.LIVE, self._clock())))
        if isinstance(position, StateCorrupt):
            return replace(before, position=None, problem=str(position))
        if position is None or before.position is None:
            return Seen(position, replace(before.status, reading=None))
        if position.pointer.digest != before.position.pointer.digest:
            return Seen(position, before.status)  # its model and the problem, if any, are those of the older snapshot
        status = before.status
        if status.reading is not None and position.next_offset != status.reading.next_offset:
            status = replace(status, committed_at=self._clock(), reading=_at(status, position))
        return replace(before, position=position, status=status)

    @staticmethod
    def _is_stale(seen: Seen) -> bool:
        return seen.model is None and not seen.problem

    def _read(self, before: Seen, found: Any) -> Seen:
        assert before.position is not None
        try:
            if isinstance(found, StateCorrupt):
                raise found
            processor, waiting = processor_to_look_at(found)
        except StateCorrupt as error:
            return replace(before, problem=str(error))
        reading = reading_of(processor, Phase.LIVE, 0, processor.next_offset)
        reading = replace(reading, pending=reading.pending + waiting)
        size = sum(map(len, found.blobs.values()))
        now, moved = self._clock(), before.status.reading is not None
        committed_at = now if moved else before.status.committed_at
        status = replace(before.status, reading=reading, checkpoint_bytes=size, committed_at=committed_at)
        return Seen(before.position, replace(status, reading=_at(status, before.position)), processor.model)

    def document(self) -> dict[str, Any]:
        """The group for the page, in the form of a worker's `/status`."""
        look = self.current
        status = WorkerStatus({number: seen.status for number, seen in look.seen.items()})
        document = status_document(self._identity, status, self.lags(), self._clock(), ready=bool(look.seen))
        for shown in document["partitions"]:
            shown |= _as_committed(shown, look.seen[shown["partition"]])
        problems = [f"The group cannot be read, what is shown is older: {look.problem}"] if look.problem else []
        return {"source": "group", "members": list(look.members), "problems": problems} | document

    def lags(self) -> Mapping[int, Lag]:
        """The lag of each partition whose end is known, behind its committed position."""
        return self._lag.lags()

    def close(self) -> None:
        """Close the connections; the next look opens them again."""
        for client in (self._log, self._state):
            if client is not None:
                client.close()
        self._log = self._state = None
        self._lag.disconnect()


def _pause_s(took_s: float) -> float:
    return max(_LOOK_S, _DUTY * took_s)


def _at(status: PartitionStatus, position: Position) -> Any:
    """The reading of the newest snapshot at the committed position, which has come further."""
    assert status.reading is not None
    labels = None if position.labels is None else position.labels.next_label
    return replace(status.reading, next_offset=position.next_offset, next_label=labels)


def _as_committed(shown: Mapping[str, Any], seen: Seen) -> dict[str, Any]:
    """What is otherwise seen from outside: no phase of a worker, and counts that are those of the snapshot."""
    if seen.problem:
        return {"phase": "unreadable", "reason": seen.problem}
    if seen.position is None or "events" not in shown:
        return {"phase": "not_started"}
    left = seen.position.next_offset - seen.position.pointer.next_offset
    return {"phase": "committed", "checkpoint_left": left, "events": shown["events"] + left}
