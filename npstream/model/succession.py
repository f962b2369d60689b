"""A challenger's model in the place of the champion's."""

from npstream.arrays import Floats, Ints
from npstream.model import threshold as gate
from npstream.model.model import Model
from npstream.model.state import state_from_bytes

_PUBLISHED = [gate.BUCKET, gate.FPR, gate.TPR]
"""Levels that rest on decisions that were published."""


def succeeded(champion: Model, challenger: Model) -> Model:
    """What `challenger` has learned, with the record of the decisions that `champion` published.

    Weights, scaler, multiplier and thresholds are the challenger's. Bucket, counters and
    alarms that wait for a label are of published decisions and go on: the bound on false
    alarms does not begin again. Stricter tiers do so where both have the same ones.
    """
    state = state_from_bytes(challenger.params, challenger.to_bytes())
    old = state_from_bytes(champion.params, champion.to_bytes())
    _carry(state.level, state.tally, old.level, old.tally)
    gates = state.gates
    if challenger.params.tier_names == champion.params.tier_names:
        gates.alarms[:] = old.gates.alarms
        for k in range(len(gates.level)):
            _carry(gates.level[k], gates.tally[k], old.gates.level[k], old.gates.tally[k])
    else:
        gates.alarms[:] = 0
        gates.level[:, _PUBLISHED] = 0.0
        gates.tally[:, [column for column in range(gate.TALLIES) if column != gate.TRACKED]] = 0
    return Model(challenger.params, state)


def _carry(level: Floats, tally: Ints, published_level: Floats, published_tally: Ints) -> None:
    level[_PUBLISHED] = published_level[_PUBLISHED]
    tracked = tally[gate.TRACKED]
    tally[:] = published_tally
    tally[gate.TRACKED] = tracked
