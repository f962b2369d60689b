"""Keys and cells of a study's rows."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from npstream.arrays import Signs
from npstream.model import Outcome
from npstream.report.rates import last_quarter, oracle_tpr, rates

FIGURES = (
    *("rows", "negatives", "positives", "fpr", "tpr", "np_score"),
    *("q4_fpr", "q4_tpr", "q4_np_score", "q4_oracle_tpr"),
)
"""What `stream_figures` measures."""


def digest(parts: Mapping[str, Any]) -> str:
    """Sixteen hex digits of everything that determines a result. Values must be plain JSON."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def number(row: Mapping[str, str], name: str) -> float:
    """A cell as a number; an empty cell is NaN."""
    return float(row[name]) if row[name] else float("nan")


def stream_figures(outcome: Outcome, y: Signs, tau: float) -> dict[str, int | float]:
    """Rates of a whole stream and of its last quarter, by the names of `FIGURES`."""
    q4 = last_quarter(y.size)
    whole, end = rates(outcome.decision, y), rates(outcome.decision[q4], y[q4])
    return {
        "rows": y.size,
        "negatives": whole.negatives,
        "positives": whole.positives,
        "fpr": whole.fpr,
        "tpr": whole.tpr,
        "np_score": whole.np_score(tau),
        "q4_fpr": end.fpr,
        "q4_tpr": end.tpr,
        "q4_np_score": end.np_score(tau),
        "q4_oracle_tpr": oracle_tpr(outcome.score[q4], y[q4], tau),
    }
