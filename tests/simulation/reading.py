"""The `Log` and the `StateReader` of a cluster in memory."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from npstream.codec.position import decode_position
from npstream.errors import Retryable, StateCorrupt, or_corrupt
from npstream.port import Ends, Place, Start
from npstream.records import Channel, Headers, KeyValue, Pointer, Position, Record, Topics
from tests.simulation.cluster import Cluster
from tests.simulation.partition_log import PartitionLog
from tests.simulation.requests import Requests

_STABLE_WAIT_S = 60.0
_SLICE_S = 0.5


class SimulatedLog:
    """Plain reading and writing, outside any group."""

    def __init__(self, cluster: Cluster, topics: Topics, requests: Requests) -> None:
        self._cluster = cluster
        self._names = topics.names()
        self._requests = requests

    def partitions(self, channel: Channel) -> int:
        return len(self._cluster.topic(self._names[channel]))

    def topic_id(self, channel: Channel = Channel.EVENTS) -> str:
        return f"id of {self._names[channel]}"

    def ends(self, channel: Channel, partition: int) -> Ends:
        return self._requests.make("log", lambda: self._partition(channel, partition).ends)

    def all_ends(self, places: Sequence[Place]) -> dict[Place, Ends]:
        return self._requests.make("log", lambda: {place: self._partition(*place).ends for place in places})

    def offset_at(self, partition: int, start: Start, channel: Channel = Channel.EVENTS) -> int:
        log = self._partition(channel, partition)
        if start == "earliest":
            return log.ends.begin
        if start == "latest":
            return log.ends.stable
        later = (record.offset for record in log.read(0, log.ends.stable) if record.timestamp_ms >= start)
        return next(later, log.ends.stable)

    def read(self, channel: Channel, partition: int, begin: int, end: int) -> Iterator[Record]:
        return iter(self._requests.make("log", lambda: list(self._partition(channel, partition).read(begin, end))))

    def read_all(self, ranges: Mapping[Place, tuple[int, int]]) -> Iterator[tuple[Place, Record | StateCorrupt]]:
        for place, (begin, end) in ranges.items():
            for record in self.read(*place, begin, end):
                yield place, record

    def append(
        self, channel: Channel, partition: int, records: Sequence[tuple[bytes | None, bytes | None, Headers, int]]
    ) -> None:
        log = self._partition(channel, partition)
        for record in records:
            log.append(*record)

    def _partition(self, channel: Channel, partition: int) -> PartitionLog:
        return self._cluster.partition(self._names[channel], partition)

    def close(self) -> None:
        """There is nothing to close."""


class SimulatedStateReader:
    """The group's committed state. Waits for undecided transactions, as long as a worker would."""

    def __init__(self, cluster: Cluster, topics: Topics, group: str, requests: Requests) -> None:
        self._cluster = cluster
        self._topics = topics
        self._requests = requests
        self._group = cluster.group(group, len(cluster.topic(topics.events)))
        self.records_read = 0
        """Records that reading checkpoints has taken from the log so far."""

    def committed(self, partition: int) -> Position | None:
        self._wait_until("position", lambda: not self._group.is_undecided(partition))
        return self._decoded(partition)

    def all_committed(self, partitions: Sequence[int]) -> dict[int, Position | StateCorrupt | None]:
        if partitions:
            self._wait_until("position", lambda: not any(map(self._group.is_undecided, partitions)))
        return {partition: or_corrupt(self._decoded, partition) for partition in partitions}

    def _decoded(self, partition: int) -> Position | None:
        stored = self._group.positions.get(partition)
        return None if stored is None else decode_position(*stored)

    def read_checkpoints(self, pointers: Mapping[int, Pointer]) -> Iterator[tuple[int, list[KeyValue] | StateCorrupt]]:
        for partition, pointer in pointers.items():
            yield partition, or_corrupt(self._chunks, partition, pointer)

    def _chunks(self, partition: int, pointer: Pointer) -> list[KeyValue]:
        log = self._cluster.partition(self._topics.checkpoints, partition)
        end = pointer.offset + pointer.chunks
        self._wait_until("checkpoint", lambda: log.ends.stable >= min(end, log.ends.high))
        chunks = [KeyValue(r.offset, r.key or b"", r.value) for r in log.read(pointer.offset, end)]
        if len(chunks) != pointer.chunks:
            raise StateCorrupt(
                f"the checkpoint at {self._topics.checkpoints}/{partition} offset {pointer.offset} is gone"
            )
        self.records_read += len(chunks)
        return chunks

    def _wait_until(self, point: str, condition: Callable[[], bool]) -> None:
        deadline = self._cluster.clock() + _STABLE_WAIT_S
        while not self._requests.make(point, condition):
            if self._cluster.clock() > deadline:
                raise Retryable(f"{point}: a transaction is undecided")
            self._cluster.clock.sleep(_SLICE_S)

    def members(self) -> list[str]:
        self._cluster.turn()
        return [member.instance or "a worker" for member in self._group.members]

    def close(self) -> None:
        """There is nothing to close."""
