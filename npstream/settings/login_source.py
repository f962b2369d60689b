"""Where a login was read from, so that it can be read again: the references in settings, not what they held."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from npstream.errors import Retryable
from npstream.secrets import Secrets
from npstream.settings.source import interpolated

PARTS = ("security", "options")


@dataclass(frozen=True, slots=True)
class LoginSource:
    """Two settings are the same wherever they were read from, so nothing of this counts in comparisons."""

    kafka: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The section before its references were replaced."""
    env: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    secrets: Secrets = field(default_factory=Secrets, compare=False, repr=False)
    """All that were ever read from it."""

    def __bool__(self) -> bool:
        """Whether there is anything to read again."""
        return any(_has_file(self.kafka.get(part)) for part in PARTS)

    def read(self) -> dict[str, Any]:
        """Both parts as they are now. Raises `Retryable` when a file cannot be read: it may be on its way."""
        given = {part: self.kafka.get(part) or {} for part in PARTS}
        found, problems = interpolated(given, self.env, "kafka")
        if problems:
            raise Retryable("; ".join(map(str, problems)))
        read: dict[str, Any] = found
        return read


def _has_file(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_file, value.values()))
    return isinstance(value, str) and "${file:" in value
