"""`events.features` and `events.label`: read by hand, so that every problem is reported at once and in plain words."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, get_args

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from npstream.codec.features import (
    BUCKETS_DEFAULT,
    BUCKETS_MAX,
    FEATURE_KINDS,
    LABEL_NUMBER_MAX,
    Cycle,
    Feature,
    FeatureKind,
    LabelRule,
    Missing,
    Scale,
    column_buckets,
    column_names,
    steps_of,
)
from npstream.errors import suggest
from npstream.settings.section import Problems, refuse

_TEXT_MAX = 200
_OPTIONS: dict[FeatureKind, tuple[str, ...]] = {
    "number": ("scale", "missing"),
    "category": ("buckets",),
    "flag": (),
    "time": ("cycle", "missing"),
}
"""What may be given for each kind beside its path."""
_CHOICES: dict[str, tuple[str, ...]] = {
    "scale": get_args(Scale),
    "missing": get_args(Missing),
    "cycle": get_args(Cycle),
}

FeatureList = tuple[str, ...] | tuple[Feature, ...]


def read_features(raw: Any) -> FeatureList | None:
    """Names of the numbers in `x`, or a mapping of names to kinds and paths. Raises `Problems`."""
    if raw is None or (isinstance(raw, tuple) and all(isinstance(each, Feature) for each in raw)):
        return raw
    if isinstance(raw, Mapping):
        return _mapped(raw)
    if not isinstance(raw, list | tuple):
        raise Problems(["must be a list of names, or a mapping of names such as amount: {number: amount}"])
    refuse([] if raw else ["a list must not be empty"])
    refuse([f"{name!r:.80} must be text; put it in quotes" for name in raw if not isinstance(name, str) or not name])
    refuse([f"{name!r} is named twice" for name in sorted(set(raw)) if list(raw).count(name) > 1])
    return tuple(raw)


def shape_of(features: FeatureList) -> dict[str, Any]:
    """What the features say of the model: its columns, and the table cells of those that are categories."""
    mapping = [feature for feature in features if isinstance(feature, Feature)]
    buckets = column_buckets(mapping)
    return {"d": len(column_names(mapping)) if mapping else len(features)} | ({"buckets": buckets} if buckets else {})


def _mapped(raw: Mapping[Any, Any]) -> tuple[Feature, ...]:
    refuse([] if raw else ["a mapping must not be empty"])
    found: list[Feature] = []
    problems: list[str] = []
    for name, entry in raw.items():
        try:
            found.append(_feature(str(name), entry))
        except Problems as error:
            problems += [f"{str(name).replace(' ', '_')}{each}" for each in error.problems]
    columns = [column for feature in found for column in feature.columns]
    problems += [f"two columns are called {name}" for name in sorted(set(columns)) if columns.count(name) > 1]
    refuse(problems)
    return tuple(found)


def _feature(name: str, entry: Any) -> Feature:
    """One entry. Each problem begins with what follows the feature's name in its path."""
    if not isinstance(entry, Mapping):
        raise Problems([f": {entry!r:.80} must be a mapping such as {{number: {name}}}"])
    kinds = [kind for kind in FEATURE_KINDS if kind in entry]
    if len(kinds) != 1:
        given = " and ".join(kinds) or "no kind"
        raise Problems([f": {given} given; give one of {', '.join(FEATURE_KINDS)}"])
    (kind,) = kinds
    problems = [] if 0 < len(name) <= _TEXT_MAX else [f": the name must have 1 to {_TEXT_MAX} characters"]
    problems += [f".{kind}: {each}" for each in _path_problems(entry[kind])]
    for option in entry:
        if option != kind and option not in _OPTIONS[kind]:
            known = _OPTIONS[kind]
            hint = f"is not for a {kind}" if option in _CHOICES or option == "buckets" else "unknown setting"
            problems.append(f".{option}: {hint}; {suggest(str(option), known) if known else 'it takes a path alone'}")
        elif option in _CHOICES and entry[option] not in _CHOICES[option]:
            problems.append(f".{option}: {entry[option]!r:.80} must be {' or '.join(_CHOICES[option])}")
    if kind == "time" and "cycle" not in entry:
        problems.append(f".cycle: missing; what part of the time counts: {', '.join(_CHOICES['cycle'])}")
    buckets = entry.get("buckets", BUCKETS_DEFAULT) if kind == "category" else 0
    if kind == "category" and not _is_power_of_two(buckets):
        problems.append(f".buckets: {buckets!r:.80} must be a power of two from 2 to {BUCKETS_MAX}")
    refuse(problems)
    options = {option: entry[option] for option in ("scale", "missing", "cycle") if option in entry}
    return Feature(name=name, kind=kind, path=entry[kind], buckets=buckets, **options)


def _is_power_of_two(buckets: Any) -> bool:
    return type(buckets) is int and 2 <= buckets <= BUCKETS_MAX and buckets & (buckets - 1) == 0


def _path_problems(path: Any) -> list[str]:
    if not isinstance(path, str):
        return [f"{path!r:.80} must be a path such as card.country"]
    if len(path) > _TEXT_MAX:
        return [f"a path must have at most {_TEXT_MAX} characters"]
    try:
        steps_of(path)
    except ValueError as error:
        return [str(error)]
    return []


def read_path(raw: Any) -> str:
    """A path. Raises `Problems`."""
    refuse(_path_problems(raw))
    return str(raw)


def read_label(raw: Any) -> LabelRule:
    """A path alone, or {path, target, non_target}. Raises `Problems`."""
    if isinstance(raw, LabelRule):
        return raw
    if isinstance(raw, str):
        raw = {"path": raw}
    if not isinstance(raw, Mapping):
        raise Problems(["must be a path, or a mapping such as {path: fraud, target: [true], non_target: [false]}"])
    known, plain = ("path", "target", "non_target"), LabelRule()
    problems = [f"{name}: unknown setting; {suggest(str(name), known)}" for name in raw if name not in known]
    path = raw.get("path", plain.path)
    problems += [f"path: {each}" for each in _path_problems(path)]
    values = {name: raw.get(name, getattr(plain, name)) for name in known[1:]}
    for name, listed in values.items():
        problems += [f"{name}: {each}" for each in _value_problems(listed)]
    refuse(problems)
    rule = LabelRule(path, tuple(values["target"]), tuple(values["non_target"]))
    refuse([f"target: {value!r} is a non_target too" for value in rule.target if value in rule.non_target])
    return rule


def _value_problems(listed: Any) -> Iterable[str]:
    if not isinstance(listed, list | tuple) or not listed:
        return ["must be a list of the values that mean it"]
    return [
        f"{value!r:.80} must be text, true, false, or a number below 2**53"
        for value in listed
        if not isinstance(value, str | bool | int | float)
        or (not isinstance(value, str) and not abs(value) < LABEL_NUMBER_MAX)
    ]


def shown_features(features: FeatureList | None) -> Any:
    """As a settings file has them."""
    if features is None or not isinstance(features[0], Feature):
        return features
    return {feature.name: shown_feature(feature) for feature in features if isinstance(feature, Feature)}


def shown_feature(feature: Feature) -> dict[str, Any]:
    """One feature as a settings file has it."""
    return {feature.kind: feature.path} | {option: getattr(feature, option) for option in _OPTIONS[feature.kind]}


def shown_label(label: LabelRule) -> dict[str, Any]:
    """The label as a settings file has it."""
    return {"path": label.path, "target": list(label.target), "non_target": list(label.non_target)}


_PATH = {"type": "string", "minLength": 1, "maxLength": _TEXT_MAX}
_VALUES = {"type": "array", "minItems": 1, "items": {"type": ["string", "boolean", "number"]}}


def _feature_schema(kind: FeatureKind) -> dict[str, Any]:
    properties: dict[str, Any] = {kind: _PATH}
    for option in _OPTIONS[kind]:
        properties[option] = (
            {"enum": list(_CHOICES[option])}
            if option in _CHOICES
            else {"type": "integer", "minimum": 2, "maximum": BUCKETS_MAX, "default": BUCKETS_DEFAULT}
        )
    required = [kind, "cycle"] if kind == "time" else [kind]
    return {"type": "object", "additionalProperties": False, "properties": properties, "required": required}


FEATURES_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
        {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"anyOf": [_feature_schema(kind) for kind in FEATURE_KINDS]},
        },
        {"type": "null"},
    ]
}
FeaturesField = Annotated[
    FeatureList | None,
    PlainValidator(read_features),
    PlainSerializer(shown_features),
    WithJsonSchema(FEATURES_SCHEMA),
]
PathField = Annotated[str, PlainValidator(read_path), WithJsonSchema(_PATH)]
LabelField = Annotated[
    LabelRule,
    PlainValidator(read_label),
    PlainSerializer(shown_label),
    WithJsonSchema(
        {
            "anyOf": [
                _PATH,
                {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"path": _PATH, "target": _VALUES, "non_target": _VALUES},
                },
            ]
        }
    ),
]
