"""Keeps configured secrets out of everything that leaves the process as text."""

from collections.abc import Iterable
from typing import Any

MASK = "***"

_WHOLE_ONLY = 4
"""Secrets shorter than this are masked only where they are a whole value: inside text they would hit any word."""


class Secrets:
    """The values that must never be shown."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: list[str] = []
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """More of them; what was secret once stays so."""
        # Longest first, so that a secret that contains another disappears whole.
        self._values = sorted({*self._values, *(value for value in values if value)}, key=len, reverse=True)

    def mask(self, value: Any) -> Any:
        """The value without secrets, in containers too; what is not plain data is shown by its repr."""
        if isinstance(value, str):
            return self._mask_text(value)
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, dict):
            return {self._mask_text(str(key)): self.mask(item) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.mask(item) for item in value]
        if isinstance(value, bytes):
            return self._mask_text(value.decode("utf-8", "backslashreplace"))
        return self._mask_text(repr(value))

    def _mask_text(self, text: str) -> str:
        for secret in self._values:
            if len(secret) >= _WHOLE_ONLY:
                text = text.replace(secret, MASK)
            elif text == secret:
                return MASK
        # Lone surrogates, which no encoding takes, would stop the line from being written.
        return text.encode("utf-8", "backslashreplace").decode()
