"""Which columns of a table are features, label and id: by their names, never by their places.

id, hour, amount, comment, y        with features (amount, hour):
id  x[1]  x[0]    left out  label

With a mapping the columns have the names of its paths: `card.country` for {category: card.country}.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from npstream.codec.decoder import EventConfig
from npstream.codec.features import DEFAULT_LABEL, column_of
from npstream.errors import DataError, UsageError

LABELS = ("y", "label", "target", "class")
"""Names by which a label column is found, in any case."""

ID = "id"
NO_LABEL = "none"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the settings and the command line ask for.

    Without `features`: every column of numbers. `label` is a column's name,
    `NO_LABEL`, or None for the one that `events` names, else that is named like a
    label.
    """

    features: tuple[str, ...] | None = None
    label: str | None = None
    events: EventConfig | None = None

    @classmethod
    def by(cls, events: EventConfig, label: str | None) -> "Wanted":
        """What the settings name, and the command line's label."""
        mapped = None if events.mapping is None else tuple(column_of(feature.path) for feature in events.mapping)
        return cls(events.features if mapped is None else mapped, label, events)

    @property
    def ruled(self) -> EventConfig | None:
        """The settings, if they say how values are read: by a mapping, or by a rule for the label."""
        events = self.events
        return events if events is not None and (events.mapping is not None or events.label != DEFAULT_LABEL) else None

    def named(self, column: str) -> str:
        """A column, with the feature that it is for."""
        of = () if self.events is None else self.events.mapping or ()
        names = [feature.name for feature in of if column_of(feature.path) == column and feature.name != column]
        return f"{column} (feature {', '.join(names)})" if names else column


@dataclass(frozen=True, slots=True)
class Chosen:
    """The columns of a table by their part. `left_out` are the others."""

    features: tuple[str, ...]
    label: str | None
    id: str | None
    left_out: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"features {_listed([*dict.fromkeys(self.features)])}", f"label {self.label or 'none'}"]
        if self.id is not None:
            parts.append(f"id {self.id}")
        if self.left_out:
            parts.append(f"left out {_listed(self.left_out)}")
        return "; ".join(parts)


def choose(names: Sequence[str], wanted: Wanted, is_numeric: Callable[[str], bool]) -> Chosen:
    """The columns to take from a table with these names. Raises `UsageError` with what there is and what is wanted."""
    taken = wanted.features or ()
    missing = [name for name in taken if name not in names]
    if missing:
        lacking = ", ".join(wanted.named(name) for name in dict.fromkeys(missing))
        listed = _listed([*dict.fromkeys(taken)])
        raise DataError(f"no column {lacking}; wanted are {listed} (events.features), there are {_listed(names)}")
    free = [name for name in names if name not in taken]
    label = _label(free, names, wanted)
    identity = _identity([name for name in free if name != label], wanted)
    # A column without a name is what some programs write the numbers of rows to.
    others = [name for name in free if name not in (label, identity)]
    features = taken or tuple(name for name in others if name and is_numeric(name))
    if not features:
        raise DataError(f"no column of numbers besides label and id; there are {_listed(names)}")
    return Chosen(features, label, identity, tuple(name for name in others if name not in features))


def _identity(free: Sequence[str], wanted: Wanted) -> str | None:
    """The id may be missing: then each row is called by its number."""
    path = None if wanted.events is None else column_of(wanted.events.id)
    return path if path in free else next((name for name in free if name.casefold() == ID), None)


def _label(free: Sequence[str], names: Sequence[str], wanted: Wanted) -> str | None:
    asked = wanted.label
    path = DEFAULT_LABEL.path if wanted.events is None else column_of(wanted.events.label.path)
    if asked == NO_LABEL:
        return None
    if asked is not None:
        if asked not in free:
            why = "it is a feature" if asked in names else f"there are {_listed(names)}"
            raise UsageError(f"--label {asked}: no such column to take the label from; {why}")
        return asked
    if path != DEFAULT_LABEL.path:
        if path in free:
            return path
        raise DataError(
            f"no column {path} (events.label); name the label's with --label NAME, or --label {NO_LABEL} where there "
            f"is none; there are {_listed(names)}"
        )
    found = [name for name in free if name.casefold() in LABELS]
    if len(found) == 1:
        return found[0]
    problem = f"{_listed(found)} could all be the label" if found else f"no column is named {' or '.join(LABELS)}"
    raise UsageError(
        f"{problem}; name the label's with --label NAME, or --label {NO_LABEL} where there is none; "
        f"there are {_listed(names)}"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name or "(unnamed)" for name in names)
