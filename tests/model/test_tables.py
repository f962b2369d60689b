"""The tables beside the network: markers, missing numbers, categories."""

import numpy as np
import numpy.typing as npt
import pytest

from npstream.errors import DataError, SettingsError
from npstream.model import Model, Params
from tests.model.streams import at_once

PARAMS = Params(d=3, D=8, tau=0.1, buckets=(0, 8, 0))
Rows = npt.NDArray[np.float64]


def learned(x: Rows, y: npt.NDArray[np.int64] | None = None, **changes: object) -> Model:
    """A model that has seen these rows, by default without any target."""
    labels = np.full(len(x), -1) if y is None else y
    return Model.create(Params.from_dict({"d": x.shape[1], "D": 8, "tau": 0.1} | changes)).learn_many(x, labels)


@pytest.mark.parametrize("n", [16, 32, 64, 640, 4_000])
def test_markers_are_near_the_quantiles(n: int) -> None:
    """Fifteen markers divide what a column has shown so far into sixteen parts of about equal weight."""
    x = np.random.default_rng(3).standard_exponential((n, 2)) * [1.0, 50.0] + [0.0, 7.0]
    marker = learned(x).arrays()["marker"]
    share = np.array([[(x[:, i] <= value).mean() for value in marker[:, i]] for i in range(2)])

    np.testing.assert_allclose(share, np.broadcast_to((np.arange(15) + 0.5) / 15, (2, 15)), atol=0.06)


def test_markers_follow_a_column_that_moves() -> None:
    """After some ten thousand events in new units the old ones are forgotten."""
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.normal(0, 1, (5_000, 1)), rng.normal(1_000, 10, (60_000, 1))])

    assert learned(x).arrays()["marker"].min() > 900


@pytest.mark.parametrize("form", [0xFFC00000, 0x7FC00001, 0xFF800001])
def test_every_form_of_nan_leaves_the_same_bytes(form: int) -> None:
    """Processors differ in the sign of the NaN they make, and producers in its payload: the state has one form."""
    x = np.random.default_rng(8).integers(0, 20, (200, 3)).astype(np.float32)
    x[::5, 0] = x[::3, 1] = np.nan
    other = x.copy()
    other.view(np.uint32)[np.isnan(x)] = form
    operations = at_once(PARAMS, 200, seed=1).operations
    models = [Model.create(PARAMS), Model.create(PARAMS)]
    for model, rows in zip(models, (x, other), strict=True):
        model.run(operations._replace(x=rows), np.zeros(0, np.int8))

    assert models[0].to_bytes() == models[1].to_bytes()


def test_markers_of_ties_are_exactly_their_value() -> None:
    """A column of few values has markers at those values, to the bit, so that each keeps a cell of its own."""
    x = np.random.default_rng(5).choice([0.1, 0.7], (640, 1), p=[0.5, 0.5])
    model = learned(x)
    own = {value: int(model.selected_cells([value])[0]) for value in (0.1, 0.7)}

    assert own[0.1] < own[0.7]
    assert set(model.arrays()["marker"].ravel()[:5].tolist()) == {float(np.float32(0.1))}


def test_a_rare_flag_reaches_the_network_with_one_deviation() -> None:
    """A column that nearly always has one value is clipped to 1, others to 5."""
    rng = np.random.default_rng(6)
    x = np.stack([rng.random(2_000) < 0.01, rng.standard_normal(2_000)], axis=1).astype(np.float64)

    assert learned(x).arrays()["clip"].tolist() == [1.0, 5.0]


def test_a_missing_number_touches_neither_scaler_nor_markers() -> None:
    """Moments and markers of a column are those of its present values, and other columns do not notice."""
    rng = np.random.default_rng(7)
    whole = rng.standard_normal((900, 2)) * [3.0, 1.0] + [10.0, 0.0]
    holes = np.repeat(whole, 2, axis=0)
    holes[::2, 0] = np.nan
    got, wanted = learned(holes).arrays(), learned(whole).arrays()

    for name in ("seen", "mean", "var"):
        assert got[name][0] == wanted[name][0], name
    assert got["seen"][1] == 2 * wanted["seen"][1]
    np.testing.assert_allclose(got["marker"][:, 0], wanted["marker"][:, 0], atol=1.0)


def test_a_column_that_starts_late_is_standardised_from_its_first_value_on() -> None:
    """Nothing is learned about it while it is missing, and nothing of that time is left in its moments."""
    rng = np.random.default_rng(8)
    x = rng.normal(5.0, 2.0, (4_000, 2))
    x[:2_000, 1] = np.nan
    arrays = learned(x).arrays()

    assert arrays["mean"][1] == pytest.approx(5.0, abs=0.2)
    assert arrays["marker"][7, 1] == pytest.approx(5.0, abs=0.5)


def test_absence_itself_can_be_the_signal() -> None:
    """Targets whose first number is missing more often are found by that alone."""
    rng = np.random.default_rng(9)
    y = np.where(rng.random(8_000) < 0.3, 1, -1)
    x = rng.standard_normal((8_000, 2))
    x[rng.random(8_000) < np.where(y > 0, 0.9, 0.05), 0] = np.nan
    outcome = Model.create(Params(d=2, D=20, tau=0.06)).stream(x, y)
    late = np.arange(8_000) > 4_000

    assert (outcome.decision[late & (y > 0)] > 0).mean() > 0.75


def test_a_category_is_learned_value_by_value() -> None:
    """Which of 40 values without any order are suspicious is learned from single values."""
    rng = np.random.default_rng(10)
    values = rng.integers(0, 2**24, 40)
    bad = rng.random(40) < 0.3
    pick = rng.integers(0, 40, 12_000)
    y = np.where(rng.random(12_000) < np.where(bad[pick], 0.9, 0.02), 1, -1)
    x = np.stack([values[pick], rng.standard_normal(12_000)], axis=1)
    found = {}
    for name, buckets in (("category", (256, 0)), ("number", ())):
        outcome = Model.create(Params(d=2, D=20, tau=0.1, buckets=buckets)).stream(x, y)
        found[name] = float((outcome.decision[6_000:][y[6_000:] > 0] > 0).mean())

    assert found["category"] > 0.85
    assert found["category"] > found["number"] + 0.15


def test_categories_hash_alike_in_every_partition() -> None:
    """What one partition learned can seed another: the same value selects the same cell."""
    models = [
        Model.create(Params(d=2, D=4, buckets=(64, 0)), stream).learn_many(np.ones((20, 2)), [-1] * 20)
        for stream in (0, 5)
    ]

    assert len({int(model.selected_cells([77.0, 0.0])[1]) for model in models}) == 1


def test_a_missing_category_is_a_value_of_its_own() -> None:
    """It selects a cell by its own hash, and the score of every other value is not asked."""
    model = Model.create(Params(d=1, D=4, tau=0.1, buckets=(4096,)))
    x = np.array([[np.nan], [5.0]] * 200)
    model.learn_many(x, [1, -1] * 200)

    assert model.score_one([np.nan]) > model.score_one([5.0]) + 1.0
    assert model.selected_cells([np.nan])[0] != model.selected_cells([5.0])[0]


@pytest.mark.parametrize("code", [-1.0, 0.5, float(2**24), float("inf")])
def test_what_cannot_be_a_category_is_refused(code: float) -> None:
    """Codes are whole numbers below 2**24; the message says so."""
    with pytest.raises(DataError, match="X: "):
        Model.create(Params(d=2, D=4, buckets=(64, 0))).score_many([[code, 0.0]])


@pytest.mark.parametrize("preset", ["paper", "external"])
def test_other_presets_have_neither_missing_numbers_nor_categories(preset: str) -> None:
    """They refuse both, each with a reason."""
    with pytest.raises(SettingsError, match="buckets: categories need preset plus"):
        Params.from_dict({"preset": preset, "d": 0 if preset == "external" else 1, "buckets": [8]})
    if preset == "paper":
        with pytest.raises(DataError, match="not all features are finite"):
            Model.create(Params(preset="paper", d=1)).score_many([[np.nan]])


@pytest.mark.parametrize("buckets", [(3, 0), (1, 0), (-2, 0), (131_072, 0), (8,), (8, 0, 0), (True, 0), "8"])
def test_buckets_that_cannot_be_are_refused(buckets: object) -> None:
    """Powers of two, one for each feature."""
    with pytest.raises(SettingsError, match="buckets: "):
        Params.from_dict({"d": 2, "buckets": buckets})


def test_a_fern_that_no_start_draws_is_refused() -> None:
    """State whose comparisons point outside of a row is damaged."""
    from npstream.errors import StateCorrupt

    params = Params(d=2, D=4)
    model = Model.create(params)
    model.arrays()["fern_column"][0, 0] = 2
    with pytest.raises(StateCorrupt, match="a fern that no start would draw"):
        Model.from_bytes(params, model.to_bytes())
