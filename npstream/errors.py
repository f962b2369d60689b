"""The error tree, named by what must happen next.

NpstreamError
├── SettingsError      operator: fix the configuration; raised before any connection
├── UsageError         operator: fix the command line or the file it names
│   └── DataError      whoever gave the data: fix what the file, frame or array holds; a ValueError too
├── BadEvent           worker: write a dead letter, go on
├── UnknownSchema      reader of a topic: pause this partition, report the schema's id
├── StateCorrupt       worker: pause this partition, report which key
├── Retryable          worker: restart the session, within the deadline
│   └── Refused        worker: the same, then publish partitions one by one and pause the one it comes back for
└── Fatal              worker: abort the transaction, exit non-zero
"""

import difflib
from collections.abc import Callable, Collection
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class NpstreamError(Exception):
    """Base of every error npstream raises on purpose. The message says what to do next."""

    cause = "unclear"
    """A short constant for counting: the client's name for what went wrong, where there is one."""


class SettingsError(NpstreamError):
    """The configuration cannot be used. Carries every problem found, not the first."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def suggest(name: str, known: Collection[str]) -> str:
    """What to write instead of an unknown name: the closest one, or any of those known."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"


def plural(count: int, noun: str) -> str:
    """A number and what it counts: 1 partition, 2 partitions."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


class UsageError(NpstreamError):
    """A command was asked for something that cannot be done: wrong path, empty file, bad range."""


class DataError(UsageError, ValueError):
    """Data cannot be used: a file, frame, array or label that holds what it must not."""


class BadEvent(NpstreamError):
    """One event cannot be used. `reason` is a short constant for headers and metrics."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class UnknownSchema(NpstreamError):
    """An event names a schema that cannot be had or used: the message says which, and what is wrong with it."""


class StateCorrupt(NpstreamError):
    """Stored state cannot be trusted. The partition is paused until an operator acts."""


def or_corrupt(step: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T | StateCorrupt:
    """What `step` returns, or the `StateCorrupt` that it raises: for work on many partitions, of which one must not
    stop the others."""
    try:
        return step(*arguments, **named)
    except StateCorrupt as error:
        return error


class Retryable(NpstreamError):
    """The log or its client is in an unclear state: drop everything and restore."""


class Refused(Retryable):
    """What was read or published may itself be the cause, so that a new session would meet it again.

    `partition` is the one it happened in, where that is known. `strikes` is how
    often it must happen to one partition alone, at the same offset, before that
    partition is paused: once for what is refused by name, more often for what
    nobody has a name for. `committed` is that offset, and `together` are all
    partitions that took part; the publisher fills in both.
    """

    def __init__(self, message: str, partition: int | None = None, strikes: int = 1) -> None:
        super().__init__(message)
        self.partition = partition
        self.strikes = strikes
        self.committed: int | None = None
        self.together: frozenset[int] = frozenset()


class Fatal(NpstreamError):
    """Going on would be wrong: exit non-zero."""
