"""The way in: a file, the environment and the command line become `Settings`, or every problem at once."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from npstream.codec.event import EventConfig
from npstream.errors import SettingsError
from npstream.settings.problems import Problem, problems_of
from npstream.settings.settings import Settings
from npstream.settings.source import interpolated, overridden, read_yaml


def load(path: Path, env: Mapping[str, str], assignments: Sequence[str] = ()) -> Settings:
    """Settings from a YAML file, overridden by `env` and by assignments such as `model.tau=0.05`.

    Raises `SettingsError` with every problem, `UsageError` when the file cannot be read.
    """
    return from_mapping(read_yaml(path), env, assignments)


def from_mapping(
    raw: Mapping[str, Any], env: Mapping[str, str] | None = None, assignments: Sequence[str] = ()
) -> Settings:
    """Settings from what a YAML file would hold. Reads the files named by `${file:...}`.

    Raises `SettingsError` with every problem.
    """
    env = env or {}
    # A section whose lines are all commented out reads as null.
    sections = {name: section for name, section in raw.items() if section is not None}
    references = overridden(sections, env, tuple(assignments))
    given, unresolved = interpolated(references, env)
    _fill_worker_name(given, env)
    found = unresolved
    try:
        settings = Settings.model_validate(given)
    except ValidationError as error:
        known = {problem.path for problem in unresolved}
        found = unresolved + [problem for problem in problems_of(error, Settings) if problem.path not in known]
    if found:
        raise SettingsError([str(problem) for problem in _once(found)])
    settings.came_from(references, env)
    return settings


def events_config(settings: Path | Mapping[str, Any]) -> EventConfig:
    """How a topic's events are written, for whoever sends or reads them: by a settings file, or by what one holds.

    Only `events` and `model` matter. Raises `SettingsError`, and `UsageError` when the file cannot be read.
    """
    given = settings if isinstance(settings, Mapping) else read_yaml(Path(settings))
    sections = {name: given[name] for name in ("events", "model") if given.get(name) is not None}
    # Where the topic and its registry are does not matter here, and their secrets need not be known.
    if sections.get("events", {}).get("registry"):
        sections["events"] = {**sections["events"], "registry": {"url": "http://localhost"}}
    return from_mapping({**_SOMEWHERE, "model": {}, **sections}).partition_config().events


_SOMEWHERE: dict[str, Any] = {"embedded": {"path": "events.db"}, "topics": {"events": "events"}}


def _fill_worker_name(given: dict[str, Any], env: Mapping[str, str]) -> None:
    kafka = given.get("kafka")
    if isinstance(kafka, dict) and kafka.get("worker_name") is None and env.get("HOSTNAME"):
        kafka["worker_name"] = env["HOSTNAME"]


def _once(problems: list[Problem]) -> list[Problem]:
    return list(dict.fromkeys(problems))
