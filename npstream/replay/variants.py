"""Which settings to compare: the product of every `key=a,b,c` and of every settings file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from npstream.errors import UsageError


@dataclass(frozen=True, slots=True)
class Variant:
    """One set of assignments, and the name it has in tables."""

    name: str
    assignments: tuple[str, ...]


def variants(assignments: Sequence[str]) -> list[Variant]:
    """Every combination of assignments whose values are lists: `model.tau=0.01,0.05` makes two.

    Raises `UsageError` for one that is not `key=value`.
    """
    axes = [_axis(text) for text in assignments]
    varied = {key for key, values in axes if len(values) > 1}
    found = []
    for choice in product(*(values for _, values in axes)):
        pairs = [(key, value) for (key, _), value in zip(axes, choice, strict=True)]
        name = " ".join(f"{key.removeprefix('model.')}={value}" for key, value in pairs if key in varied)
        found.append(Variant(name or "run", tuple(f"{key}={value}" for key, value in pairs)))
    return found


def named(configs: Sequence[Path], wanted: Sequence[Variant]) -> Iterator[tuple[str, Path | None, Variant]]:
    """Every settings file with every variant, under a name that no other has."""
    stems = [config.stem for config in configs]
    alike = len(set(stems)) < len(stems)
    for variant in wanted:
        if not configs:
            yield variant.name, None, variant
        for config in configs:
            own = str(config) if alike else config.stem
            name = variant.name if len(configs) == 1 else f"{own} {variant.name}".removesuffix(" run")
            yield name, config, variant


def _axis(text: str) -> tuple[str, list[str]]:
    key, sign, values = text.partition("=")
    if not sign or not key:
        raise UsageError(f"--set {text!r}: must be key=value, or key=value,value to compare")
    whole = values.startswith(("[", "{"))
    return key, [values] if whole else values.split(",")
