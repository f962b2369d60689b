"""The transaction coordinator: which process may write under a name, and what became of its transactions."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

Decide = Callable[[bool], None]
"""Told once whether the transaction is committed."""


class Fenced(Exception):
    """Another process writes under this name now, or the coordinator has given up the transaction."""


@dataclass
class Transaction:
    """One that is open, or decided and not yet marked everywhere."""

    number: int
    began: float
    participants: dict[Hashable, Decide] = field(default_factory=dict)
    """Who must still be told: partitions of topics, and the group's offsets."""
    committed: bool | None = None

    def mark_next(self) -> None:
        """Write one of the markers that are left."""
        assert self.committed is not None
        participant = next(iter(self.participants), None)
        if participant is not None:
            self.participants.pop(participant)(self.committed)

    def mark_all(self) -> None:
        """Write all of them."""
        while self.participants:
            self.mark_next()


@dataclass
class _Producer:
    epoch: int = 0
    transaction: Transaction | None = None


class Transactions:
    """At most one transaction a name at a time."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._producers: dict[str, _Producer] = {}
        self._count = 0

    def initialise(self, name: str) -> int:
        """Fence every earlier process of this name, end what it left open, and return the new epoch."""
        producer = self._producers.setdefault(name, _Producer())
        self._end(producer)
        producer.epoch += 1
        return producer.epoch

    def begin(self, name: str, epoch: int, now: float) -> Transaction:
        """A new transaction; the one before it is marked everywhere by then."""
        producer = self._current(name, epoch)
        self._end(producer)
        self._count += 1
        producer.transaction = Transaction(self._count, now)
        return producer.transaction

    def ongoing(self, name: str, epoch: int) -> Transaction:
        """The one that this process has begun."""
        transaction = self._current(name, epoch).transaction
        if transaction is None or transaction.committed is not None:
            raise Fenced
        return transaction

    def decide(self, name: str, epoch: int, *, committed: bool, marked: bool = True) -> None:
        """Commit or abort; asked again it is the same decision. Unless `marked`, markers follow with time."""
        transaction = self._current(name, epoch).transaction
        if transaction is None or transaction.committed not in (None, committed):
            raise Fenced
        transaction.committed = committed
        if marked:
            transaction.mark_all()

    def _current(self, name: str, epoch: int) -> _Producer:
        producer = self._producers[name]
        if producer.epoch != epoch:
            raise Fenced
        return producer

    def _end(self, producer: _Producer) -> None:
        """Whatever is not decided is aborted."""
        transaction = producer.transaction
        if transaction is not None:
            transaction.committed = bool(transaction.committed)
            transaction.mark_all()

    def turn(self, now: float) -> None:
        """Abort what has been open for too long; write the next marker of what is decided."""
        for producer in self._producers.values():
            transaction = producer.transaction
            if transaction is None:
                continue
            if transaction.committed is None and now - transaction.began > self._timeout_s:
                producer.epoch += 1  # whoever began it must not go on
                self._end(producer)
            elif transaction.committed is not None:
                transaction.mark_next()
