"""Everything a user may turn on a classifier, validated at once."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Self, get_args

from npstream.errors import SettingsError, suggest
from npstream.model.tier_rates import Tiers, read_tiers, tiers_problem

ALGORITHM = 3
"""Version of the arithmetic: raised whenever the same events would give other bytes."""

MUTABLE = frozenset({"tau", "tiers", "control", "eta", "beta", "lam", "budget", "charge", "learning"})
"""What may change on a model that has learned; everything else shapes its state."""

TAU = 0.01
"""The rate without another one; a default in code, because tiers set it too."""

Preset = Literal["plus", "paper", "external"]
Kernel = Literal["rbf", "laplacian", "matern"]
Input = Literal["raw", "unit", "zscore"]
GammaUpdate = Literal["window", "stochastic"]
Charge = Literal["label", "issue"]
Control = Literal["fpr", "alarm_rate"]

_UNSET: Any = None
_FEATURES_MAX = 10_000
_BUCKETS_MAX = 65_536
_DEFAULTS: dict[str, dict[str, Any]] = {
    "plus": {"eta": 0.05, "beta": 0.01, "input": "zscore"},
    "paper": {"eta": 0.01, "beta": 5e-4, "input": "raw"},
    "external": {"eta": 0.05, "beta": 0.01, "input": "raw"},
}

NO_EFFECT: Mapping[str, tuple[str, ...]] = {"paper": ("control", "budget", "charge")}
"""Parameters that a preset does not look at, whatever their value: `paper` has a fixed threshold and no budget."""


def _field(default: Any, description: str, **bounds: float) -> Any:
    """A parameter: its default, what it is for, and its range in the words of JSON schema."""
    return field(default=default, metadata={**bounds, "description": description})


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """The settings of one classifier. Fields left out take the value of their preset.

    Raises `SettingsError` with every problem found, each naming the field, the
    value and what is allowed. After construction every field holds its value.
    """

    preset: Preset = _field(
        "plus",
        "`plus` learns on streams; `paper` is the published algorithm to the letter; `external` takes a score from "
        "another model and keeps threshold and budget.",
    )
    d: int = _field(
        0,
        "Number of features; set by `events.features` when they are named, 0 with preset external.",
        minimum=0,
        maximum=_FEATURES_MAX,
    )
    D: int = _field(
        100, "Hidden units. More: finer boundaries, more time per event and a larger state.", minimum=1, maximum=100_000
    )
    tau: float = _field(
        _UNSET,
        "Rate to hold: of what, says `model.control`. With `tiers` it is the largest of their rates.",
        exclusiveMinimum=0,
        exclusiveMaximum=1,
    )
    tiers: Tiers = _field(
        (),
        "Several rates instead of one, such as `{block: 0.001, review: 0.01}`: each has a "
        "threshold and a budget of its own, and an alarm names the strictest one it reaches. At most 8. Rates may "
        "change, names and their order may not. Not with preset paper.",
    )
    control: Control = _field(
        "fpr",
        "`fpr`: false alarms among labelled non-targets are held to tau. `alarm_rate`: alarms among all observations "
        "are, from the first day on and without any label. Not with preset paper.",
    )
    buckets: tuple[int, ...] = _field(
        (),
        "Kinds of the features, set by `events.features`: for each 0 (a number) or, for a category, the cells of its "
        "table, a power of two. Empty: all are numbers.",
        maximum=_BUCKETS_MAX,
    )
    seed: int = _field(
        0, "Key of the random start, so that two groups can start alike or not.", minimum=0, maximum=2**63 - 1
    )
    eta: float = _field(_UNSET, "Learning rate; the default depends on the preset.", exclusiveMinimum=0.0, maximum=10.0)
    beta: float = _field(
        _UNSET,
        "Gain of the multiplier that weighs false positives; the default depends on the preset.",
        minimum=0.0,
        maximum=1.0,
    )
    g: float = _field(
        _UNSET,
        "Bandwidth of the initial kernel; by default 1/(2d), d counting numbers only. Raise it when classes are "
        "separated by fine structure.",
        exclusiveMinimum=0.0,
        maximum=1e6,
    )
    kernel: Kernel = _field("rbf", "Shift-invariant kernel that the first directions are drawn for.")
    input: Input = _field(
        _UNSET, "Preset paper: features as they come, scaled to unit norm, or standardised as they stream in."
    )
    lam: float = _field(0.0, "Preset paper: regularisation, and decay of both rates.", minimum=0.0, maximum=0.1)
    gamma_update: GammaUpdate = _field(
        "window", "Preset paper: multiplier by a window of past negatives, or by single events."
    )
    window: int = _field(200, "Length of that window.", minimum=1, maximum=100_000)
    one_class: bool = _field(
        False, "Learn from non-targets alone, against targets drawn over the range of the features."
    )
    budget: float = _field(
        20.0,
        "Capacity of the alarm bucket: how many false alarms above the rate may come in one burst, after a quiet time "
        "twice as many; with control alarm_rate, how many alarms. Preset paper has none.",
        exclusiveMinimum=0.0,
        maximum=1e9,
    )
    charge: Charge = _field(
        "label",
        "Charge an alarm when its label says it was false, or already when it is issued. Not with preset paper; "
        "control alarm_rate charges every alarm when it is issued.",
    )
    learning: bool = _field(True, "`off` freezes the model; the budget and all counters go on.")

    def __post_init__(self) -> None:
        if isinstance(self.buckets, list | tuple):  # a list, as JSON has it; all numbers have one spelling
            object.__setattr__(self, "buckets", tuple(self.buckets) if any(self.buckets) else ())
        object.__setattr__(self, "tiers", read_tiers(self.tiers))
        self._fill_preset_values()
        problems = list(_problems(self))
        if problems:
            raise SettingsError(problems)
        for rule in fields(self):
            if rule.type is float:  # one spelling for each number, so that equal settings have equal fingerprints
                object.__setattr__(self, rule.name, float(getattr(self, rule.name)))

    def _fill_preset_values(self) -> None:
        for name, value in _DEFAULTS.get(self.preset, _DEFAULTS["plus"]).items():
            if getattr(self, name) is _UNSET:
                object.__setattr__(self, name, value)
        if self.tau is _UNSET:
            tiered = self.tiers != () and tiers_problem(self.tiers) is None
            object.__setattr__(self, "tau", self.tiers[-1][1] if tiered else TAU)
        if self.g is _UNSET:
            whole = isinstance(self.d, int) and self.d > 0
            object.__setattr__(self, "g", 1.0 / (2.0 * max(self.numbers, 1)) if whole else 1.0)

    @property
    def numbers(self) -> int:
        """How many of the d features are numbers; the others are categories."""
        return self.d - sum(cells != 0 for cells in self.buckets)

    @property
    def takes_missing(self) -> bool:
        """Whether a feature may be missing (NaN), and be a category."""
        return self.preset == "plus"

    @property
    def rates(self) -> tuple[float, ...]:
        """The rates to hold, the widest first: tau alone without tiers."""
        return tuple(rate for _, rate in reversed(self.tiers)) or (self.tau,)

    @property
    def tier_names(self) -> tuple[str, ...]:
        """The names of the tiers, the widest first: an alarm reaches the first so many of them."""
        return tuple(name for name, _ in reversed(self.tiers))

    def to_dict(self) -> dict[str, Any]:
        """Every field with its value, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; fields left out or None take their default, unknown ones are refused."""
        known = [rule.name for rule in fields(cls)]
        unknown = [f"{name}: unknown setting; {suggest(str(name), known)}" for name in values if name not in known]
        try:
            params = cls(**{name: values[name] for name in known if values.get(name) is not None})
        except SettingsError as error:
            raise SettingsError(unknown + error.problems) from None
        if unknown:
            raise SettingsError(unknown)
        return params

    def fingerprint(self) -> str:
        """Eight hex digits that change with any parameter and with the algorithm version."""
        text = json.dumps([ALGORITHM, self.to_dict()], sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()

    def check_change(self, new: "Params") -> None:
        """Raise `SettingsError` naming each field that differs in `new` and cannot change on a live model."""
        refused = [
            f"{name}: {getattr(self, name)!r} cannot become {getattr(new, name)!r} on a model that"
            f" has learned; keep the old value, or let a model with the new one learn beside it (challenger.{name}) and"
            " take its place by `npstream promote`"
            for name in self.fixed_differences(new)
        ]
        if refused:
            raise SettingsError(refused)

    def fixed_differences(self, new: "Params") -> list[str]:
        """The fields that shape the state and differ. Of tiers these are the names: their rates may change."""
        differing = [
            rule.name
            for rule in fields(self)
            if rule.name not in MUTABLE and getattr(self, rule.name) != getattr(new, rule.name)
        ]
        return differing if self.tier_names == new.tier_names else [*differing, "tiers"]


# For `help(Params)`: each field is described once, where its range is.
Params.__doc__ = "\n".join(
    [f"{Params.__doc__}", *(f"    {f.name:<13} {f.metadata['description']}" for f in fields(Params))]
)


def _problems(params: Params) -> Iterator[str]:
    for rule in fields(params):
        value = getattr(params, rule.name)
        if rule.name == "tiers":
            problem = tiers_problem(value)
            if problem is not None:
                yield f"tiers: {problem}"
        elif not _is_allowed(value, rule.type, rule.metadata):
            yield f"{rule.name}: {value!r} is not {_allowed(rule.type, rule.metadata)}"
    yield from _mismatches(params)


def _is_allowed(value: Any, kind: Any, bounds: Mapping[str, Any]) -> bool:
    if kind == tuple[int, ...]:
        return isinstance(value, tuple) and all(_is_cells(cells, bounds["maximum"]) for cells in value)
    if get_args(kind):
        return value in get_args(kind)
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    return (
        isinstance(value, int if kind is int else (int, float))
        and bounds.get("minimum", -math.inf) <= value <= bounds.get("maximum", math.inf)
        and bounds.get("exclusiveMinimum", -math.inf) < value < bounds.get("exclusiveMaximum", math.inf)
    )


def _is_cells(cells: Any, largest: int) -> bool:
    return type(cells) is int and (cells == 0 or (2 <= cells <= largest and cells & (cells - 1) == 0))


def _allowed(kind: Any, bounds: Mapping[str, Any]) -> str:
    if kind == tuple[int, ...]:
        return f"a list of 0 (a number) and powers of two from 2 to {bounds['maximum']} (a category)"
    if get_args(kind):
        return f"one of {', '.join(get_args(kind))}"
    if kind is bool:
        return "true or false"
    if kind is int:
        return f"a whole number from {bounds['minimum']} to {bounds['maximum']}"
    if "exclusiveMaximum" in bounds:
        return f"a number between {bounds['exclusiveMinimum']:g} and {bounds['exclusiveMaximum']:g}, both excluded"
    lowest = f"at least {bounds['minimum']:g}" if "minimum" in bounds else f"above {bounds['exclusiveMinimum']:g}"
    return f"a number {lowest} and at most {bounds['maximum']:g}"


def _mismatches(params: Params) -> Iterator[str]:
    """Values that are fine by themselves and not with their preset."""
    if params.preset == "external":
        if params.d != 0:
            yield f"d: {params.d!r} must be 0 with preset external, whose events bring a score instead of features"
        if params.one_class is True:
            yield "one_class: True needs features to draw targets for; preset external has none"
    elif params.d == 0:
        yield f"d: {params.d!r} is not a whole number from 1 to {_FEATURES_MAX} (the number of features)"
    if params.tiers and params.preset == "paper":
        yield "tiers: preset paper has one fixed threshold; use preset plus or external"
    elif params.tiers and tiers_problem(params.tiers) is None and params.tau != params.tiers[-1][1]:
        yield f"tau: {params.tau!r} is not {params.tiers[-1][1]!r}, the largest rate of tiers; leave it out"
    if params.control == "alarm_rate" and params.preset == "paper":
        yield "control: 'alarm_rate' moves the threshold; that of preset paper is fixed, use preset plus or external"
    if params.control == "alarm_rate" and params.charge == "issue":
        yield "charge: 'issue' is for control fpr; alarm_rate charges every alarm when it is issued, leave it out"
    if params.buckets and not params.takes_missing:
        yield f"buckets: categories need preset plus, not {params.preset}"
    elif params.buckets and len(params.buckets) != params.d:
        yield f"buckets: {len(params.buckets)} given, d is {params.d}; one for each feature, or none"
    if params.preset == "plus" and params.input in ("raw", "unit"):
        yield f"input: {params.input!r} is for preset paper; plus always standardises (zscore)"
    if params.preset != "paper" and params.gamma_update == "stochastic":
        yield "gamma_update: 'stochastic' is for preset paper; use 'window'"
    if params.preset != "paper" and isinstance(params.lam, int | float) and params.lam > 0.0:
        yield f"lam: {params.lam!r} is for preset paper; use 0"
