"""The commit pipeline of one session: shares are staged, their commit begins, and it finishes.

Committing is mostly waiting for the brokers. Under load, when a batch came full,
its shares are staged: the next poll is made first, and their commit runs while
the batch it brought is processed. Nothing of that batch can be seen before its
own commit, and when a commit fails both are thrown away. A transaction never
spans a poll: a running commit is finished first.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from npstream.errors import NpstreamError, Refused
from npstream.observe import Observer
from npstream.port import Broker, FinishCommit
from npstream.records import Share
from npstream.worker.partition_task import PartitionTask
from npstream.worker.refusals import Refusals


@dataclass(frozen=True, slots=True)
class _Running:
    """A commit that has begun: what it publishes, how to wait for its end, and how long it took to begin."""

    shares: list[Share]
    finish: FinishCommit
    seconds: float


class Commits:
    """At most one batch is staged and at most one transaction runs. Raises what `Broker.commit` does.

    `tasks` are the owned partitions, which remember what of them is committed.
    """

    def __init__(
        self,
        broker: Broker,
        tasks: Mapping[int, PartitionTask],
        refusals: Refusals,
        clock: Callable[[], float],
        observer: Observer,
    ) -> None:
        self._broker = broker
        self._tasks = tasks
        self._refusals = refusals
        self._clock = clock
        self._observer = observer
        self._staged: list[Share] = []
        self._running: _Running | None = None
        self.count = 0
        """Transactions committed so far."""

    @property
    def is_staged(self) -> bool:
        """Whether shares wait for their commit to begin."""
        return bool(self._staged)

    @property
    def is_running(self) -> bool:
        """Whether a commit has begun and is not over."""
        return self._running is not None

    def stage(self, shares: list[Share]) -> None:
        """Keep these to be committed after the next poll."""
        assert not self._staged
        self._staged = shares

    def drop(self, partitions: Collection[int]) -> None:
        """These have another owner now: what is staged for them must never be published."""
        self._staged = [share for share in self._staged if share.partition not in partitions]

    def begin(self) -> None:
        """Begin to commit what is staged, if anything is."""
        if self._staged:
            shares, self._staged = self._staged, []  # no longer staged, even if it fails: nothing is tried twice
            began = self._clock()
            with self._reporting_aborts(shares):
                finish = self._broker.start_commit(shares)
            self._running = _Running(shares, finish, self._clock() - began)

    def finish(self) -> None:
        """Wait until the running commit is over, if there is one: transactions come one after another."""
        if self._running is None:
            return
        running, self._running = self._running, None
        began = self._clock()
        with self._reporting_aborts(running.shares):
            pointers = running.finish()
        self.count += 1
        for share in running.shares:
            self._tasks[share.partition].committed(share, pointers[share.partition])
            self._refusals.clear(share.partition)
        self._observer.committed(running.shares, running.seconds + self._clock() - began)

    def settle(self) -> None:
        """Commit whatever is staged or running."""
        self.begin()
        self.finish()

    def publish(self, shares: list[Share]) -> None:
        """Commit these; each in a transaction of its own while one is to blame.

        What was on its way before must be over: these shares were made from what it committed.
        """
        assert not self.is_staged
        assert not self.is_running
        for together in [[share] for share in shares] if self._refusals.apart else [shares]:
            self._staged = together
            self.settle()

    @contextmanager
    def _reporting_aborts(self, shares: Sequence[Share]) -> Iterator[None]:
        try:
            yield
        except NpstreamError as error:
            if isinstance(error, Refused):
                # The error seldom says whose record it was: all are suspects, and one alone is found.
                error.together = frozenset(share.partition for share in shares)
                if len(shares) == 1:
                    error.partition = shares[0].partition
            self._observer.aborted(error.cause)
            raise
