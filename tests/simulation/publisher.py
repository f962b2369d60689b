"""The transactional producer of a worker in a simulated cluster: the steps of a commit, each a request."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

from npstream.codec.position import encode_position
from npstream.errors import Fatal, NpstreamError, Retryable
from npstream.port import FinishCommit
from npstream.records import Channel, Pointer, Share, Topics
from tests.simulation.cluster import TRANSACTION_TIMEOUT_S, Cluster
from tests.simulation.group import FencedInstance, Membership, StaleGeneration, Stored, UnknownMember
from tests.simulation.member import TWIN, Member
from tests.simulation.requests import Requests
from tests.simulation.transactions import Fenced

_REBALANCES_MAX = 3
"""Rebalances that one commit may outlive, as in the Kafka adapter."""

Pointers = dict[int, Pointer]


class Publisher:
    """Publishes shares, each call one transaction. Unusable after the first error it cannot outlive."""

    def __init__(self, cluster: Cluster, topics: Topics, name: str, member: Member, requests: Requests) -> None:
        self._cluster = cluster
        self._names = topics.names()
        self._name = name
        self._member = member
        self._requests = requests
        self._epoch = 0
        self._began = 0.0
        self._open = False
        self._usable = False

    def open(self) -> None:
        """Fence an earlier process of this name and end what it left."""
        self._epoch = self._requests.make("open", lambda: self._cluster.transactions.initialise(self._name))
        self._usable = True

    def start(self, shares: Sequence[Share]) -> FinishCommit:
        """Send everything; the rest of the commit is done at once, or when its end is waited for."""
        if not self._usable:
            raise Retryable("the transactional producer has failed before: build a new broker")
        if not shares:
            return dict
        with self._giving_up():
            rest = self._begin(shares)
            if self._requests.hurries:
                rest = _done(rest)
        return lambda: self._finish(shares, rest)

    def _finish(self, shares: Sequence[Share], rest: Callable[[], Pointers]) -> Pointers:
        with self._giving_up():
            for _ in range(_REBALANCES_MAX):
                try:
                    return rest()
                except StaleGeneration:  # the partitions are still ours: publish again
                    self.open()
                    rest = self._begin(shares)
            return rest()

    def _begin(self, shares: Sequence[Share]) -> Callable[[], Pointers]:
        """Write all records of a new transaction; what it returns completes it."""
        self._began = self._cluster.clock()
        self._requests.make(
            "begin", lambda: self._cluster.transactions.begin(self._name, self._epoch, self._cluster.clock())
        )
        self._open = True
        pointers = {share.partition: self._send(share) for share in shares}
        member = self._member.membership
        return partial(self._complete, shares, pointers, member, member.generation)

    def _send(self, share: Share) -> Pointer:
        checkpoints = self._names[Channel.CHECKPOINTS]
        for channel, *record in share.outputs:
            self._write(share.partition, self._names[channel], *record)
        for key, value in share.segments:
            self._write(share.partition, checkpoints, key, value)
        offsets = [self._write(share.partition, checkpoints, key, value) for key, value in share.chunks]
        for key, value in share.changes:
            self._write(share.partition, checkpoints, key, value)
        return replace(share.position.pointer, offset=offsets[0]) if offsets else share.position.pointer

    def _write(self, partition: int, topic: str, *record: object) -> int:
        return self._requests.make("produce", lambda: self._written(partition, topic, *record))

    def _written(self, partition: int, topic: str, *record: object) -> int:
        transaction = self._cluster.transactions.ongoing(self._name, self._epoch)
        return self._cluster.write(transaction, topic, partition, *record)  # type: ignore[arg-type]

    def _complete(self, shares: Sequence[Share], pointers: Pointers, member: Membership, generation: int) -> Pointers:
        """Attach the offsets with their positions, then commit."""
        positions = [replace(share.position, pointer=pointers[share.partition]) for share in shares]
        offsets = {s.partition: (at.next_offset, encode_position(at)) for s, at in zip(shares, positions, strict=True)}
        self._requests.make("offsets", lambda: self._attach(offsets, member, generation))
        self._requests.make("end", lambda: self._decide(committed=True))
        self._open = False
        return pointers

    def _attach(self, offsets: dict[int, Stored], member: Membership, generation: int) -> None:
        transaction = self._cluster.transactions.ongoing(self._name, self._epoch)
        self._member.group.add_offsets(transaction, offsets, member, generation)

    def _decide(self, *, committed: bool) -> None:
        self._cluster.transactions.decide(self._name, self._epoch, committed=committed)

    @contextmanager
    def _giving_up(self) -> Iterator[None]:
        """After whatever goes wrong this producer is not used again."""
        try:
            yield
        except Fenced as error:
            self._usable = False
            if self._cluster.clock() - self._began >= TRANSACTION_TIMEOUT_S:
                raise Retryable("a transaction was open for too long and the brokers aborted it: restart") from error
            raise Fatal(TWIN.format(self._name)) from error
        except FencedInstance as error:
            self._usable = False
            raise Fatal(TWIN.format(self._name)) from error
        except (UnknownMember, StaleGeneration) as error:
            self._usable = False
            raise Retryable("committing: the group has moved on without this worker") from error
        except BaseException:
            self._usable = False
            raise

    def close(self) -> None:
        """Abort what is open; best effort."""
        self._usable = False
        if self._open:
            self._open = False
            with suppress(NpstreamError, Fenced):
                self._requests.make("abort", lambda: self._decide(committed=False))


def _done(work: Callable[[], Pointers]) -> Callable[[], Pointers]:
    """Do it now; what it returns gives the result, or raises the error, when it is asked for."""
    try:
        pointers = work()
    except Exception as error:
        failed = error

        def fail() -> Pointers:
            raise failed

        return fail
    return lambda: pointers
