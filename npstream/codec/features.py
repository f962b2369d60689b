"""What a model sees of an event: features by path, with their kinds; the label's rule; the contract over them."""

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import blake2b
from typing import Any, Literal, get_args

import orjson

FeatureKind = Literal["number", "category", "flag", "time"]
Scale = Literal["none", "log"]
Missing = Literal["refuse", "allow"]
Cycle = Literal["day", "week", "year"]
LabelValue = bool | int | float | str

FEATURE_KINDS: tuple[FeatureKind, ...] = get_args(FeatureKind)
BUCKETS_DEFAULT = 64
BUCKETS_MAX = 65_536
LABEL_NUMBER_MAX = 2**53
"""Numbers of a label rule stay below: there integers and doubles compare alike."""

Steps = tuple[str | int, ...]
"""A path taken apart: text goes into an object, a number into an array."""

_STEP = re.compile(r'(?P<dot>\.)?(?P<name>[^.\[\]"]+)|\[(?P<index>0|[1-9][0-9]{0,8})\]|\["(?P<quoted>[^"]+)"\]')


@cache
def steps_of(path: str) -> Steps:
    """A path such as `card.country`, `items[0].price` or `["a.b"]`, taken apart. Raises `ValueError`."""
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        # A dot is between two names, and nowhere else.
        if found is None or (found["name"] is not None and (found["dot"] is None) != (at == 0)):
            raise ValueError(f'{path!r} is not a path such as amount, card.country, items[0].price or ["a.b"]')
        steps.append(int(found["index"]) if found["index"] is not None else found["name"] or found["quoted"])
        at = found.end()
    if not steps:
        raise ValueError("a path must not be empty")
    if type(steps[0]) is int:
        raise ValueError(f"{path!r} begins inside an array; an event is an object")
    return tuple(steps)


def column_of(path: str) -> str:
    """The column of a table that holds what is at a path: `card.country`, `items[0].price`, `a.b` for `["a.b"]`."""
    first, *others = steps_of(path)
    return str(first) + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in others)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One named feature: where it is in an event, and what becomes of it.

    `scale` is for numbers, `cycle` for times, `buckets` (cells of the model's table, a power of two) for categories.
    `missing` says whether a number or time may be absent; a category or flag always may: absent is a value of its own.
    """

    name: str
    kind: FeatureKind
    path: str
    scale: Scale = "none"
    missing: Missing = "refuse"
    buckets: int = 0
    cycle: Cycle | None = None

    @property
    def may_miss(self) -> bool:
        """Whether an event without it is a good one."""
        return self.missing == "allow" or self.kind in ("category", "flag")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the model's columns that it fills."""
        return (f"{self.name}.sin", f"{self.name}.cos") if self.kind == "time" else (self.name,)

    def __str__(self) -> str:
        words = [self.kind, self.path]
        words += [f"scale {self.scale}"] if self.scale != "none" else []
        words += [f"cycle {self.cycle}"] if self.cycle is not None else []
        words += [f"buckets {self.buckets}"] if self.buckets else []
        words += ["missing allow"] if self.missing == "allow" else []
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class LabelRule:
    """Where the label is, and which values mean a target or a non-target; absent or null: not known yet.

    True and 1 are one value, as false and 0 are.
    """

    path: str = "y"
    target: tuple[LabelValue, ...] = (1,)
    non_target: tuple[LabelValue, ...] = (-1, 0)

    @property
    def signs(self) -> dict[LabelValue, int]:
        """1 or -1 by value."""
        return {**dict.fromkeys(self.target, 1), **dict.fromkeys(self.non_target, -1)}


DEFAULT_LABEL = LabelRule()


@dataclass(frozen=True, slots=True)
class Transform:
    """A function of the user's, `package.module:function`, and the hash of its module's source."""

    name: str
    source: str


def column_names(features: Iterable[Feature]) -> tuple[str, ...]:
    """The model's columns, in order."""
    return tuple(name for feature in features for name in feature.columns)


def column_buckets(features: Iterable[Feature]) -> tuple[int, ...]:
    """Table cells of each of the model's columns, 0 for a number; empty when all are numbers."""
    cells = tuple(feature.buckets for feature in features for _ in feature.columns)
    return cells if any(cells) else ()


def contract(features: Iterable[Feature] | Iterable[str]) -> str:
    """Eight hex digits that change with any name, kind, path, scale, bucket count or missing rule, and the order."""
    written: list[Any] = [asdict(each) if isinstance(each, Feature) else each for each in features]
    return blake2b(orjson.dumps(written, option=orjson.OPT_SORT_KEYS), digest_size=4).hexdigest()


def difference(old: Iterable[Feature], new: Iterable[Feature]) -> list[str]:
    """What changed between two lists, each with the feature's name first."""
    before, after = {each.name: each for each in old}, {each.name: each for each in new}
    found = [f"{name}: is gone; it was {before[name]}" for name in before if name not in after]
    found += [f"{name}: is new ({after[name]})" for name in after if name not in before]
    found += [
        f"{name}: is now {after[name]}; it was {before[name]}"
        for name in after
        if name in before and before[name] != after[name]
    ]
    if not found and list(before) != list(after):
        found = [f"{', '.join(after)}: is another order; it was {', '.join(before)}"]
    return found
