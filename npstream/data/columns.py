"""Which columns of a table are features, label and id: by their names, never by their places.

id, hour, amount, comment, y        with features (amount, hour):
id  x[1]  x[0]    left out  label
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from npstream.errors import UsageError

LABELS = ("y", "label", "target", "class")
"""Names by which a label column is found, in any case."""

ID = "id"
NO_LABEL = "none"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the settings and the command line ask for.

    Without `features`: every column of numbers. `label` is a column's name,
    `NO_LABEL`, or None for the one that is named like a label.
    """

    features: tuple[str, ...] | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """The columns of a table by their part. `left_out` are the others."""

    features: tuple[str, ...]
    label: str | None
    id: str | None
    left_out: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"features {_listed(self.features)}", f"label {self.label or 'none'}"]
        if self.id is not None:
            parts.append(f"id {self.id}")
        if self.left_out:
            parts.append(f"left out {_listed(self.left_out)}")
        return "; ".join(parts)


def choose(names: Sequence[str], wanted: Wanted, is_numeric: Callable[[str], bool]) -> Chosen:
    """The columns to take from a table with these names. Raises `UsageError` with what there is and what is wanted."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two columns are named {twice!r}; give each a name of its own")
    taken = wanted.features or ()
    missing = [name for name in taken if name not in names]
    if missing:
        raise UsageError(
            f"no column {_listed(missing)}; wanted are {_listed(taken)} (events.features), there are {_listed(names)}"
        )
    free = [name for name in names if name not in taken]
    label = _label(free, names, wanted.label)
    identity = next((name for name in free if name.casefold() == ID and name != label), None)
    # A column without a name is what some programs write the numbers of rows to.
    others = [name for name in free if name not in (label, identity)]
    features = taken or tuple(name for name in others if name and is_numeric(name))
    if not features:
        raise UsageError(f"no column of numbers besides label and id; there are {_listed(names)}")
    return Chosen(features, label, identity, tuple(name for name in others if name not in features))


def _label(free: Sequence[str], names: Sequence[str], asked: str | None) -> str | None:
    if asked == NO_LABEL:
        return None
    if asked is not None:
        if asked not in free:
            why = "it is a feature" if asked in names else f"there are {_listed(names)}"
            raise UsageError(f"--label {asked}: no such column to take the label from; {why}")
        return asked
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
