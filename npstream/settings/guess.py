"""A first `events` section guessed from a sample of events, for the user to edit: every guess says what it saw."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from npstream.codec.features import BUCKETS_MAX, Feature, LabelRule
from npstream.codec.times import UNIT_LIMIT, seconds_of_number, seconds_of_text
from npstream.errors import UsageError
from npstream.settings.features_section import shown_feature, shown_label

_ID = re.compile(r"(^|_)(id|uuid|guid)$", re.IGNORECASE)
_LABEL = re.compile(
    r"^(y|label|target|class|(is_|was_)?(fraud|spam|anomaly|churn(ed)?|chargeback)(_flag)?)$", re.IGNORECASE
)
_CODE = re.compile(r"(^|_)(id|code|mcc|bin|zip|postcode|type|category|status)$", re.IGNORECASE)
_TIME = re.compile(r"(_at|_time|_ts|_ms)$|^(time|ts|timestamp|date)", re.IGNORECASE)
_MONEY = re.compile(r"amount|price|balance|total|value|sum", re.IGNORECASE)
_TARGETS: tuple[Any, ...] = (True, "Y", "y", "yes", "true", "1", "fraud")
_NON_TARGETS: tuple[Any, ...] = (False, -1, "N", "n", "no", "false", "0", "ok")
_DISTINCT_SHARE = 0.9
_SAMPLE_MIN = 10
"""Events from which on it means something that no value of a text comes twice."""
_EARLIEST_S, _LATEST_S = 9e8, 4e9
"""1998 to 2096: numbers outside are hardly times."""
_DEPTH_MAX = 8


def guess_events(documents: Sequence[object]) -> str:
    """The YAML text of a section `events`. Raises `UsageError` when the sample has no objects."""
    objects = [document for document in documents if isinstance(document, dict)]
    if not objects:
        raise UsageError("the sample holds no JSON object; give events as their producer writes them")
    prefix = _envelope(objects)
    columns = _columns(objects, prefix)
    label, rule = _label(columns)
    identity = _identity([path for path in columns if path != label], columns)
    features: dict[str, Feature] = {}
    left_out: list[str] = []
    for path, values in columns.items():
        if path in (label, identity):
            continue
        name = _name(path, prefix, features)
        feature = _feature(name, path, values, len(objects))
        if feature is None:
            left_out.append(f"{path}: {_seen(values)}")
        else:
            features[name] = feature
    return _text(len(objects), identity, rule if label else None, features, left_out, columns)


def _envelope(objects: list[dict[str, Any]]) -> tuple[str, ...]:
    """Where the row is inside a change-data-capture envelope; nothing for plain events."""
    for prefix in (("payload", "after"), ("after",)):
        found: Any = objects[0]
        for step in prefix:
            found = found.get(step) if isinstance(found, dict) else None
        if isinstance(found, dict):
            return prefix
    return ()


def _columns(objects: list[dict[str, Any]], prefix: tuple[str, ...]) -> dict[str, list[Any]]:
    """The values at every path that leads to a scalar, in the order of their first appearance."""
    columns: dict[str, list[Any]] = {}
    for document in objects:
        for steps, value in _leaves(document, ()):
            if steps[: len(prefix)] == prefix:
                columns.setdefault(_path(steps), []).append(value)
    return columns


def _leaves(value: object, steps: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping) and len(steps) < _DEPTH_MAX:
        for key, below in value.items():
            if key and '"' not in key:
                yield from _leaves(below, (*steps, key))
    elif not isinstance(value, Mapping | list):
        yield steps, value


def _path(steps: tuple[str, ...]) -> str:
    text = "".join(f'["{step}"]' if re.search(r"[.\[\]]", step) else f".{step}" for step in steps)
    return text.removeprefix(".")


def _label(columns: Mapping[str, list[Any]]) -> tuple[str | None, LabelRule]:
    for path, values in columns.items():
        known = {value for value in values if value is not None}
        if _LABEL.search(_last(path)) and known <= {*_TARGETS, *_NON_TARGETS}:
            own = [tuple(value for value in group if value in known) for group in (_TARGETS, _NON_TARGETS)]
            return path, LabelRule(path, own[0] or (True,), own[1] or (False,))
    return None, LabelRule()


def _identity(paths: Sequence[str], columns: Mapping[str, list[Any]]) -> str | None:
    """A path called id whose values are all there and all different; the shortest one."""
    unique = [path for path in paths if _ID.search(_last(path)) and _is_key(columns[path])]
    return min(unique, key=lambda path: (path.count("."), paths.index(path)), default=None)


def _is_key(values: list[Any]) -> bool:
    return all(type(value) in (str, int) for value in values) and len(set(values)) == len(values)


def _last(path: str) -> str:
    return re.split(r"[.\[]", path)[-1].strip('"]')


def _name(path: str, prefix: tuple[str, ...], taken: Mapping[str, Feature]) -> str:
    short = re.sub(r"\W+", "_", path.removeprefix(_path(prefix)).strip('.[]"')).strip("_") or "feature"
    name, number = short, 1
    while name in taken:
        number += 1
        name = f"{short}_{number}"
    return name


def _feature(name: str, path: str, values: list[Any], count: int) -> Feature | None:
    """What the values look like; None for what is better left out."""
    known = [value for value in values if value is not None]
    missing: Any = "allow" if len(known) < count else "refuse"
    if not known:
        return None
    kinds = {type(value) for value in known}
    if kinds == {bool}:
        return Feature(name=name, kind="flag", path=path)
    if kinds <= {int, float}:
        if _TIME.search(_last(path)) and all(_is_recent(value) for value in known):
            return Feature(name=name, kind="time", path=path, cycle="day", missing=missing)
        if not (_CODE.search(_last(path)) and kinds == {int}):
            scale: Any = "log" if _MONEY.search(_last(path)) else "none"
            return Feature(name=name, kind="number", path=path, scale=scale, missing=missing)
    elif kinds == {str} and all(seconds_of_text(value) == seconds_of_text(value) for value in known):
        return Feature(name=name, kind="time", path=path, cycle="day", missing=missing)
    if not kinds <= {str, int, bool}:
        return None
    distinct = len(set(known))
    if len(known) >= _SAMPLE_MIN and distinct > _DISTINCT_SHARE * len(known):
        return None  # a name or a key of its own for each event teaches nothing
    return Feature(name=name, kind="category", path=path, buckets=_buckets(distinct))


def _is_recent(value: float) -> bool:
    return abs(value) < UNIT_LIMIT * 1e9 and _EARLIEST_S <= seconds_of_number(float(value)) <= _LATEST_S


def _buckets(distinct: int) -> int:
    """Room for four times the values that were seen, 64 at least."""
    return min(BUCKETS_MAX, max(64, 1 << (4 * distinct - 1).bit_length()))


def _seen(values: list[Any]) -> str:
    known = list(dict.fromkeys(repr(value)[:30] for value in values if value is not None))
    return ", ".join(known[:3]) + (f" and {len(known) - 3} more" if len(known) > 3 else "") if known else "null only"


def _text(
    count: int,
    identity: str | None,
    label: LabelRule | None,
    features: Mapping[str, Feature],
    left_out: Sequence[str],
    columns: Mapping[str, list[Any]],
) -> str:
    lines = [
        f"# Guessed from {count} events: read it, correct it, then try it with `npstream check --events`.",
        "events:",
    ]
    lines.append(
        f"  id: {_flow(identity)}" if identity else "  # id: no field with a value of its own in each event was found"
    )
    if label is not None:
        lines.append(f"  label: {_flow(shown_label(label))}")
    else:
        lines.append("  # label: no field that looks like one; {path: fraud, target: [true], non_target: [false]}")
    lines.append("  features:" if features else "  # features: nothing that a model could learn from was found")
    width = max(map(len, features), default=0) + 1
    for name, feature in features.items():
        entry = {key: value for key, value in shown_feature(feature).items() if value not in ("none", "refuse")}
        lines.append(f"    {(_flow(name) + ':').ljust(width)} {_flow(entry)}  # {_comment(columns[feature.path])}")
    lines += ["  # Left out:"] * bool(left_out) + [f"  #   {_plain(each)}" for each in left_out]
    return "\n".join(lines) + "\n"


def _comment(values: list[Any]) -> str:
    return _plain(_seen(values))


def _plain(text: str) -> str:
    return text.encode("unicode_escape").decode("ascii")


def _flow(value: Any) -> str:
    """YAML on one line."""
    return yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False).removesuffix("\n...\n").strip()
