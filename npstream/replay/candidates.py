"""Which settings a search tries: a spread over the whole space first, then ever closer to the best so far.

Everything is a function of the base, the number of the trial and the scores so
far: the same search proposes the same trials, whoever runs them and however often
it was interrupted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from npstream.model import Params
from npstream.model.params import NO_EFFECT, Preset

GENERATION = 4
"""Trials proposed at a time when closing in: enough for the cores of a desk, few enough to learn from."""

_G_OCTAVES, _ETA_OCTAVES = 4.0, 2.5
"""How far from its base a value is searched, in powers of two, either way."""

_G_MAX, _ETA_MAX = 1e6, 10.0
"""What `Params` takes at most."""

_D_STEPS = (0.25, 0.5, 1.0, 2.0, 4.0)
_D_RANGE = (10, 2000)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One point of the search."""

    preset: Preset
    D: int
    g: float
    eta: float

    def fields(self, base: Params) -> dict[str, Any]:
        """The settings of section `model` that make it, given those it started from. None returns to the default."""
        own: dict[str, Any] = {"preset": self.preset, "D": self.D, "g": self.g, "eta": self.eta}
        if self.preset == base.preset:
            return own
        # What only the other preset knows, or what it means something else by.
        idle = dict.fromkeys(NO_EFFECT.get(self.preset, ()))
        return {**own, "input": "zscore", "beta": None, "lam": None, "gamma_update": None, **idle}


def base_of(params: Params) -> Candidate:
    """The settings as they are: the first trial, and the measure of all others."""
    return Candidate(params.preset, params.D, params.g, params.eta)


def explore(params: Params, presets: Sequence[Preset], count: int) -> list[Candidate]:
    """The base and `count - 1` candidates spread evenly over presets, D, g and eta."""
    return [base_of(params), *(_spread(params, presets, number) for number in range(1, count))][:count]


def close_in(best: Candidate, params: Params, number: int) -> list[Candidate]:
    """The next generation around the best so far; `number` counts generations, and each looks closer."""
    reach = 0.5 ** (1 + number / 2)
    found = []
    for point in range(number * GENERATION + 1, (number + 1) * GENERATION + 1):
        step = _step(best, params, _point(point, 2), -1 if _point(point, 3) < 0.5 else 1)
        g = best.g * 2 ** (reach * _G_OCTAVES * (2 * _point(point, 5) - 1))
        eta = best.eta * 2 ** (reach * _ETA_OCTAVES * (2 * _point(point, 7) - 1))
        found.append(replace(best, D=step, g=_rounded(g, _G_MAX), eta=_rounded(eta, _ETA_MAX)))
    return found


def _spread(params: Params, presets: Sequence[Preset], number: int) -> Candidate:
    preset = presets[int(_point(number, 2) * len(presets))]
    middle = params if preset == params.preset else Params(preset=preset, d=params.d, g=params.g)
    g = middle.g * 2 ** (_G_OCTAVES * (2 * _point(number, 5) - 1))
    eta = middle.eta * 2 ** (_ETA_OCTAVES * (2 * _point(number, 7) - 1))
    step = _D_STEPS[int(_point(number, 3) * len(_D_STEPS))]
    return Candidate(preset, _units(params.D * step), _rounded(g, _G_MAX), _rounded(eta, _ETA_MAX))


def _step(best: Candidate, params: Params, share: float, sign: int) -> int:
    """D stays in half of the candidates, and goes one step up or down within the explored range in the others."""
    if share < 0.5:
        return best.D
    low, high = _units(params.D * _D_STEPS[0]), _units(params.D * _D_STEPS[-1])
    return max(low, min(high, _units(best.D * 2.0**sign)))


def _units(count: float) -> int:
    return max(_D_RANGE[0], min(_D_RANGE[1], round(count)))


def _rounded(value: float, most: float) -> float:
    """Three digits: a person will read it in a settings file."""
    return float(f"{min(value, most):.3g}")


def _point(number: int, base: int) -> float:
    """Coordinate `number` of the van der Corput sequence: evenly spread over [0, 1), without a random generator."""
    value, scale = 0.0, 1.0
    while number:
        number, digit = divmod(number, base)
        scale /= base
        value += scale * digit
    return value
