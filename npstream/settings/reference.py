"""The settings described: as JSON schema for editors and charts, and as a list for the documentation."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from npstream.settings.settings import Settings


class Entry(NamedTuple):
    """One setting: its path, what it takes, its default as JSON (None when it must be given or is unset), its use."""

    path: str
    takes: str
    default: Any
    description: str


def json_schema() -> dict[str, Any]:
    """The JSON schema of a settings file."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Settings.model_json_schema()}


def reference() -> list[Entry]:
    """Every setting, section by section, in the order of a settings file."""
    schema = json_schema()
    return list(_entries(schema, schema, ""))


def _entries(node: dict[str, Any], schema: dict[str, Any], prefix: str) -> Iterator[Entry]:
    for name, given in node["properties"].items():
        setting = _resolved(given, schema)
        if "properties" in setting:
            yield from _entries(setting, schema, f"{prefix}{name}.")
        else:
            yield Entry(
                f"{prefix}{name}", _takes(setting), given.get("default"), " ".join(given.get("description", "").split())
            )


def _resolved(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """The node itself, or the section it refers to, alone or as the alternative to null."""
    for option in (node, *node.get("anyOf", ())):
        if "$ref" in option:
            found: dict[str, Any] = schema["$defs"][option["$ref"].rpartition("/")[2]]
            return found
    return node


def _takes(node: dict[str, Any]) -> str:
    if "enum" in node:
        return " | ".join(dict.fromkeys(str(word) for word in node["enum"]))  # 1 and "1" are one choice
    options = [option for option in node.get("anyOf", [node]) if option.get("type") != "null"]
    if options != [node]:
        return " | ".join(_takes(option) for option in options)
    return str(node.get("type", "text")).replace("string", "text").replace("array", "list")
