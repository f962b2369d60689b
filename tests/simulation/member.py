"""The consumer of a worker in a simulated cluster: ownership, events, and the labels beside them."""

from collections.abc import Sequence

from npstream.errors import Fatal, StateCorrupt
from npstream.port import LABELS_MAX, Listener, due_labels
from npstream.records import Batch, LabelsWanted, Phase, Record, Topics
from tests.simulation.cluster import Cluster
from tests.simulation.group import FencedInstance, Membership, UnknownMember
from tests.simulation.partition_log import PartitionLog
from tests.simulation.requests import Requests

_SLICE_S = 0.02
TWIN = "another worker runs under the name {!r} and has taken over"


class Member:
    """One worker's place in the group; a static one has an `instance`."""

    def __init__(self, cluster: Cluster, topics: Topics, group: str, instance: str | None, requests: Requests) -> None:
        self._cluster = cluster
        self._topics = topics
        self._events = cluster.topic(topics.events)
        self.group = cluster.group(group, len(self._events))
        self._instance = instance
        self._requests = requests
        self._listener: Listener | None = None
        self._membership: Membership | None = None
        self._is_closed = False
        self._followed = -1
        """The generation whose assignment is carried out."""
        self._next_offsets: dict[int, int] = {}
        """Where each owned partition is read next."""

    def join(self, listener: Listener) -> None:
        """Become a member; partitions come with the first polls."""
        self._listener = listener
        self._followed = -1
        now = self._cluster.clock
        self._membership = self._requests.make("join", lambda: self.group.join(self._instance, self._beats, now()))

    def _beats(self) -> bool:
        return not self._is_closed and self._requests.is_alive()

    @property
    def membership(self) -> Membership:
        """What the process knows of its membership now."""
        assert self._membership is not None, "subscribe before poll"
        return self._membership

    @property
    def _owner(self) -> Listener:
        assert self._listener is not None, "subscribe before poll"
        return self._listener

    def poll(self, max_records: int, timeout_s: float) -> list[Batch]:
        """Follow the group, then wait for records of what is owned."""
        deadline = self._cluster.clock() + timeout_s
        while True:
            self._follow()
            batches = self._fetch(max_records)
            left_s = deadline - self._cluster.clock()
            if batches or left_s <= 0:
                return batches
            self._cluster.clock.sleep(min(_SLICE_S, left_s))

    def _follow(self) -> None:
        """Carry out what the group has decided since the last look."""
        member = self.membership
        try:
            self._requests.make("group", lambda: self.group.require(member))
            if member.generation != self._followed:
                generation, assignment = member.generation, member.assignment
                self._give_back(sorted(self._next_offsets.keys() - assignment))
                self._requests.make("release", lambda: self.group.release_all_but(member, assignment))
                self._take(sorted(assignment - self._next_offsets.keys()))
                self._followed = generation
        except FencedInstance as error:
            raise Fatal(TWIN.format(self._instance)) from error
        except UnknownMember:
            lost, self._next_offsets = sorted(self._next_offsets), {}
            self._owner.on_lost(lost)
            self.join(self._owner)

    def _give_back(self, revoked: list[int]) -> None:
        if revoked:
            self._owner.on_revoked(revoked)
            for partition in revoked:
                del self._next_offsets[partition]

    def _take(self, assigned: list[int]) -> None:
        if assigned:
            starts = self._owner.on_assigned(assigned)
            for partition in assigned:
                start = starts[partition]
                self._next_offsets[partition] = -1 if start is None else start

    def _fetch(self, max_records: int) -> list[Batch]:
        """Records of what is owned and not paused, one partition after another."""
        owned = [p for p in sorted(self._next_offsets) if self._owner.phase_of(p) is not Phase.PAUSED]
        for partition in owned:
            begin = self._events[partition].ends.begin
            if self._next_offsets[partition] < begin:
                self._fail(partition, f"offset {self._next_offsets[partition]} was deleted before it was read")
        batches = self._requests.make("fetch", lambda: self._read(owned, max_records))
        for partition, records in batches:
            self._next_offsets[partition] = records[-1].offset + 1
        return batches

    def _read(self, partitions: Sequence[int], limit: int) -> list[Batch]:
        batches = []
        for partition in partitions:
            log, begin = self._events[partition], self._next_offsets[partition]
            records = log.first(limit, begin, log.ends.stable) if begin >= log.ends.begin else []
            if records:
                batches.append(Batch(partition, records))
                limit -= len(records)
        return batches

    def _fail(self, partition: int, problem: str) -> None:
        self._owner.on_failed(partition, StateCorrupt(f"{self._topics.events}/{partition}: {problem}"))

    def read_labels(self, wanted: Sequence[LabelsWanted]) -> dict[int, Sequence[Record]]:
        """Labels that come before a batch of each partition."""
        assert self._topics.labels is not None
        logs = self._cluster.topic(self._topics.labels)
        for each in wanted:
            if 0 < each.next_label < logs[each.partition].ends.begin:
                self._fail(each.partition, f"label {each.next_label} is gone; `npstream reset` goes on with the others")
        return self._requests.make("labels", lambda: {w.partition: self._due(w, logs[w.partition]) for w in wanted})

    def _due(self, wanted: LabelsWanted, log: PartitionLog) -> Sequence[Record]:
        if 0 < wanted.next_label < log.ends.begin:
            return ()
        left = self._events[wanted.partition].ends.high - self._next_offsets[wanted.partition]
        return due_labels(log.first(LABELS_MAX, wanted.next_label, log.ends.stable), wanted.moment_ms, left)

    def let_go(self) -> None:
        """The listener writes its last checkpoint."""
        if self._listener is not None and self._next_offsets:
            self._listener.on_revoked(sorted(self._next_offsets))

    def close(self) -> None:
        """End the membership; a static one keeps its place for the session timeout."""
        self._listener = None
        self._next_offsets = {}
        self._is_closed = True
        member, self._membership = self._membership, None
        if member is not None and self._instance is None:
            self.group.leave(member)
