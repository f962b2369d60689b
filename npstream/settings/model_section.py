"""The `model` section: the fields of `Params`, which checks them itself and tells all problems at once."""

import difflib
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from npstream.errors import SettingsError
from npstream.model import Params
from npstream.model.params import NO_EFFECT, REAL, WHOLE
from npstream.settings.section import Problems

DESCRIPTIONS = {
    "preset": "`plus` learns on streams; `paper` is the published algorithm to the letter; `external` takes a score "
    "from another model and keeps threshold and budget.",
    "d": "Number of features; set by `events.features` when they are named, 0 with preset external.",
    "D": "Hidden units. More: finer boundaries, more time per event and a larger state.",
    "tau": "False-positive rate to hold.",
    "seed": "Key of the random start, so that two groups can start alike or not.",
    "eta": "Learning rate; the default depends on the preset.",
    "beta": "Gain of the multiplier that weighs false positives; the default depends on the preset.",
    "g": "Bandwidth of the initial kernel; by default 1/(2d). Raise it when classes are separated by fine structure.",
    "kernel": "Shift-invariant kernel that the first directions are drawn for.",
    "input": "Preset paper: features as they come, scaled to unit norm, or standardised as they stream in.",
    "lam": "Preset paper: regularisation, and decay of both rates.",
    "gamma_update": "Preset paper: multiplier by a window of past negatives, or by single events.",
    "window": "Length of that window.",
    "one_class": "Learn from non-targets alone, against targets drawn over the range of the features.",
    "budget": "Capacity of the false-alarm bucket: how many false alarms above the rate may come in one burst. "
    "Preset paper has none.",
    "charge": "Charge an alarm when its label says it was false, or already when it is issued. Not with preset paper.",
    "learning": "`off` freezes the model; the budget and all counters go on.",
}
"""What each parameter is for; the keys are the fields of `Params`."""

_HINTS = get_type_hints(Params)
_TEXTS = frozenset(name for name, hint in _HINTS.items() if get_origin(hint) is Literal)
_WORDS = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}


def read_params(raw: Any) -> Params:
    """The parameters of a mapping or of `Params` themselves. Raises `Problems` with all that is wrong."""
    if isinstance(raw, Params):
        return raw
    if not isinstance(raw, Mapping):
        raise Problems(["must be a mapping of parameters"])
    unknown = [name for name in raw if name not in _HINTS]
    found = [f"{name}: unknown setting; {_closest(str(name))}" for name in unknown]
    found += [f"{name}: has no effect with preset {raw['preset']}; leave it out" for name in _idle(raw)]
    try:
        params = Params.from_dict({name: _typed(name, value) for name, value in raw.items() if name not in unknown})
    except SettingsError as error:
        raise Problems(found + error.problems) from None
    if found:
        raise Problems(found)
    return params


def _idle(raw: Mapping[str, Any]) -> list[str]:
    return [name for name in NO_EFFECT.get(str(raw.get("preset")), ()) if raw.get(name) is not None]


def _shown(params: Params) -> dict[str, Any]:
    """The parameters that have an effect: a dump of settings is a settings file."""
    return {name: value for name, value in params.to_dict().items() if name not in NO_EFFECT.get(params.preset, ())}


def _typed(name: str, value: Any) -> Any:
    """Text from the environment, and numbers such as 1e-3 that YAML takes for text, as what the parameter is."""
    if not isinstance(value, str) or name in _TEXTS:
        return value
    for read in (int, float):
        try:
            return read(value)
        except ValueError:
            continue
    return _WORDS.get(value.lower(), value)


def _closest(name: str) -> str:
    close = difflib.get_close_matches(name, _HINTS, n=1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(_HINTS)}"


def model_schema() -> dict[str, Any]:
    """The JSON schema of the section, made from `Params` and the descriptions."""
    kinds = {int: "integer", float: "number", bool: "boolean"}
    properties: dict[str, Any] = {}
    for field in fields(Params):
        hint = _HINTS[field.name]
        kind = {"enum": list(get_args(hint))} if field.name in _TEXTS else {"type": kinds[hint]}
        # Some defaults depend on the preset, and d on the features.
        default = {} if field.default is None or field.name == "d" else {"default": field.default}
        properties[field.name] = {**kind, **_bounds(field.name), **default, "description": DESCRIPTIONS[field.name]}
    return {
        "type": "object",
        "title": "ModelSection",
        "description": "The classifier of each partition.",
        "additionalProperties": False,
        "properties": properties,
    }


def _bounds(name: str) -> dict[str, float]:
    """The range of a number, in the words of JSON schema."""
    if name in WHOLE:
        return {"minimum": WHOLE[name][0], "maximum": WHOLE[name][1]}
    if name in REAL:
        lowest, highest, included = REAL[name]
        return {"minimum" if included else "exclusiveMinimum": lowest, "maximum": highest}
    return {"exclusiveMinimum": 0, "exclusiveMaximum": 1} if name == "tau" else {}


ModelSection = Annotated[Params, PlainValidator(read_params), PlainSerializer(_shown), WithJsonSchema(model_schema())]
