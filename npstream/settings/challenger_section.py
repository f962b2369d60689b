"""The `challenger` section: what of `model` and `events.features` is other for a second model that learns beside it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from npstream.model import Params
from npstream.settings.features_section import FEATURES_SCHEMA, FeatureList, read_features, shape_of, shown_features
from npstream.settings.model_section import model_schema, read_params, shown_params
from npstream.settings.section import Problems


@dataclass(frozen=True, slots=True)
class ChallengerSettings:
    """The parameters in full, and the features; None where events are read without names, or bring a score."""

    params: Params
    features: FeatureList | None = None


def merged(challenger: Mapping[str, Any], model: Mapping[str, Any], features: Any) -> dict[str, Any]:
    """The section in full: what it does not say is what the champion has."""
    own = {**model, **challenger}
    listed = None if own.get("preset") == "external" else own.pop("features", features)
    if listed is not None or own.get("preset") == "external":
        # These say it themselves, or have none.
        own = {name: value for name, value in own.items() if name in challenger or name not in ("d", "buckets")}
    given = {name: value for name, value in own.items() if value is not None}
    try:
        found = read_features(listed)
    except Problems:
        return {"d": 1, **given, "features": listed}  # reported where they are read again
    return {**({} if found is None else shape_of(found)), **given, "features": listed}


def _read(raw: Any) -> ChallengerSettings | None:
    if raw is None or isinstance(raw, ChallengerSettings):
        return raw
    if not isinstance(raw, Mapping):
        raise Problems(["must be a mapping of what is other than in model, such as D: 200"])
    found: list[str] = []
    features = params = None
    try:
        features = read_features(raw.get("features"))
    except Problems as error:
        found += [_below_features(each) for each in error.problems]
    try:
        params = read_params({name: value for name, value in raw.items() if name != "features"})
    except Problems as error:
        found += error.problems
    if params is None or found:
        raise Problems(found)
    return ChallengerSettings(params, features)


def _below_features(problem: str) -> str:
    name, colon, _ = problem.partition(": ")
    return f"features.{problem}" if colon and " " not in name else f"features: {problem}"


def _shown(challenger: ChallengerSettings | None) -> dict[str, Any] | None:
    if challenger is None:
        return None
    features = {} if challenger.features is None else {"features": shown_features(challenger.features)}
    return {**shown_params(challenger.params), **features}


def challenger_schema() -> dict[str, Any]:
    """The JSON schema of the section."""
    model = model_schema()
    # Without its defaults: what is not given is what the model has.
    own = {name: {key: each[key] for key in each if key != "default"} for name, each in model["properties"].items()}
    own["features"] = FEATURES_SCHEMA
    return {**model, "title": "ChallengerSection", "description": "What is other than in `model`.", "properties": own}


ChallengerField = Annotated[
    ChallengerSettings | None,
    PlainValidator(_read),
    PlainSerializer(_shown),
    WithJsonSchema({"anyOf": [challenger_schema(), {"type": "null"}]}),
]
