"""Where settings come from: a YAML file, the environment, the command line; and `${...}` in their texts.

Later sources win: file, then `NPSTREAM__SECTION__KEY=value`, then `section.key=value`
from the command line. A value from the last two is text, which each setting
reads in its own way, unless it begins with `[` or `{`: then it is YAML.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from npstream.errors import SettingsError, UsageError
from npstream.settings.problems import Problem

ENV_PREFIX = "NPSTREAM__"

_REFERENCE = re.compile(r"\$(\$?)\{([^}]*)\}")
_CASED = frozenset({"D"})  # the one setting with a capital; variables are usually all capitals


class _Loader(yaml.SafeLoader):
    """Safe YAML in which timestamps stay text and a key cannot appear twice."""

    yaml_implicit_resolvers = {  # noqa: RUF012  the base class declares it without a type
        first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"{key.value!r} is there twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a file. Raises `UsageError` without a readable file, `SettingsError` without a mapping."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the settings file {path}: {_reason(error)}") from None
    parsed = parse_yaml(text, str(path))
    if not isinstance(parsed, dict):
        raise SettingsError([f"{path}: must be a mapping of sections, such as `topics:`"])
    return parsed


def parse_yaml(text: str, name: str) -> Any:
    """Parse one YAML document. Raises `SettingsError` saying line and column."""
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise SettingsError([f"{name}{where}: not YAML: {error.problem}"]) from None
    except yaml.YAMLError:
        raise SettingsError([f"{name}: not YAML: it holds characters that are not text"]) from None


def overridden(raw: Mapping[str, Any], env: Mapping[str, str], assignments: tuple[str, ...]) -> dict[str, Any]:
    """The mapping with the environment's and the command line's values put in; the input stays as it is."""
    result: dict[str, Any] = _copied(raw)
    for name in sorted(env):
        if name.startswith(ENV_PREFIX):
            parts = name.removeprefix(ENV_PREFIX).split("__")
            _put(result, [part if part in _CASED else part.lower() for part in parts], env[name], name)
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        if not equals:
            raise UsageError(f"--set {assignment}: write it as section.key=value")
        _put(result, path.strip().split("."), text, f"--set {path}")
    return result


def _put(target: dict[str, Any], path: list[str], text: str, name: str) -> None:
    # Names of librdkafka options contain dots themselves.
    if path[:2] == ["kafka", "options"] and len(path) > 2:
        path = ["kafka", "options", ".".join(path[2:])]
    for part in path[:-1]:
        below = target.get(part)
        if below is None:
            below = target[part] = {}
        if not isinstance(below, dict):
            raise SettingsError([f"{name}: {part} is not a section, so nothing can be set inside it"])
        target = below
    target[path[-1]] = _value(text, name)


def _value(text: str, name: str) -> Any:
    if text.lstrip().startswith(("[", "{")):
        return parse_yaml(text, name)
    return None if text in ("", "null", "~") else text


def interpolated(value: Any, env: Mapping[str, str], path: str = "") -> tuple[Any, list[Problem]]:
    """The value with `${NAME}` and `${file:/path}` replaced in all texts, and what could not be.

    `$${` means `${` itself. A text that could not be completed stays as it was.
    """
    if isinstance(value, dict):
        pairs = {key: interpolated(item, env, f"{path}.{key}" if path else str(key)) for key, item in value.items()}
        return {key: item for key, (item, _) in pairs.items()}, [p for _, found in pairs.values() for p in found]
    if isinstance(value, list):
        items = [interpolated(item, env, f"{path}.{index}") for index, item in enumerate(value)]
        return [item for item, _ in items], [problem for _, found in items for problem in found]
    if not isinstance(value, str) or "${" not in value:
        return value, []
    found = [Problem(path, text) for text in _missing(value, env)]
    return (value, found) if found else (_REFERENCE.sub(lambda match: _replacement(match, env), value), [])


def _missing(text: str, env: Mapping[str, str]) -> Iterator[str]:
    for match in _REFERENCE.finditer(text):
        try:
            _replacement(match, env)
        except KeyError:
            yield f"environment variable {match[2]} is not set"
        except (OSError, UnicodeDecodeError) as error:
            yield f"cannot read {match[2].removeprefix('file:')}: {_reason(error)}"


def _replacement(match: re.Match[str], env: Mapping[str, str]) -> str:
    escaped, name = match[1], match[2]
    if escaped:
        return match[0][1:]
    if name.startswith("file:"):
        return Path(name.removeprefix("file:")).read_text(encoding="utf-8").rstrip("\r\n")
    return env[name]


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "it is not UTF-8 text"
