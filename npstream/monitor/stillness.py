"""Whether threshold and multiplier still move."""

STILL_AFTER = 1000
"""Labelled non-targets, or decisions, without any movement after which a value counts as pinned."""


class Stillness:
    """Finds out when a value that should move with every few events of a kind has stopped moving."""

    def __init__(self) -> None:
        self._value: float | None = None
        self._since = 0

    def update(self, value: float, events: int) -> bool:
        """Whether the value has been exactly this one for `STILL_AFTER` such events or more."""
        if value != self._value or events < self._since:
            self._value, self._since = value, events
        return events - self._since >= STILL_AFTER
