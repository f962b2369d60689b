"""The lag of a partition: in records and in seconds, aware of transactions.

The ends of the log are asked for every few seconds on a thread of its own, with
clients of its own, so that neither a slow broker nor a dead one is felt by the
loop. The end that counts is the stable one: what an undecided transaction holds
back cannot be read by anybody yet, and one that nobody ends is named in the log.

A record has waited since it came, which nobody wrote down. Its own time is older,
so its age is a bound, where it is a time at all: producers also send counters. And
what lies beyond an end that was seen came after that look.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import structlog

from npstream.errors import NpstreamError
from npstream.monitor.rounds import Rounds
from npstream.monitor.status import PartitionStatus
from npstream.monitor.stuck import Stuck, StuckWatch
from npstream.port import Ends, Log, Place
from npstream.records import Channel

INTERVAL_S = 5.0
_DUTY, _INTERVAL_MAX_S = 10, 30.0
"""A round that takes long is followed by a pause ten times as long, within reason."""
_KEEP_S = 60.0
"""Ends older than this, because brokers are away, are no longer shown."""
_FIRST_LOG_MS = 1_293_840_000_000
"""1 January 2011, when Kafka was first released: no record has waited in a log for longer."""
_SKEW_MS = 60_000
"""Clocks of producers may be ahead by this much."""


def waited_s(now_ms: float, timestamp_ms: int) -> float | None:
    """How long a record of this event time has waited at most; None when that cannot be a time of its arrival."""
    if not _FIRST_LOG_MS <= timestamp_ms <= now_ms + _SKEW_MS:
        return None
    return max(0.0, (now_ms - timestamp_ms) / 1000)


@dataclass(frozen=True, slots=True)
class Lag:
    """What one partition has before it. `end` is the stable end.

    `seconds` bounds the wait of the oldest record from above; where nothing does,
    they are how long this worker has seen it wait. `labels` are records of the labels
    topic that are not learned, None where there is none.
    """

    records: int
    seconds: float
    end: int
    stuck: bool
    labels: int | None = None


@dataclass(frozen=True, slots=True)
class _Ahead:
    """What was found from a position to a stable end: nothing, or a record of this event time, or not looked (None)."""

    position: int
    stable: int
    nothing: bool
    timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class _Mark:
    """A stable end and when it was seen: records below it were there then, the others came later."""

    end: int
    at: float


@dataclass(frozen=True, slots=True)
class _Seen:
    """One partition's ends as they were asked for, and what lay before them.

    Whatever is not handled came after `passed`, an end that the worker has reached;
    `mark` is the one that it has to reach next.
    """

    ends: Ends
    at: float
    passed: _Mark | None
    mark: _Mark
    ahead: _Ahead
    labels: _Ahead | None


class LagWatch:
    """Asks for ends and computes lags. `lags` may be called from any thread.

    `connect` opens a log; `owned` returns the partitions to look at; `clock` is
    monotonic, `wall` seconds since the epoch. `stuck` finds which of the topics that a
    worker reads, events and checkpoints, are held back by a transaction that hangs.
    """

    def __init__(
        self,
        connect: Callable[[], Log],
        owned: Callable[[], Mapping[int, PartitionStatus]],
        clock: Callable[[], float],
        wall: Callable[[], float],
        stuck: StuckWatch | None = None,
    ) -> None:
        self._connect = connect
        self._owned = owned
        self._clock = clock
        self._wall = wall
        self._watch = stuck
        self._stuck: Mapping[Place, Stuck] = {}
        self._seen: Mapping[int, _Seen] = {}
        self._log: Log | None = None
        self._rounds = Rounds("npstream-lag", self.look, self.disconnect, self._failed, clock, _pause_s)
        self._logger = structlog.get_logger("npstream.monitor")

    def start(self) -> None:
        """Begin to ask."""
        self._rounds.start()

    def stop(self, timeout_s: float) -> None:
        """Ask no more; waits at most `timeout_s` for a request that is on its way."""
        self._rounds.stop(timeout_s)

    def _failed(self, error: Exception) -> None:
        if isinstance(error, NpstreamError):
            self._logger.warning("log ends unknown", cause=str(error))
        else:
            self._logger.error("log ends unknown", exc_info=error)

    def look(self) -> None:
        """Ask once for the ends of every owned partition. Raises what the log raises."""
        if self._log is None:
            self._log = self._connect()
        owned = self._owned()
        # Only a restore reads checkpoints, but when it waits for them, that must be reported.
        read = (Channel.EVENTS,) if self._watch is None else (Channel.EVENTS, Channel.CHECKPOINTS)
        places = [(channel, partition) for channel in read for partition in owned]
        places += [(Channel.LABELS, known.partition) for known in owned.values() if _next_label(known) is not None]
        ends = self._log.all_ends(places)
        seen = {}
        for partition, status in owned.items():
            if self._rounds.stopping:
                return
            if status.reading is not None:
                labels = self._look_at_labels(self._log, status, ends.get((Channel.LABELS, partition)))
                events, position = ends[Channel.EVENTS, partition], status.reading.next_offset
                seen[partition] = self._look_at(self._log, events, partition, position, labels)
        self._seen = seen
        if self._watch is not None:
            self._name_stuck({item.place: item for item in self._watch.look(self._clock(), ends)}, ends.keys())

    def _name_stuck(self, found: Mapping[Place, Stuck], looked_at: Collection[Place]) -> None:
        """Say in the worker's log which partitions are held back for too long, and when they no longer are."""
        for place, item in found.items():
            if place not in self._stuck:
                self._logger.error(
                    "stuck transaction",
                    topic=item.topic,
                    partition=item.partition,
                    offset=item.stable,
                    remedy=str(item),
                )
        for place, item in self._stuck.items():
            if place in looked_at and place not in found:
                self._logger.info("transaction no longer stuck", topic=item.topic, partition=item.partition)
        self._stuck = found

    def _look_at_labels(self, log: Log, status: PartitionStatus, ends: Ends | None) -> _Ahead | None:
        next_label, before = _next_label(status), self._seen.get(status.partition)
        if ends is None or next_label is None:
            return None
        # The first label is meant by 0, whatever its offset.
        position = max(next_label, ends.begin)
        place = Channel.LABELS, status.partition
        return _look_ahead(log, place, position, ends.stable, None if before is None else before.labels)

    def _look_at(self, log: Log, ends: Ends, partition: int, position: int, labels: _Ahead | None) -> _Seen:
        now = self._clock()
        before = self._seen.get(partition)
        place = Channel.EVENTS, partition
        ahead = _look_ahead(log, place, position, ends.stable, None if before is None else before.ahead)
        here = _Mark(ends.stable, now)
        if ahead.nothing:
            return _Seen(ends, now, here, here, ahead, labels)
        if before is None:
            return _Seen(ends, now, None, here, ahead, labels)
        if position >= before.mark.end:
            return _Seen(ends, now, before.mark, here, ahead, labels)
        return _Seen(ends, now, before.passed, before.mark, ahead, labels)

    def lags(self) -> dict[int, Lag]:
        """The lag of each owned partition whose end is known."""
        now = self._clock()
        owned, seen = self._owned(), self._seen
        stuck = {partition for _, partition in self._stuck}
        return {
            partition: self._lag(status, seen[partition], now, partition in stuck)
            for partition, status in owned.items()
            if partition in seen and status.reading is not None and now - seen[partition].at <= _KEEP_S
        }

    def _lag(self, status: PartitionStatus, seen: _Seen, now: float, stuck: bool) -> Lag:
        assert status.reading is not None
        position, ahead = status.reading.next_offset, seen.ahead
        unmoved = position == ahead.position
        records = 0 if unmoved and ahead.nothing else max(0, seen.ends.stable - position)
        at_ms = ahead.timestamp_ms if unmoved and ahead.timestamp_ms is not None else status.last_timestamp_ms
        passed = seen.mark if position >= seen.mark.end else seen.passed
        bounds = [] if passed is None else [now - passed.at]
        if at_ms is not None and (age_s := waited_s(self._wall() * 1000, at_ms)) is not None:
            bounds.append(age_s)
        seconds = min(bounds, default=now - seen.mark.at)
        labels = None if seen.labels is None else _labels_left(status, seen.labels)
        return Lag(records, seconds if records else 0.0, seen.ends.stable, stuck, labels)

    def disconnect(self) -> None:
        """Close the connections; the next look opens them again."""
        if self._log is not None:
            self._log.close()
            self._log = None
        if self._watch is not None:
            self._watch.forget()


def _pause_s(took_s: float) -> float:
    return min(max(INTERVAL_S, _DUTY * took_s), _INTERVAL_MAX_S)


def _next_label(status: PartitionStatus) -> int | None:
    return None if status.reading is None else status.reading.next_label


def _labels_left(status: PartitionStatus, ahead: _Ahead) -> int:
    position = max(_next_label(status) or 0, ahead.position)
    return 0 if ahead.nothing and position == ahead.position else max(0, ahead.stable - position)


def _look_ahead(log: Log, place: Place, position: int, stable: int, before: _Ahead | None) -> _Ahead:
    """What lies before a position; the log is read only when there was no progress since the last look.

    Offsets may hold no record at all, only the marks that transactions leave, and
    an idle partition must not look late because of them.
    """
    if position >= stable:
        return _Ahead(position, stable, True, None)
    if before is None or before.position != position:
        return _Ahead(position, stable, False, None)
    if before.stable == stable and (before.nothing or before.timestamp_ms is not None):
        return before
    first = next(log.read(*place, position, stable), None)
    return _Ahead(position, stable, first is None, None if first is None else first.timestamp_ms)
