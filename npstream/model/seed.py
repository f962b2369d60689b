"""A learned model as the start of a new partition."""

from npstream.errors import SettingsError
from npstream.model import kernel
from npstream.model import threshold as gate
from npstream.model.model import Model
from npstream.model.params import Params
from npstream.model.state import state_from_bytes

CREDIT = 3.0
"""False alarms above its rate that a seeded model may issue before its bucket is full.

Its threshold was tracked elsewhere; where that does not fit, this bounds the false
alarms of n labelled negatives from the start by tau n + CREDIT + 1 instead of
tau n + C + 1. The price is detection while the bucket is full. On most streams it
changes nothing; on two drifting ones out of 19, spread over 12 partitions, it
lowers the NP-score of the first 2,000 events by a third and more, and on one of
them, on a single partition, it raises it by half. Values from 1 to 5 differ little.
"""


def seeded(model: Model, params: Params, stream: int) -> Model:
    """What `model` has learned, on its first day with stream number `stream`; `model` stays as it is.

    Directions, weights, multiplier, scaler and threshold stay, and so does the
    number of negatives that the threshold rests on: there is no second warm-up.
    What is counted of decisions starts at zero, because the partition has none yet:
    rates, counters, alarms that wait for a label. The bucket has room for `CREDIT` alarms.

    Raises `SettingsError` naming each parameter that shapes the state and differs.
    """
    _check(model.params, params)
    state = state_from_bytes(params, model.to_bytes())
    for level, tally in [(state.level, state.tally), *zip(state.gates.level, state.gates.tally, strict=True)]:
        tracked = tally[gate.TRACKED]
        tally[:] = 0
        tally[gate.TRACKED] = tracked
        level[[gate.FPR, gate.TPR]] = 0.0
        level[gate.BUCKET] = max(0.0, params.budget - CREDIT)
    state.gates.alarms[:] = 0
    state.clock[kernel.STREAM] = stream
    return Model(params, state)


def _check(learned: Params, wanted: Params) -> None:
    differing = [
        f"model.{name}: {getattr(wanted, name)!r} given, the model to start from was trained with "
        f"{getattr(learned, name)!r}; use that value, or train a model with these settings"
        for name in learned.fixed_differences(wanted)
    ]
    if differing:
        raise SettingsError(differing)
