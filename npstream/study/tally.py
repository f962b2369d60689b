"""Rows of the stream comparison, looked up by set, method and rate."""

from collections.abc import Mapping, Sequence

import numpy as np

from npstream.arrays import Floats
from npstream.study.results import number


class StreamResults:
    """Read-only view over rows; a value is the mean over seeds."""

    def __init__(self, rows: Sequence[Mapping[str, str]]) -> None:
        self._rows: dict[tuple[str, str, float], list[Mapping[str, str]]] = {}
        for row in rows:
            self._rows.setdefault((row["set"], row["method"], float(row["tau"])), []).append(row)
        self.sets = list(dict.fromkeys(row["set"] for row in rows))
        self.taus = sorted({float(row["tau"]) for row in rows})

    def values(self, name: str, method: str, tau: float, column: str = "q4_np_score") -> Floats:
        """One value a seed."""
        return np.array([number(row, column) for row in self._rows[name, method, tau]])

    def value(self, name: str, method: str, tau: float, column: str = "q4_np_score") -> float:
        """Mean over seeds."""
        return float(self.values(name, method, tau, column).mean())

    def mean(self, method: str, tau: float, column: str = "q4_np_score") -> float:
        """Mean over sets of the mean over seeds."""
        return float(np.mean([self.value(name, method, tau, column) for name in self.sets]))
