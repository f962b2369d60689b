"""Kafka clients that fail where they should: any call, with any error, once or forever, for one partition or all.

The clients are the library's own, on a real broker; only what they raise is
made up. `installed()` puts them in the place of the library's.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any
from unittest import mock

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient

from npstream.kafka import clients
from npstream.kafka.messages import is_passing

Raised = int | type[BaseException]
"""What to raise: a code of the client's, or an exception of Python's."""

MESSAGE = "message"
"""Not a call: an error in the place of a record."""

CALLS = {
    Consumer: (
        "subscribe",
        "consume",
        "memberid",
        "consumer_group_metadata",
        "incremental_assign",
        "committed",
        "assign",
        "list_topics",
    ),
    Producer: (
        "init_transactions",
        "begin_transaction",
        "produce",
        "flush",
        "send_offsets_to_transaction",
        "commit_transaction",
    ),
    AdminClient: ("describe_topics", "list_groups"),
}
BOUND = (MESSAGE, "committed", "assign", "produce", "send_offsets_to_transaction", "commit_transaction")
"""Calls that can fail for one partition and work for the others."""


@dataclass
class Fault:
    """One failing call. `partition` None: whatever it is for."""

    call: str
    raised: Raised
    forever: bool
    partition: int | None = None
    hits: int = 0

    def error(self) -> BaseException:
        """What the call raises."""
        if isinstance(self.raised, int):
            return KafkaException(KafkaError(self.raised))
        return self.raised("made up by the test")


@dataclass
class Faults:
    """What is to fail now. Clients ask from several threads."""

    events_topic: str = ""
    _armed: list[Fault] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _in_transaction: set[int] = field(default_factory=set)

    def arm(self, *faults: Fault) -> None:
        """These from now on, and no others."""
        with self._lock:
            self._armed = list(faults)

    def before(self, call: str, arguments: Sequence[Any]) -> None:
        """Called before each call; raises when it is to fail."""
        if call == "begin_transaction":
            self._in_transaction = set()
        partitions = self._partitions(call, arguments)
        if call == "produce":
            self._in_transaction |= partitions
        fault = self._take(call, partitions)
        if fault is not None:
            raise fault.error()

    def spoil(self, messages: list[Message]) -> list[Message]:
        """The same messages with an error among them.

        It comes instead of a record, behind which the client goes on; one that will
        pass by itself comes before a record.
        """
        for at, message in enumerate(messages):
            if message.error() is None and message.topic() == self.events_topic:
                partition = message.partition() or 0
                fault = self._take(MESSAGE, {partition})
                if fault is not None:
                    assert isinstance(fault.raised, int)
                    error = KafkaError(fault.raised)
                    spoiled = Message(topic=message.topic(), partition=partition, error=error)
                    return [*messages[:at], spoiled, *messages[at if is_passing(error) else at + 1 :]]
        return messages

    def _take(self, call: str, partitions: set[int]) -> Fault | None:
        with self._lock:
            for fault in self._armed:
                if fault.call == call and (fault.partition is None or fault.partition in partitions):
                    fault.hits += 1
                    if not fault.forever:
                        self._armed.remove(fault)
                    return fault
        return None

    def _partitions(self, call: str, arguments: Sequence[Any]) -> set[int]:
        if call == "produce":
            return {arguments[3]}
        if call in ("committed", "assign", "send_offsets_to_transaction"):
            return {place.partition for place in arguments[0]}
        if call == "commit_transaction":
            return self._in_transaction
        return set()


def _faulty(base: type, faults: Faults) -> type:
    def wrapped(name: str) -> Callable[..., Any]:
        original = getattr(base, name)

        @wraps(original)
        def call(self: Any, *arguments: Any, **named: Any) -> Any:
            faults.before(name, arguments)
            found = original(self, *arguments, **named)
            return faults.spoil(found) if name == "consume" else found

        return call

    return type(f"Faulty{base.__name__}", (base,), {name: wrapped(name) for name in CALLS[base]})


@contextmanager
def installed(faults: Faults) -> Iterator[None]:
    """All clients that are built in the block are such ones."""
    with (
        mock.patch.object(clients, "Consumer", _faulty(Consumer, faults)),
        mock.patch.object(clients, "Producer", _faulty(Producer, faults)),
        mock.patch.object(clients, "AdminClient", _faulty(AdminClient, faults)),
    ):
        yield
