"""Tiers: several rates from one score, each with a bound of its own, and thresholds that never cross."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npstream.arrays import Features, Signs
from npstream.errors import SettingsError
from npstream.model import Model, Op, Params, seeded
from npstream.model.seed import CREDIT
from tests.model.streams import at_once, delayed
from tests.model.test_alarm_rate import DECIDING, Story, stories
from tests.model.test_budget import ROUNDING, worst_window

LABELS = (Op.LEARN, Op.SCORE_LEARN)
NAMES = ("block", "hold", "review")
THREE = Params(d=3, D=20, tiers=(("block", 0.02), ("hold", 0.05), ("review", 0.1)))


def tiered(story: Story, **changes: object) -> Story:
    """The same with two stricter tiers behind its rate."""
    tau = story.params.tau
    rates = {"block": tau / 5, "hold": tau / 2, "review": tau}
    return replace(story, params=Params.from_dict({**story.params.to_dict(), **changes, "tiers": rates}))


def stepped(story: Story, model: Model) -> tuple[Signs, list[list[float]]]:
    """One operation at a time: how far each came, and all thresholds after it, from strict to wide."""
    feed, thresholds = story.feed(), list[list[float]]()
    decided = np.zeros(feed.slots, np.int8)
    depth = np.zeros(len(feed.operations.code), np.int8)
    for at in range(len(depth)):
        depth[at] = model.run(feed[at : at + 1], decided).depth[0]
        thresholds.append([tier.threshold for tier in model.tiers])
    return depth, thresholds


@settings(max_examples=60, deadline=None)
@given(story=stories().map(tiered))
def test_every_tier_keeps_the_bound_of_its_own_rate_without_a_label(story: Story) -> None:
    """
    Control alarm_rate, whatever data, model and delays: on every window of n observations at
    most tau_k n + 2C + 1 alarms of tier k, and after no event do two thresholds cross.
    """
    model = Model.create(story.params)
    depth, thresholds = stepped(story, model)
    deciding = np.isin(story.feed().operations.code, DECIDING)

    for k, tier in enumerate(model.tiers[::-1]):
        alarms = (depth[deciding] > k).astype(int).tolist()
        assert worst_window(alarms, [1] * len(alarms), tier.rate) <= 2 * story.params.budget + 1 + ROUNDING
        assert tier.alarms == sum(alarms)
    assert all(strict >= wide for row in thresholds for strict, wide in pairwise(row))


@settings(max_examples=60, deadline=None)
@given(story=stories().map(lambda story: tiered(story, control="fpr", charge="issue")))
def test_every_tier_keeps_the_bound_of_its_own_rate_on_labelled_negatives(story: Story) -> None:
    """Control fpr, charged when issued: labelled false alarms of tier k stay below tau_k n + 2C + 1."""
    model = Model.create(story.params)
    depth, thresholds = stepped(story, model)
    code, y = story.feed().operations.code, story.feed().operations.y
    negative = np.isin(code, LABELS) & (y < 0)

    for k, tier in enumerate(model.tiers[::-1]):
        alarms = (negative & (depth > k)).astype(int).tolist()
        assert worst_window(alarms, negative.astype(int).tolist(), tier.rate) <= 2 * story.params.budget + 1 + ROUNDING
    assert all(strict >= wide for row in thresholds for strict, wide in pairwise(row))


@settings(max_examples=25, deadline=None)
@given(sizes=st.lists(st.integers(0, 60), max_size=12), control=st.sampled_from(["fpr", "alarm_rate"]))
def test_batches_leave_no_trace(sizes: list[int], control: str) -> None:
    """Any split of the operations gives the same depths and the same bytes."""
    params = Params.from_dict({**THREE.to_dict(), "control": control})
    whole, cut = Model.create(params), Model.create(params)
    feed = delayed(params, 400, seed=3)

    assert feed.run(whole).depth.tolist() == feed.run(cut, sizes=sizes).depth.tolist()
    assert whole.to_bytes() == cut.to_bytes() == Model.from_bytes(params, cut.to_bytes()).to_bytes()


@pytest.mark.parametrize("control", ["fpr", "alarm_rate"])
def test_the_widest_tier_decides_as_a_model_of_its_rate_alone(control: str) -> None:
    """Stricter tiers change neither what is learned nor what is an alarm."""
    params = Params.from_dict({**THREE.to_dict(), "control": control})
    alone = Params.from_dict({**params.to_dict(), "tiers": ()})
    feed = delayed(params, 2_000, seed=5)
    with_tiers, without = Model.create(params), Model.create(alone)

    assert feed.run(with_tiers).decision.tolist() == feed.run(without).decision.tolist()
    assert with_tiers.arrays()["level"].tolist() == without.arrays()["level"].tolist()
    assert with_tiers.arrays()["alpha"].tolist() == without.arrays()["alpha"].tolist()


def test_each_tier_comes_near_its_rate() -> None:
    """On a long steady stream every tier spends most of its rate, a stricter one on fewer alarms."""
    params = Params(preset="external", tiers=(("block", 0.005), ("hold", 0.02), ("review", 0.1)))
    model = Model.create(params)
    at_once(params, 60_000, seed=1).run(model)

    for tier in model.tiers:
        assert 0.8 < tier.false_alarms / tier.negatives / tier.rate < 1.05, tier
    assert [tier.name for tier in model.tiers] == list(NAMES)
    assert sorted(tier.alarms for tier in model.tiers) == [tier.alarms for tier in model.tiers]


def test_rates_may_change_on_a_live_model_and_names_may_not() -> None:
    """The same names take other rates; more, fewer or other tiers are refused, and so is their order."""
    model = Model.create(THREE).learn_many(*_rows(THREE, 500))
    changed = model.with_params(Params(d=3, D=20, tiers=(("block", 0.01), ("hold", 0.06), ("review", 0.2))))

    assert [tier.rate for tier in changed.tiers] == [0.01, 0.06, 0.2]
    assert [tier.threshold for tier in changed.tiers] == [tier.threshold for tier in model.tiers]
    for names in (NAMES[1:], (*NAMES, "log"), ("hold", "block", "review")):
        other = Params(d=3, D=20, tiers=tuple(zip(names, (0.01, 0.02, 0.05, 0.1), strict=False)))
        with pytest.raises(SettingsError, match=r"tiers: .* cannot become"):
            model.with_params(other)
    with pytest.raises(SettingsError, match=r"tiers: .* cannot become"):
        model.with_params(Params(d=3, D=20))


def test_a_seeded_model_keeps_every_threshold_and_none_of_the_counts() -> None:
    """Each tier starts where it was tracked, with room for a few alarms of its own."""
    learned = Model.create(THREE).learn_many(*_rows(THREE, 2_000))
    first = seeded(learned, THREE, stream=4)

    assert [tier.threshold for tier in first.tiers] == [tier.threshold for tier in learned.tiers]
    assert {(tier.budget_left, tier.alarms, tier.negatives, tier.fpr) for tier in first.tiers} == {(CREDIT, 0, 0, 0.0)}


def _rows(params: Params, n: int) -> tuple[Features, Signs]:
    operations = at_once(params, n, seed=2).operations
    return operations.x, operations.y
