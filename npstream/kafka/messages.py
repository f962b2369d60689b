"""What the client hands over, as records; and which of its errors speak of one partition only."""

from collections.abc import Callable, Iterable, Sequence
from operator import methodcaller
from typing import cast

from confluent_kafka import KafkaError, Message

from npstream.errors import StateCorrupt
from npstream.kafka.errors import PASSING
from npstream.records import UNREADABLE_HEADERS, Headers, Record

_headers: Callable[[Message], Headers | None] = methodcaller("headers")
"""Not `message.headers()`: where a name is not UTF-8 the client returns a list with an exception set beside it, and a
call that the interpreter has specialised does not notice; the exception then appears at some later line."""

_DELETED = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})
_UNREADABLE = frozenset(
    {
        KafkaError._BAD_MSG,
        KafkaError._BAD_COMPRESSION,
        KafkaError._NOT_IMPLEMENTED,
        KafkaError._UNDERFLOW,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
    }
)
"""The client has the bytes of a record and cannot make a record of them: it would fail at the same place forever."""


def headers_of(messages: Sequence[Message]) -> list[Headers]:
    """The headers of each message, asked for once: a second look at unreadable ones crashes the interpreter."""
    found: list[Headers | None] = []
    each: Iterable[Headers | None] = map(_headers, messages)
    while True:
        try:
            found.extend(each)  # what came before an exception stays, and the iterator continues after it
            return [headers or () for headers in found]
        except (SystemError, UnicodeDecodeError):
            found.append(UNREADABLE_HEADERS)


def record_of(message: Message, headers: Headers) -> Record:
    """A message that is no error as a record."""
    return Record(cast(int, message.offset()), message.timestamp()[1], message.key(), message.value(), headers)


def is_passing(error: KafkaError) -> bool:
    """Whether a reader recovers from this by itself, its place in the log unharmed."""
    return error.retriable() or error.code() in PASSING


def speaks_of_partition(error: KafkaError) -> bool:
    """Whether a reader met what it would meet again at the same place of this partition, and nowhere else."""
    return error.code() in _DELETED or error.code() in _UNREADABLE


def read_problem(error: KafkaError, topic: str, partition: int, next_offset: int) -> StateCorrupt:
    """What to report of such an error: what happened where, and how to go on."""
    place = f"{topic}/{partition}"
    if error.code() in _DELETED:
        return StateCorrupt(
            f"{place}: the events from offset {next_offset} on were deleted before they were read ({error.str()}): "
            f"retention is shorter than the lag. Go on with what is left by `npstream reset --partition {partition} "
            "--to earliest --keep-model --execute`, then raise retention.ms or retention.bytes"
        )
    return StateCorrupt(
        f"{place}: the client cannot unpack the record at offset {next_offset} ({error.name()}: {error.str()}). If it "
        "unpacks to more than 100 MB, raise kafka.options.receive.message.max.bytes (up to 2147483647) and restart: "
        f"it then becomes a dead letter. Otherwise continue after it with `npstream reset --partition {partition} --to "
        "OFFSET --keep-model --execute`"
    )
