"""Parameters: refused all at once, spelled one way, changed only where a live model allows it."""

import json
import math
from typing import Any

import pytest

from npstream.errors import SettingsError
from npstream.model import MUTABLE, Model, Params


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("tau", 0.0, "between 0 and 1"),
        ("tau", 1.0, "between 0 and 1"),
        ("tau", -0.1, "between 0 and 1"),
        ("tau", math.nan, "between 0 and 1"),
        ("tau", "0.1", "between 0 and 1"),
        ("tau", True, "between 0 and 1"),
        ("d", 0, "from 1 to"),
        ("d", -1, "from 0 to"),
        ("d", 2.0, "whole number"),
        ("D", 0, "from 1 to"),
        ("D", True, "whole number"),
        ("seed", -1, "from 0 to"),
        ("seed", 2**63, "from 0 to"),
        ("eta", 0.0, "above 0"),
        ("eta", -0.1, "above 0"),
        ("eta", math.inf, "at most"),
        ("beta", -1e-9, "at least 0"),
        ("beta", math.nan, "at least 0"),
        ("g", 0, "above 0"),
        ("window", 0, "from 1 to"),
        ("budget", 0.0, "above 0"),
        ("budget", math.inf, "at most"),
        ("kernel", "poly", "rbf, laplacian, matern"),
        ("preset", "strict", "plus, paper, external"),
        ("charge", "later", "label, issue"),
        ("control", "tpr", "fpr, alarm_rate"),
        ("learning", 1, "true or false"),
        ("one_class", "yes", "true or false"),
        ("input", "raw", "preset paper"),
        ("gamma_update", "stochastic", "preset paper"),
        ("lam", 0.01, "preset paper"),
    ],
)
def test_bad_values_are_refused_by_name(name: str, value: Any, allowed: str) -> None:
    """The message names the field, the value and what is allowed."""
    with pytest.raises(SettingsError) as refused:
        Params.from_dict({"d": 2} | {name: value})

    (problem,) = refused.value.problems
    assert problem.startswith(f"{name}: ")
    assert repr(value) in problem
    assert allowed in problem


def test_every_problem_is_reported() -> None:
    """One exception carries them all."""
    with pytest.raises(SettingsError) as refused:
        Params.from_dict({"d": 0, "D": 0, "tau": 2, "eta": -1, "charge": "x"})

    assert [problem.split(":")[0] for problem in refused.value.problems] == ["D", "tau", "eta", "charge", "d"]


def test_external_takes_no_features() -> None:
    """With scores from elsewhere d must be 0 and there is nothing to draw one-class targets from."""
    assert Params(preset="external").d == 0
    with pytest.raises(SettingsError) as refused:
        Params(preset="external", d=3, one_class=True)

    assert [problem.split(":")[0] for problem in refused.value.problems] == ["d", "one_class"]


def test_the_control_of_alarms_needs_a_threshold_that_moves() -> None:
    """With preset paper it is refused, and so is another way to charge alarms than the one it has."""
    with pytest.raises(SettingsError) as refused:
        Params(preset="paper", d=3, control="alarm_rate", charge="issue")

    assert [problem.split(":")[0] for problem in refused.value.problems] == ["control", "charge"]


def test_fields_left_out_take_the_presets_values() -> None:
    """After construction every field holds a value, and equal settings are equal however they were written."""
    plus, paper = Params(d=8), Params(preset="paper", d=8)

    assert (plus.eta, plus.beta, plus.g, plus.input) == (0.05, 0.01, 0.0625, "zscore")
    assert (paper.eta, paper.beta, paper.g, paper.input) == (0.01, 5e-4, 0.0625, "raw")
    assert plus == Params(d=8, eta=0.05, beta=0.01, g=0.0625, input="zscore", budget=20)
    assert plus.fingerprint() == Params(d=8, eta=0.05, budget=20).fingerprint()


@pytest.mark.parametrize("params", [Params(d=3), Params(preset="paper", d=2, lam=0.01), Params(preset="external")])
def test_dict_round_trip(params: Params) -> None:
    """Through JSON and back it is the same object with the same fingerprint."""
    again = Params.from_dict(json.loads(json.dumps(params.to_dict())))

    assert again == params
    assert again.fingerprint() == params.fingerprint()


def test_unknown_names_are_refused() -> None:
    """A misspelt parameter is not ignored, and does not hide what is wrong with the others."""
    with pytest.raises(SettingsError) as refused:
        Params.from_dict({"d": 0, "taus": 0.1})

    assert refused.value.problems == [
        "taus: unknown setting; did you mean tau?",
        "d: 0 is not a whole number from 1 to 10000 (the number of features)",
    ]


def test_fingerprint_sees_every_field() -> None:
    """Changing any one parameter changes the eight hex digits."""
    base: dict[str, Any] = {"preset": "paper", "d": 3}
    changes: list[dict[str, Any]] = [
        {},
        {"preset": "plus"},
        {"d": 4},
        {"D": 99},
        {"tau": 0.02},
        {"seed": 1},
        {"eta": 0.02},
        {"beta": 1e-3},
        {"g": 0.3},
        {"kernel": "matern"},
        {"input": "unit"},
        {"lam": 1e-4},
        {"gamma_update": "stochastic"},
        {"window": 100},
        {"one_class": True},
        {"budget": 10},
        {"charge": "issue"},
        {"learning": False},
    ]
    prints = {Params.from_dict(base | change).fingerprint() for change in changes}
    prints |= {Params(d=3, tau=0.02, control=control).fingerprint() for control in ("fpr", "alarm_rate")}

    assert len(prints) == len(changes) + 2
    assert all(len(mark) == 8 and int(mark, 16) >= 0 for mark in prints)


def test_a_live_model_takes_new_rates_and_keeps_its_state() -> None:
    """Everything in MUTABLE may change; the bytes stay the same."""
    model = Model.create(Params(d=2, D=8, tau=0.1))
    model.stream([[0.0, 1.0], [1.0, 0.0]], [1, -1])
    new = Params(d=2, D=8, tau=0.2, eta=0.1, beta=0.02, budget=5, charge="issue", learning=False)
    changed = model.with_params(new)

    assert {name for name, value in new.to_dict().items() if value != model.params.to_dict()[name]} <= MUTABLE
    assert changed.params == new
    assert changed.to_bytes() == model.to_bytes()
    assert changed.budget_left == 5.0 + 0.1


def test_a_live_model_refuses_another_shape() -> None:
    """Each field that cannot change is named with both values and the ways out."""
    model = Model.create(Params(d=2, D=8))
    with pytest.raises(SettingsError) as refused:
        model.with_params(Params(d=3, D=9, kernel="matern", tau=0.2, g=0.25))

    assert [problem.split(":")[0] for problem in refused.value.problems] == ["d", "D", "kernel"]
    assert "8 cannot become 9" in refused.value.problems[1]
    assert "npstream promote" in refused.value.problems[1]


def test_a_changed_model_is_its_own() -> None:
    """The old and the new model share no memory."""
    model = Model.create(Params(d=2, D=8))
    changed = model.with_params(Params(d=2, D=8, tau=0.2))
    before = model.digest()
    changed.learn_one([1.0, 2.0], 1)

    assert model.digest() == before
