"""Promises that can be checked: a figure beside its bar, passed or not."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Gate:
    """One promise: what was measured, what was promised, and whether it was kept."""

    name: str
    figure: str
    bar: str
    passed: bool

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def line(self) -> str:
        """One line for a terminal."""
        return f"{'PASS' if self.passed else 'FAIL'}  {self.name}: {self.figure} (bar {self.bar})"


def at_most(name: str, figure: float, bar: float, digits: int = 3) -> Gate:
    """Passed when the figure is a number not above the bar."""
    return Gate(name, f"{figure:.{digits}f}", f"<= {bar:g}", figure <= bar)


def at_least(name: str, figure: float, bar: float, digits: int = 0) -> Gate:
    """Passed when the figure is a number not below the bar."""
    return Gate(name, f"{figure:.{digits}f}", f">= {bar:g}", figure >= bar)


def all_within(name: str, figures: Sequence[float], low: float, high: float) -> Gate:
    """Passed when there are figures and each lies within [low, high]; shows the extremes."""
    shown = f"{min(figures):.3f}..{max(figures):.3f} over {len(figures)} runs" if figures else "nothing to measure"
    return Gate(name, shown, f"{low:g}..{high:g}", bool(figures) and all(low <= f <= high for f in figures))
