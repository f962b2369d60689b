"""The `Broker` of a cluster in memory, for one worker: a member of the group and a transactional producer."""

from collections.abc import Sequence

from npstream.errors import Fatal
from npstream.port import FinishCommit, Listener
from npstream.records import Batch, LabelsWanted, Pointer, Record, Share, Topics
from tests.simulation.cluster import Cluster
from tests.simulation.member import Member
from tests.simulation.publisher import Publisher
from tests.simulation.reading import SimulatedStateReader
from tests.simulation.requests import Requests


class SimulatedBroker:
    """All that it does are `requests`, which may fail, hang, or be cut short."""

    def __init__(
        self, cluster: Cluster, topics: Topics, group: str, worker_name: str, requests: Requests, *, static: bool = True
    ) -> None:
        counts = [len(cluster.topic(name)) for name in topics.names()]
        if problem := topics.misplaced_labels(counts):
            raise Fatal(problem)
        for name, problem in topics.too_narrow(counts):
            raise Fatal(f"topic {name!r} {problem}: run `npstream init`, which adds the missing ones")
        self.state = SimulatedStateReader(cluster, topics, group, requests)
        self._requests = requests
        self._member = Member(cluster, topics, group, worker_name if static else None, requests)
        self._publisher = Publisher(cluster, topics, f"{group}.{worker_name}", self._member, requests)

    def subscribe(self, listener: Listener) -> None:
        self._publisher.open()
        self._member.join(listener)

    def poll(self, max_records: int, timeout_s: float) -> list[Batch]:
        return self._member.poll(max_records, timeout_s)

    def read_labels(self, wanted: Sequence[LabelsWanted]) -> dict[int, Sequence[Record]]:
        return self._member.read_labels(wanted)

    def commit(self, shares: Sequence[Share]) -> dict[int, Pointer]:
        return self.start_commit(shares)()

    def start_commit(self, shares: Sequence[Share]) -> FinishCommit:
        return self._publisher.start(shares)

    def close(self, timeout_s: float) -> None:
        try:
            self._member.let_go()
        finally:
            self.abandon()

    def abandon(self) -> None:
        if not self._requests.is_dead:
            self._publisher.close()
            self._member.close()
