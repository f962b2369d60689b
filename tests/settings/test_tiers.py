"""`model.tiers`: how it may be written, and every way in which it is refused."""

from typing import Any

import pytest

from npstream.errors import SettingsError
from npstream.model import Params
from npstream.settings import from_mapping, masked_dump
from npstream.settings.load import load
from tests.settings.builders import mapping, problems

TIERS = {"review": 0.01, "block": 0.001}


def model(**fields: Any) -> dict[str, Any]:
    return mapping(model={"d": 3, **fields})


def test_a_mapping_becomes_tiers_from_strict_to_wide() -> None:
    """Whatever the order of the mapping; tau is the largest rate, and a dump is a settings file again."""
    settings = from_mapping(model(tiers=TIERS))

    assert settings.model.tiers == (("block", 0.001), ("review", 0.01))
    assert settings.model.tau == 0.01
    assert masked_dump(settings)["model"]["tiers"] == {"block": 0.001, "review": 0.01}
    assert from_mapping(masked_dump(settings)).model == settings.model


def test_without_tiers_there_is_one_rate_and_the_same_name() -> None:
    """tau has its default, and the hash in decisions is that of a model that knows no tiers."""
    assert from_mapping(model()).model.tau == 0.01
    assert "tiers" not in masked_dump(from_mapping(model()))["model"]
    assert Params(d=3).fingerprint() == Params(d=3, tiers=()).fingerprint()
    assert Params(d=3).fingerprint() != from_mapping(model(tiers=TIERS)).model.fingerprint()


def test_environment_and_command_line_set_a_rate_of_a_tier(tmp_path: Any) -> None:
    """Text is read as a number, wherever it comes from."""
    file = tmp_path / "settings.yaml"
    file.write_text("embedded: {path: x.db}\ntopics: {events: e}\nmodel: {d: 3, tiers: {block: 1e-3, review: 0.01}}\n")
    settings = load(file, {"NPSTREAM__MODEL__TIERS__BLOCK": "0.002"}, ("model.tiers.review=0.03",))

    assert settings.model.tiers == (("block", 0.002), ("review", 0.03))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"tiers": [0.1, 0.2]}, "is not a mapping of names to rates"),
        ({"tiers": 0.1}, "is not a mapping of names to rates"),
        ({"tiers": {"block": 0.1}}, "one tier is no choice; use tau"),
        ({"tiers": {"block": 0.1, "review": 0.1}}, "each needs a name and a rate of its own"),
        ({"tiers": {"block": 0.0, "review": 0.1}}, "block: 0.0 is not a number between 0 and 1"),
        ({"tiers": {"block": "much", "review": 0.1}}, "block: 'much' is not a number between 0 and 1"),
        ({"tiers": {"Block it": 0.01, "review": 0.1}}, "'Block it' is not a name"),
        ({"tiers": {f"t{i}": 0.1 + i / 100 for i in range(9)}}, "9 given, at most 8 are possible"),
        ({"tiers": TIERS, "tau": 0.05}, "is not 0.01, the largest rate of tiers; leave it out"),
        ({"tiers": TIERS, "preset": "paper"}, "preset paper has one fixed threshold"),
    ],
)
def test_what_is_refused_says_why(fields: dict[str, Any], reason: str) -> None:
    """One sentence each, naming the setting."""
    assert any(reason in problem and "model" in problem for problem in problems(model(**fields))), problems(
        model(**fields)
    )


def test_tau_may_repeat_the_largest_rate() -> None:
    """As a dump does."""
    assert from_mapping(model(tiers=TIERS, tau=0.01)).model.tau == 0.01
    with pytest.raises(SettingsError):
        from_mapping(model(tiers=TIERS, tau=0.001))
