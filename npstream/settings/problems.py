"""What pydantic finds wrong, in words for the person who wrote the file: path, value, what is allowed."""

from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from npstream.errors import suggest
from npstream.settings.section import Problems

SECRETS = (
    "kafka.security.password",
    "kafka.security.key_password",
    "kafka.security.client_secret",
    "kafka.options",
    "events.registry.password",
)
"""Paths whose values are never shown."""

_WORDS = {
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be above {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be below {lt}",
    "literal_error": "must be {expected}",
    "string_type": "must be text; put it in quotes",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must have 1 to 249 of the characters a-z A-Z 0-9 . _ -",
    "too_short": "must not be empty",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "path_type": "must be a path",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping of settings",
    "model_attributes_type": "must be a mapping of settings",
}


class Problem(NamedTuple):
    """One thing that is wrong with one setting."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


def problems_of(error: ValidationError, root: type[BaseModel]) -> list[Problem]:
    """Every problem, in the order of the file's sections."""
    return [problem for detail in error.errors(include_url=False) for problem in _problems(detail, root)]


def _problems(detail: ErrorDetails, root: type[BaseModel]) -> list[Problem]:
    path = ".".join(str(part) for part in detail["loc"])
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, Problems):
        return [_below(path, text) for text in cause.problems]
    if detail["type"] == "missing":
        return [Problem(path, f"missing; {_description(root, detail['loc'])}")]
    if detail["type"] == "extra_forbidden":
        return [Problem(path, f"unknown setting; {_suggestion(root, detail['loc'])}")]
    return [Problem(path, f"{_shown(path, detail['input'])} {_words(detail)}")]


def _words(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    if "error" in context:
        return str(context["error"])
    template = _WORDS.get(detail["type"])
    return template.format(**context) if template else detail["msg"]


def _below(path: str, text: str) -> Problem:
    """A problem reported with a path of its own, or about the section itself."""
    name, colon, rest = text.partition(": ")
    if colon and " " not in name:
        return Problem(f"{path}.{name}" if path else name, rest)
    return Problem(path, text)


def _shown(path: str, value: Any) -> str:
    if path.startswith(SECRETS):
        return "(not shown)"
    if isinstance(value, Mapping | list | tuple):
        return "a mapping" if isinstance(value, Mapping) else "a list"
    return f"{value!r:.80}"


def _description(root: type[BaseModel], loc: tuple[int | str, ...]) -> str:
    section = _section(root, loc[:-1])
    field = section.model_fields.get(str(loc[-1])) if section else None
    text = (field.description if field else None) or "it has no default"
    return text[0].lower() + text[1:]


def _suggestion(root: type[BaseModel], loc: tuple[int | str, ...]) -> str:
    section = _section(root, loc[:-1])
    return suggest(str(loc[-1]), section.model_fields if section else ())


def _section(root: type[BaseModel], loc: tuple[int | str, ...]) -> type[BaseModel] | None:
    """The section a path leads to."""
    section: type[BaseModel] | None = root
    for part in loc:
        field = section.model_fields.get(str(part)) if section else None
        kinds = (field.annotation, *get_args(field.annotation)) if field else ()
        section = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
    return section
