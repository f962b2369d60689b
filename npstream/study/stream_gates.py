"""What the stream comparison must show.

The rate gate is checked on every stream that was run whole; the others are
statements about all 18 reference sets and are checked on nothing less.
"""

from collections.abc import Iterator, Mapping

from npstream.study.gates import Gate, all_within, at_least, at_most
from npstream.study.methods import OLNP, PLUS
from npstream.study.tally import StreamResults

RATE_BARS = {0.005: (0.75, 1.08), 0.01: (0.82, 1.05), 0.05: (0.90, 1.03), 0.1: (0.94, 1.02), 0.2: (0.95, 1.01)}
"""By tau the lowest and the highest FPR/tau of any run."""

_MEAN_BARS = {0.005: 0.54, 0.01: 0.46, 0.05: 0.272, 0.1: 0.180, 0.2: 0.109}
"""The mean q4 NP-score."""
EXPECTED_ALARMS_MIN = 50  # with fewer false alarms expected, the ratio is noise
_BETTER_THAN_EARLIER_MIN = 13
_BETTER_THAN_OLNP_MIN = 15
REFERENCE_SETS = 18


def check(tally: StreamResults, earlier: Mapping[tuple[str, float], float]) -> list[Gate]:
    """All gates that these rows can decide. `earlier` is the form without tables, by (set, tau)."""
    return [gate for tau in tally.taus if tau in RATE_BARS for gate in _at(tally, tau, earlier)]


def _at(tally: StreamResults, tau: float, earlier: Mapping[tuple[str, float], float]) -> Iterator[Gate]:
    low, high = RATE_BARS[tau]
    ratios = [ratio for name in tally.sets for ratio in _ratios(tally, name, tau)]
    if ratios:
        yield all_within(f"tau {tau:g}, FPR/tau of every run", ratios, low, high)
    if sum((name, tau) in earlier for name in tally.sets) < REFERENCE_SETS:
        return
    sets = len(tally.sets)
    yield at_most(f"tau {tau:g}, mean q4 NP-score", tally.mean(PLUS, tau), _MEAN_BARS[tau])
    better = sum(tally.value(name, PLUS, tau) < earlier[name, tau] for name in tally.sets)
    yield at_least(
        f"tau {tau:g}, sets of {sets} better than the form without tables on q4", better, _BETTER_THAN_EARLIER_MIN
    )
    wins = sum(tally.value(name, PLUS, tau) < tally.value(name, OLNP, tau) for name in tally.sets)
    yield at_least(f"tau {tau:g}, sets of {sets} better than OLNP on q4", wins, _BETTER_THAN_OLNP_MIN)


def _ratios(tally: StreamResults, name: str, tau: float) -> list[float]:
    negatives = tally.values(name, PLUS, tau, "negatives")
    ratios = tally.values(name, PLUS, tau, "fpr") / tau
    return [float(r) for r in ratios[tau * negatives >= EXPECTED_ALARMS_MIN]]
