"""The `challenger` section: what it does not say is what the model has, and every problem names its path."""

from typing import Any

import pytest

from npstream.errors import SettingsError
from npstream.partition import PartitionConfig
from npstream.settings import from_mapping, masked_dump, sizes
from tests.settings.builders import mapping, problems

NAMED = {"features": ["a", "b"]}
MAPPED = {"features": {"a": {"number": "x.a"}, "b": {"number": "x.b"}, "shop": {"category": "shop", "buckets": 8}}}


def settings(challenger: Any, **sections: Any) -> dict[str, Any]:
    """A settings file with a challenger."""
    base = {**mapping(events=NAMED), "model": {"tau": 0.02, "D": 30}}
    return {**base, **sections, "challenger": challenger}


def test_what_it_does_not_say_is_what_the_model_has() -> None:
    """Parameters, features and the rest of the events are those of the champion."""
    config = from_mapping(settings({"D": 60})).partition_config()

    assert config.challenger is not None
    assert (config.challenger.params.D, config.challenger.params.tau, config.params.D) == (60, 0.02, 30)
    assert config.challenger.events == config.events
    assert not config.reads_twice
    assert PartitionConfig.from_dict(config.to_dict()) == config


def test_it_may_read_other_features_and_be_of_another_preset() -> None:
    """Features set its `d` and kinds, whatever the model's are; preset external has none."""
    mapped = from_mapping(settings({"features": MAPPED["features"]}, model={"tau": 0.02, "d": 2})).partition_config()
    external = from_mapping(settings({"preset": "external"})).partition_config()

    assert mapped.challenger is not None
    assert (mapped.challenger.params.d, mapped.challenger.params.buckets, mapped.params.d) == (3, (0, 0, 8), 2)
    assert mapped.challenger.events.contract != mapped.events.contract
    assert mapped.reads_twice
    assert external.challenger is not None
    assert (external.challenger.params.d, external.challenger.events.external) == (0, True)


def test_promoted_settings_are_those_of_a_file_with_its_values_in_the_model() -> None:
    """What `npstream promote` compares with."""
    promoted = from_mapping(settings({"D": 60, **MAPPED})).partition_config().promoted
    moved = {**mapping(events=MAPPED), "model": {"tau": 0.02, "D": 60}}

    assert promoted == from_mapping(moved).partition_config()
    assert from_mapping(settings({"D": 60, **MAPPED})).promoted.partition_config() == promoted


def test_the_dump_is_a_settings_file() -> None:
    """What `check` shows can be loaded again; the size of a snapshot counts the second model."""
    loaded = from_mapping(settings({"D": 60, **MAPPED}))

    assert from_mapping(masked_dump(loaded)).partition_config() == loaded.partition_config()
    assert sizes(loaded).state > sizes(loaded.alone).state + sizes(loaded.promoted).state // 2
    assert sizes(loaded).buffer > sizes(loaded.alone).buffer


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (settings({"D": 30}), "challenger: is what model is"),
        (settings({"D": -1}), "challenger.D: -1 is not"),
        (settings({"depth": 3}), "challenger.depth: unknown setting"),
        (settings(3), "challenger: must be a mapping"),
        (settings({"features": []}), "challenger.features: a list must not be empty"),
        (settings({"features": {"a": {"numbr": "x"}}}), "challenger.features.a: no kind given"),
        (settings({"features": ["a"], "d": 4}), "challenger.d: 4 given, 1 columns"),
        (settings({"D": 60}, labels={"review": 0.1}), "challenger: not with labels.review"),
        (
            settings({"tiers": {"block": 0.001, "review": 0.02}}, labels={"corrections": True}),
            "challenger.tiers: with labels.corrections",
        ),
        (settings({"preset": "external"}, decisions={"reasons": 2}), "challenger.preset: external sees no features"),
        (
            settings({"features": ["a"]}, events={**NAMED, "format": "f32"}),
            "challenger.features: events in format f32",
        ),
    ],
)
def test_problems_name_their_path(raw: dict[str, Any], found: str) -> None:
    """Before anything is connected."""
    assert any(problem.startswith(found) for problem in problems(raw)), problems(raw)


def test_several_problems_are_reported_at_once() -> None:
    """Those of its features and of its parameters."""
    with pytest.raises(SettingsError) as caught:
        from_mapping(settings({"features": {"a": {}}, "D": 0, "tau": 2}))
    assert len([problem for problem in caught.value.problems if problem.startswith("challenger.")]) == 3
