"""The `model` section: the fields of `Params`, which checks them itself and reports all problems at once."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, get_args

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from npstream.errors import SettingsError
from npstream.model import Params
from npstream.model.params import NO_EFFECT, TAU
from npstream.model.tier_rates import TIERS_MAX
from npstream.settings.section import Problems, refuse

_LISTS = frozenset(field.name for field in fields(Params) if field.type == tuple[int, ...])
_TEXTS = frozenset(field.name for field in fields(Params) if get_args(field.type)) - _LISTS - {"tiers"}
_WORDS = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}


def read_params(raw: Any) -> Params:
    """The parameters of a mapping or of `Params` themselves. Raises `Problems` with all that is wrong."""
    if isinstance(raw, Params):
        return raw
    if not isinstance(raw, Mapping):
        raise Problems(["must be a mapping of parameters"])
    found = [f"{name}: has no effect with preset {raw['preset']}; leave it out" for name in _idle(raw)]
    try:
        params = Params.from_dict({name: _typed(name, value) for name, value in raw.items()})
    except SettingsError as error:
        raise Problems(found + error.problems) from None
    refuse(found)
    return params


def _idle(raw: Mapping[str, Any]) -> list[str]:
    return [name for name in NO_EFFECT.get(str(raw.get("preset")), ()) if raw.get(name) is not None]


def shown_params(params: Params) -> dict[str, Any]:
    """The parameters that have an effect: a dump of settings is a settings file."""
    idle = NO_EFFECT.get(params.preset, ())
    return {
        name: list(value) if name in _LISTS else dict(value) if name == "tiers" else value
        for name, value in params.to_dict().items()
        if name not in idle and value != ()
    }


def _typed(name: str, value: Any) -> Any:
    """Text from the environment, and numbers such as 1e-3 that YAML takes for text, as what the parameter is."""
    if isinstance(value, Mapping):
        return {key: _typed(name, each) for key, each in value.items() if each is not None}
    if not isinstance(value, str) or name in _TEXTS:
        return value
    for read in (int, float):
        try:
            return read(value)
        except ValueError:
            continue
    return _WORDS.get(value.lower(), value)


def model_schema() -> dict[str, Any]:
    """The JSON schema of the section, made from the fields of `Params`."""
    kinds: dict[Any, str] = {int: "integer", float: "number", bool: "boolean"}
    properties: dict[str, Any] = {}
    for field in fields(Params):
        if field.name in _LISTS:
            bounds = {"minimum": 0, "maximum": field.metadata["maximum"]}
            items = {"type": "integer", **bounds}
            properties[field.name] = {"type": "array", "items": items, "description": field.metadata["description"]}
            continue
        if field.name == "tiers":
            rate = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
            tiers = {"type": "object", "additionalProperties": rate, "minProperties": 2, "maxProperties": TIERS_MAX}
            properties[field.name] = {**tiers, **field.metadata}
            continue
        kind = {"type": kinds[field.type]} if field.type in kinds else {"enum": list(get_args(field.type))}
        # Some defaults depend on the preset, and d on the features.
        default = {} if field.default is None or field.name == "d" else {"default": field.default}
        if field.name == "tau":
            default = {"default": TAU}
        properties[field.name] = {**kind, **default, **field.metadata}
    return {
        "type": "object",
        "title": "ModelSection",
        "description": "The classifier of each partition.",
        "additionalProperties": False,
        "properties": properties,
    }


ModelSection = Annotated[
    Params, PlainValidator(read_params), PlainSerializer(shown_params), WithJsonSchema(model_schema())
]
