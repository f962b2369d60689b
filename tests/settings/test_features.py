"""`events.features`, `events.label` and `events.id`: what they are made into, and every problem with them at once."""

from typing import Any

import pytest

from npstream.codec.features import Feature, LabelRule
from npstream.errors import SettingsError
from npstream.partition import PartitionConfig
from npstream.partition.config import check_change
from npstream.settings import from_mapping, masked_dump
from tests.settings.builders import mapping, problems

EVENTS: dict[str, Any] = {
    "id": "payload.after.payment_id",
    "label": {"path": "payload.after.fraud", "target": [True, "Y"], "non_target": [False, "N"]},
    "features": {
        "amount": {"number": "payload.after.amount", "scale": "log"},
        "device_score": {"number": "device_score", "missing": "allow"},
        "three_ds": {"flag": "auth.three_ds"},
        "hour": {"time": "created_at", "cycle": "day"},
    },
}


def config_of(**events: Any) -> PartitionConfig:
    """The rules of settings with these events."""
    return from_mapping({**mapping(events=events), "model": {"tau": 0.1, "seed": 5}}).partition_config()


def test_a_mapping_sets_columns_and_key() -> None:
    """A time is two columns; the key of categories is the seed of the model."""
    config = config_of(**EVENTS)

    assert config.params.d == config.events.d == 5
    assert config.events.columns == ("amount", "device_score", "three_ds", "hour.sin", "hour.cos")
    assert config.events.mapping is not None
    assert config.events.mapping[0] == Feature(name="amount", kind="number", path="payload.after.amount", scale="log")
    assert config.events.label == LabelRule("payload.after.fraud", (True, "Y"), (False, "N"))
    assert (config.events.id, config.events.key) == ("payload.after.payment_id", 5)
    assert PartitionConfig.from_dict(config.to_dict()) == config


def test_a_label_may_be_a_path_alone() -> None:
    """The values are then those of plain events."""
    assert config_of(label="fraud", features=["a"]).events.label == LabelRule("fraud")


def test_the_dump_of_a_mapping_is_a_settings_file() -> None:
    """What `check` shows can be loaded again."""
    settings = from_mapping({**mapping(events=EVENTS), "model": {"tau": 0.1}})
    dump = masked_dump(settings)

    assert dump["events"]["features"]["hour"] == {"time": "created_at", "cycle": "day", "missing": "refuse"}
    assert from_mapping(dump).partition_config() == settings.partition_config()


def test_all_problems_of_a_mapping_are_reported_at_once() -> None:
    """Each with its path in the file."""
    raw = {
        "id": "a..b",
        "label": {"path": "fraud", "target": [1, None], "non_target": [], "wat": 1},
        "features": {
            "a": {"number": "x", "flag": "y"},
            "b": {"text": "x"},
            "c": {"category": "c", "buckets": 100},
            "d": {"time": "t"},
            "e": {"number": "e", "scale": "sqrt", "mising": "allow"},
            "f": {"flag": "f", "missing": "allow"},
            "g": 3,
            "h": {"number": 7},
        },
    }

    assert problems(mapping(events=raw)) == [
        "events.id: 'a..b' is not a path such as amount, card.country, items[0].price or [\"a.b\"]",
        "events.label.wat: unknown setting; known are path, target, non_target",
        "events.label.target: None must be text, true, false, or a number below 2**53",
        "events.label.non_target: must be a list of the values that mean it",
        "events.features.a: number and flag given; give one of number, category, flag, time",
        "events.features.b: no kind given; give one of number, category, flag, time",
        "events.features.c.buckets: 100 must be a power of two from 2 to 65536",
        "events.features.d.cycle: missing; what part of the time counts: day, week, year",
        "events.features.e.scale: 'sqrt' must be none or log",
        "events.features.e.mising: unknown setting; did you mean missing?",
        "events.features.f.missing: is not for a flag; it takes a path alone",
        "events.features.g: 3 must be a mapping such as {number: g}",
        "events.features.h.number: 7 must be a path such as card.country",
    ]


@pytest.mark.parametrize(
    ("events", "model", "expected"),
    [
        ({"features": {}}, {"d": 1}, "events.features: a mapping must not be empty"),
        ({"features": 3}, {"d": 1}, "events.features: must be a list of names, or a mapping"),
        ({"features": {"a": {"number": "a"}}}, {"d": 3}, "model.d: 3 given, 1 columns in events.features"),
        ({"features": {"a": {"number": "a"}}}, {"preset": "external"}, "model.d: 1 must be 0 with preset external"),
        (
            {"features": {"a": {"category": "a"}}, "format": "f32"},
            {},
            "events.features.a: a category cannot be a float32",
        ),
        (
            {"label": {"path": "y", "target": [1], "non_target": [True]}},
            {"d": 1},
            "events.label.target: 1 is a non_target",
        ),
        (
            {"features": {"t": {"time": "t", "cycle": "day"}, "t.sin": {"number": "a"}}},
            {},
            "events.features: two columns are called t.sin",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(events: Any, model: Any, expected: str) -> None:
    """With the path of what to change."""
    assert any(line.startswith(expected) for line in problems({**mapping(events=events), "model": model}))


def test_a_changed_contract_is_refused_by_name() -> None:
    """The state was learned from other columns: the worker says which, and what can be done."""
    changed = {**EVENTS, "features": {**EVENTS["features"], "amount": {"number": "payload.after.amount"}}}
    old, new = config_of(**EVENTS), config_of(**changed)

    with pytest.raises(SettingsError) as caught:
        check_change(old, new)

    (problem,) = caught.value.problems
    assert problem.startswith("events.features.amount: is now number payload.after.amount; it was number")
    assert f"{new.events.contract}, learned with {old.events.contract}" in problem
    assert "npstream promote" in problem
    check_change(old, config_of(**{**EVENTS, "id": "other", "label": "y"}))
