"""Bounds of the worker's loop, as the settings give them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the loop, in records and seconds."""

    batch_max: int = 2000
    poll_s: float = 0.02
    drain_s: float = 20.0
    recover_s: float = 300.0
