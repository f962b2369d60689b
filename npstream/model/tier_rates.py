"""The tiers of a model as settings have them: names and rates, the strictest first."""

import re
from collections.abc import Collection, Mapping
from typing import Any

Tiers = tuple[tuple[str, float], ...]

TIERS_MAX = 8
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")


def read_tiers(raw: Any) -> Any:
    """Tiers of a mapping, or of pairs as JSON has them, by rate; anything else as it is, for `tiers_problem`."""
    pairs = list(raw.items()) if isinstance(raw, Mapping) else raw
    if isinstance(pairs, str) or not isinstance(pairs, Collection):
        return raw
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        return raw
    tiers = [(name, float(rate) if type(rate) is int else rate) for name, rate in pairs]
    if all(isinstance(rate, float) for _, rate in tiers):
        tiers.sort(key=lambda tier: tier[1])
    return tuple(tiers)


def tiers_problem(tiers: Any) -> str | None:
    """What keeps these from being tiers; None where nothing does."""
    if not isinstance(tiers, tuple) or not all(isinstance(tier, tuple) for tier in tiers):
        return f"{tiers!r} is not a mapping of names to rates, such as {{block: 0.001, review: 0.01}}"
    for name, rate in tiers:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            return f"{name!r} is not a name: a to z, 0 to 9 and _, beginning with a letter, at most 32 of them"
        if not isinstance(rate, float) or not 0.0 < rate < 1.0:
            return f"{name}: {rate!r} is not a number between 0 and 1, both excluded"
    if len(tiers) == 1:
        return "one tier is no choice; use tau"
    if len(tiers) > TIERS_MAX:
        return f"{len(tiers)} given, at most {TIERS_MAX} are possible"
    if len({name for name, _ in tiers}) < len(tiers) or len({rate for _, rate in tiers}) < len(tiers):
        return f"{', '.join(f'{name}: {rate:g}' for name, rate in tiers)}: each needs a name and a rate of its own"
    return None
