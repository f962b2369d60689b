"""Small builders: events, outputs, shares, and the owner that a broker reports to."""

import time
from collections.abc import Callable, Mapping, Sequence

from npstream.errors import StateCorrupt
from npstream.port import Broker, Log, Place, StateReader
from npstream.records import Channel, Headers, KeyValue, Output, Phase, Pointer, Position, Proof, Record, Share

PATIENCE_S = 120.0
"""No test waits longer for something that must happen."""

Plain = tuple[bytes | None, bytes | None, Headers, int]


def events(count: int, first: int = 0) -> list[Plain]:
    """Distinct events with increasing timestamps."""
    return [
        (b"k%d" % i, b"event %d" % i, [("n", b"%d" % i)], 1_700_000_000_000 + i) for i in range(first, first + count)
    ]


def decision(value: bytes, channel: Channel = Channel.DECISIONS) -> Output:
    """One output."""
    return Output(channel, b"key", value, [("npstream-offset", b"7")], 1_700_000_000_000)


def share(
    partition: int,
    next_offset: int,
    outputs: Sequence[Output] = (),
    chunks: Sequence[tuple[bytes, bytes]] = (),
    changes: Sequence[tuple[bytes, bytes]] = (),
    pointer: Pointer | None = None,
    segments: Sequence[tuple[bytes, bytes | None]] = (),
) -> Share:
    """What a partition commits; with chunks the pointer's offset is a hole that the broker must fill."""
    hole = Pointer(offset=2**40, chunks=len(chunks), ring_place=1, next_offset=next_offset, digest="ef" * 16)
    proof = Proof(outputs=len(outputs), chain="ab" * 16, state="cd" * 16)
    return Share(partition, outputs, Position(next_offset, pointer or hole, proof), chunks, changes, segments)


def chunks(count: int, tag: bytes = b"", size: int = 10) -> list[tuple[bytes, bytes]]:
    """The chunks of one snapshot."""
    return [(b"g/t/0/1/%d" % i, (b"chunk %d " % i + tag).ljust(size, b".")) for i in range(count)]


def read_checkpoint(state: StateReader, partition: int, pointer: Pointer) -> list[KeyValue]:
    """The chunks of one partition's snapshot. Raises `StateCorrupt` when they are gone."""
    ((_, found),) = state.read_checkpoints({partition: pointer})
    if isinstance(found, StateCorrupt):
        raise found
    return found


class Owner:
    """Listens to a broker and polls it: starts each partition at its committed offset, notes what it is called with.

    `starts` overrides where partitions begin; None pauses one.
    """

    def __init__(self, broker: Broker, starts: Mapping[int, int | None] | None = None) -> None:
        self._broker = broker
        self._starts = dict(starts or {})
        self.reported: list[tuple[str, tuple[int, ...]]] = []
        self.failures: dict[int, StateCorrupt] = {}
        self.waiting: dict[int, str] = {}
        self.owned: set[int] = set()
        self.paused: set[int] = set()
        self.got: dict[int, list[Record]] = {}
        self.on_revoke: Callable[[Sequence[int]], object] = lambda partitions: None

    def on_assigned(self, partitions: Sequence[int]) -> Mapping[int, int | None]:
        self.reported.append(("assigned", tuple(partitions)))
        self.owned |= set(partitions)
        starts = {partition: self._start(partition) for partition in partitions}
        self.paused = self.paused - starts.keys() | {partition for partition, start in starts.items() if start is None}
        return starts

    def _start(self, partition: int) -> int | None:
        if partition in self._starts:
            return self._starts[partition]
        position = self._broker.state.committed(partition)
        return 0 if position is None else position.next_offset

    def on_revoked(self, partitions: Sequence[int]) -> None:
        self.reported.append(("revoked", tuple(partitions)))
        self.owned -= set(partitions)
        self.on_revoke(partitions)

    def on_lost(self, partitions: Sequence[int]) -> None:
        self.reported.append(("lost", tuple(partitions)))
        self.owned -= set(partitions)

    def on_waiting(self, partition: int, reason: str) -> None:
        self.waiting[partition] = reason
        self.paused.add(partition)

    def on_failed(self, partition: int, error: StateCorrupt) -> None:
        self.failures[partition] = error

    def phase_of(self, partition: int) -> Phase:
        stopped = partition in self.failures or partition in self.paused
        return Phase.PAUSED if stopped else Phase.LIVE

    def poll(self, max_records: int = 500, timeout_s: float = 0.1) -> None:
        """One poll; the records are kept in `got`."""
        batches = self._broker.poll(max_records, timeout_s)
        assert sum(len(records) for _, records in batches) <= max_records
        for partition, records in batches:
            self.got.setdefault(partition, []).extend(records)

    def poll_until(self, condition: Callable[[], bool], max_records: int = 500) -> None:
        """Poll until the condition holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"not within {PATIENCE_S:g} s; got {self.got}, reported {self.reported}"
            self.poll(max_records)

    def collect(self, count: int, max_records: int = 500) -> dict[int, list[Record]]:
        """Poll until `count` records are there; hands them over, by partition."""
        self.poll_until(lambda: sum(map(len, self.got.values())) >= count, max_records)
        got, self.got = self.got, {}
        return got


def joined(broker: Broker, starts: Mapping[int, int | None] | None = None, max_records: int = 500) -> Owner:
    """Subscribe and poll until partitions are owned."""
    owner = Owner(broker, starts)
    broker.subscribe(owner)
    owner.poll_until(lambda: bool(owner.reported), max_records)
    return owner


def offsets(got: Mapping[int, list[Record]]) -> dict[int, list[int]]:
    """The offsets of collected records."""
    return {partition: [record.offset for record in records] for partition, records in got.items()}


def values(log: Log, channel: Channel, partition: int) -> list[bytes | None]:
    """The committed values of a partition, in order."""
    return [record.value for record in log.read(channel, partition, 0, 2**40)]


def settled(log: Log, places: Sequence[Place]) -> bool:
    """Whether every transaction that touched these is decided, and its marker written."""
    return all(ends.stable == ends.high for ends in log.all_ends(places).values())


def eventually(condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Ask again and again until it holds: for what a broker does in its own time, such as writing markers."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {patience_s:g} s"
        time.sleep(0.05)
