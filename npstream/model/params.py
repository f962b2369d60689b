"""Everything a user may turn on a classifier, validated at once."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self

from npstream.errors import SettingsError

ALGORITHM = 1
"""Version of the arithmetic: raised whenever the same events would give other bytes."""

MUTABLE = frozenset({"tau", "eta", "beta", "lam", "budget", "charge", "learning"})
"""What may change on a model that has learned; everything else shapes its state."""

Preset = Literal["plus", "paper", "external"]
Kernel = Literal["rbf", "laplacian", "matern"]
Input = Literal["raw", "unit", "zscore"]
GammaUpdate = Literal["window", "stochastic"]
Charge = Literal["label", "issue"]

_UNSET: Any = None
_CHOICES: dict[str, tuple[str, ...]] = {
    "preset": ("plus", "paper", "external"),
    "kernel": ("rbf", "laplacian", "matern"),
    "input": ("raw", "unit", "zscore"),
    "gamma_update": ("window", "stochastic"),
    "charge": ("label", "issue"),
}
_FLAGS = ("one_class", "learning")
WHOLE = {"d": (0, 10_000), "D": (1, 100_000), "seed": (0, 2**63 - 1), "window": (1, 100_000)}
"""Whole numbers: lowest and highest."""
REAL = {
    "eta": (0.0, 10.0, False),
    "beta": (0.0, 1.0, True),
    "g": (0.0, 1e6, False),
    "lam": (0.0, 0.1, True),
    "budget": (0.0, 1e9, False),
}
"""Real numbers: lowest, highest, whether the lowest itself is allowed. tau is between 0 and 1, both excluded."""
_DEFAULTS: dict[str, dict[str, Any]] = {
    "plus": {"eta": 0.05, "beta": 0.01, "input": "zscore"},
    "paper": {"eta": 0.01, "beta": 5e-4, "input": "raw"},
    "external": {"eta": 0.05, "beta": 0.01, "input": "raw"},
}

NO_EFFECT: Mapping[str, tuple[str, ...]] = {"paper": ("budget", "charge")}
"""Parameters that a preset does not look at, whatever their value: `paper` has no false-alarm budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """The settings of one classifier. Fields left out take the value of their preset.

    Raises `SettingsError` with every problem found, each naming the field, the
    value and what is allowed. After construction every field holds its value.

    preset        `plus` (for streams), `paper` (Algorithm 1 to the letter), `external` (the event brings a score)
    d             number of features; 0 for `external`
    D             hidden units, each with a cosine and a sine
    tau           false-positive rate to hold
    seed          key of the cold start, together with the stream number
    eta, beta     learning rate; gain of the multiplier gamma
    g             bandwidth of the initial kernel, default 1/(2d); `plus` spreads units over g/4, g, 4g, 16g
    kernel        which shift-invariant kernel the directions are drawn for
    input         `paper`: raw features, unit norm, or running z-score (`plus` always standardises)
    lam           `paper`: regularisation, also the decay of eta and beta
    gamma_update  `paper`: window of past negatives, or the stochastic additive form
    window        length of that window
    one_class     learn against targets drawn uniformly over the feature range
    budget        capacity C of the false-alarm bucket; `paper` has none
    charge        count a false alarm when its label comes, or an alarm when it is issued
    learning      False freezes weights, scaler, gamma and threshold; budget and counters go on
    """

    preset: Preset = "plus"
    d: int = 0
    D: int = 100
    tau: float = 0.01
    seed: int = 0
    eta: float = _UNSET
    beta: float = _UNSET
    g: float = _UNSET
    kernel: Kernel = "rbf"
    input: Input = _UNSET
    lam: float = 0.0
    gamma_update: GammaUpdate = "window"
    window: int = 200
    one_class: bool = False
    budget: float = 20.0
    charge: Charge = "label"
    learning: bool = True

    def __post_init__(self) -> None:
        self._fill_preset_values()
        problems = list(_problems(self))
        if problems:
            raise SettingsError(problems)
        for name in ("tau", *REAL):
            # One spelling for each number, so that equal settings have equal fingerprints.
            object.__setattr__(self, name, float(getattr(self, name)))

    def _fill_preset_values(self) -> None:
        for name, value in _DEFAULTS.get(self.preset, _DEFAULTS["plus"]).items():
            if getattr(self, name) is _UNSET:
                object.__setattr__(self, name, value)
        if self.g is _UNSET:
            whole = isinstance(self.d, int) and self.d > 0
            object.__setattr__(self, "g", 1.0 / (2.0 * self.d) if whole else 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Every field with its value, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; fields left out or None take their default, unknown ones are refused."""
        known = [field.name for field in fields(cls)]
        unknown = [f"{name}: unknown parameter; known are {', '.join(known)}" for name in values if name not in known]
        if unknown:
            raise SettingsError(unknown)
        return cls(**{name: value for name, value in values.items() if value is not None})

    def fingerprint(self) -> str:
        """Eight hex digits that change with any parameter and with the algorithm version."""
        text = json.dumps([ALGORITHM, self.to_dict()], sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()

    def check_change(self, new: "Params") -> None:
        """Raise `SettingsError` naming each field that differs in `new` and cannot change on a live model."""
        refused = [
            f"{field.name}: {getattr(self, field.name)!r} cannot become {getattr(new, field.name)!r} on a model that"
            f" has learned; keep the old value, or start a new consumer group (it learns from the start of the topic)"
            for field in fields(self)
            if field.name not in MUTABLE and getattr(self, field.name) != getattr(new, field.name)
        ]
        if refused:
            raise SettingsError(refused)


def _problems(params: Params) -> Iterator[str]:
    for name, allowed in _CHOICES.items():
        value = getattr(params, name)
        if value not in allowed:
            yield f"{name}: {value!r} is not one of {', '.join(allowed)}"
    for name in _FLAGS:
        if not isinstance(getattr(params, name), bool):
            yield f"{name}: {getattr(params, name)!r} is not true or false"
    for name, (low, high) in WHOLE.items():
        value = getattr(params, name)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            yield f"{name}: {value!r} is not a whole number from {low} to {high}"
    if not _is_real(params.tau) or not 0.0 < params.tau < 1.0:
        yield f"tau: {params.tau!r} is not a number between 0 and 1, both excluded"
    for name, (lowest, highest, included) in REAL.items():
        value = getattr(params, name)
        if not _is_real(value) or not lowest <= value <= highest or (value == lowest and not included):
            bound = "at least" if included else "above"
            yield f"{name}: {value!r} is not a number {bound} {lowest:g} and at most {highest:g}"
    yield from _mismatches(params)


def _mismatches(params: Params) -> Iterator[str]:
    """Values that are fine by themselves and not with their preset."""
    if params.preset == "external":
        if params.d != 0:
            yield f"d: {params.d!r} must be 0 with preset external, whose events bring a score instead of features"
        if params.one_class is True:
            yield "one_class: True needs features to draw targets for; preset external has none"
    elif params.d == 0:
        yield f"d: {params.d!r} is not a whole number from 1 to {WHOLE['d'][1]} (the number of features)"
    if params.preset == "plus" and params.input in ("raw", "unit"):
        yield f"input: {params.input!r} is for preset paper; plus always standardises (zscore)"
    if params.preset != "paper" and params.gamma_update == "stochastic":
        yield "gamma_update: 'stochastic' is for preset paper; use 'window'"
    if params.preset != "paper" and _is_real(params.lam) and params.lam > 0.0:
        yield f"lam: {params.lam!r} is for preset paper; use 0"


def _is_real(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
