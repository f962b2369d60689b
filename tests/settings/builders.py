"""Small builders for the settings tests."""

from collections.abc import Mapping
from typing import Any

import pytest

from npstream.errors import SettingsError
from npstream.settings import from_mapping

MINIMAL: dict[str, Any] = {
    "kafka": {"bootstrap": "broker:9092", "group": "g", "worker_name": "w-0"},
    "topics": {"events": "orders"},
    "model": {"d": 3},
}


def mapping(**sections: Any) -> dict[str, Any]:
    """A valid mapping, with these sections merged in; None removes one."""
    merged = {
        name: {**MINIMAL.get(name, {}), **section} if isinstance(section, dict) else section
        for name, section in sections.items()
    }
    return {name: section for name, section in {**MINIMAL, **merged}.items() if section is not None}


def problems(raw: Mapping[str, Any], env: Mapping[str, str] | None = None, *assignments: str) -> list[str]:
    """What is wrong with a mapping."""
    with pytest.raises(SettingsError) as caught:
        from_mapping(raw, env, assignments)
    return caught.value.problems
