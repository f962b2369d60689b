"""The error tree, named by what must happen next.

NpstreamError
├── SettingsError      operator: fix the configuration; raised before any connection
├── UsageError         operator: fix the command line or the file it names
├── BadEvent           worker: write a dead letter, go on
├── PartitionLost      worker: drop the processor, let the new owner continue
├── StateCorrupt       worker: pause this partition, tell the operator which key
├── Retryable          worker: reset in process, within the deadline
└── Fatal              worker: abort the transaction, exit non-zero
"""


class NpstreamError(Exception):
    """Base of every error npstream raises on purpose. The message says what to do next."""

    cause = "unclear"
    """A short constant for counting: the client's name for what went wrong, where there is one."""


class SettingsError(NpstreamError):
    """The configuration cannot be used. Carries every problem found, not the first."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class UsageError(NpstreamError):
    """A command was asked for something that cannot be done: wrong path, empty file, bad range."""


class BadEvent(NpstreamError):
    """One event cannot be used. `reason` is a short constant for headers and metrics."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class PartitionLost(NpstreamError):
    """The partition belongs to another worker now; nothing of it may be published."""


class StateCorrupt(NpstreamError):
    """Stored state cannot be trusted. The partition is paused until an operator acts."""


class Retryable(NpstreamError):
    """The log or its client is in an unclear state: drop everything and restore."""


class Fatal(NpstreamError):
    """Going on would be wrong: exit non-zero."""
