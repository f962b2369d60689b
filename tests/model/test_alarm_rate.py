"""Control `alarm_rate`: the share of alarms among all observations is held, and no label is needed for it."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from npstream.model import Model, Op, Operations, Params, Reason, seeded
from tests.model.streams import Feed, delayed, shells
from tests.model.test_budget import ROUNDING, worst_window

DECIDING = (Op.SCORE, Op.SCORE_LEARN)


@dataclass(frozen=True)
class Story:
    """A model, and what happens to it: (feature and score, label, delay) for each observation; None: no label."""

    params: Params
    observations: Sequence[tuple[float, int, int | None]]
    sizes: list[int]

    def feed(self) -> Feed:
        """The operations in order: each observation, and its label after so many further ones; 0: along with it."""
        waiting: dict[int, list[int]] = {}
        ops: list[tuple[Op, int]] = []
        for e, (_, _, delay) in enumerate(self.observations):
            ops += [(Op.LEARN if self.observations[k][2] else Op.RELEASE, k) for k in waiting.pop(e, [])]
            ops.append((Op.SCORE_LEARN if delay == 0 else Op.SCORE, e))
            if delay != 0:
                waiting.setdefault(e + (delay or 15), []).append(e)
        code, row = np.array([op for op, _ in ops], np.int8), np.array([e for _, e in ops])
        value = np.array([self.observations[e][0] for e in row])
        x = np.repeat(value[:, None], self.params.d, axis=1).astype(np.float32)
        y = np.array([self.observations[e][1] for e in row], np.int8)
        slot = np.where(code == Op.SCORE_LEARN, -1, row).astype(np.int32)
        return Feed(Operations(code, x, value, y, slot), len(self.observations))


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Values that mostly climb, so that any threshold learned from the past is too low; labels late, early or never."""
    kind = draw(st.sampled_from(["external", "plus", "one_class", "frozen"]))
    shape = {"preset": "external"} if kind == "external" else {"d": 1, "D": 8, "eta": 1.0}
    extra = {"one_class": {"one_class": True}, "frozen": {"learning": False}}.get(kind, {})
    tau, budget = draw(st.sampled_from([0.02, 0.1, 0.3, 0.7])), draw(st.sampled_from([0.5, 1.0, 3.0, 10.0]))
    params = Params.from_dict({**shape, **extra, "tau": tau, "budget": budget, "control": "alarm_rate"})
    jumps = st.tuples(st.integers(-3, 9), st.sampled_from([1, -1]), st.none() | st.integers(0, 40))
    level, observations = 0.0, []
    for jump, y, delay in draw(st.lists(jumps, min_size=40, max_size=250)):
        level += jump
        observations.append((level, y, delay))
    return Story(params, observations, draw(st.lists(st.integers(0, 60), max_size=12)))


def climbing(n: int, params: Params) -> Story:
    """Every score twice the one before, after a quiet start that leaves all budget unspent."""
    return Story(params, [(0.0, -1, None)] * 300 + [(2.0**k, -1, None) for k in range(n)], [])


TIGHT = Params(preset="external", tau=0.1, budget=5.0, control="alarm_rate")


@settings(max_examples=300, deadline=None)
@given(story=stories())
@example(story=climbing(200, TIGHT))
def test_alarms_stay_within_the_bound_without_a_single_label(story: Story) -> None:
    """
    Whatever the data, model, delays and batches: on every window of n observations at most
    tau n + 2C + 1 alarms, so also false alarms; and the batches leave no trace.
    """
    feed = story.feed()
    whole, cut = Model.create(story.params), Model.create(story.params)
    outcome = feed.run(cut, sizes=story.sizes)
    deciding = np.isin(feed.operations.code, DECIDING)
    alarms = (outcome.decision[deciding] > 0).astype(int).tolist()
    bound = 2 * story.params.budget + 1 - story.params.tau + ROUNDING

    assert worst_window(alarms, [1] * len(alarms), story.params.tau) <= bound
    feed.run(whole)
    assert whole.to_bytes() == cut.to_bytes()


def test_an_adversary_spends_the_budget_and_no_more() -> None:
    """Against scores that outrun any threshold the bucket withholds; with an endless one the bound would break."""
    found = {}
    for params in (TIGHT, replace(TIGHT, budget=1e9)):
        story = climbing(200, params)
        outcome = story.feed().run(Model.create(params))
        alarms = [int(row > 0) for row in outcome.decision[outcome.decision != 0]]
        found[params.budget] = worst_window(alarms, [1] * len(alarms), 0.1)

    assert 9 < found[5.0] <= 11
    assert found[1e9] > 100


def observe(model: Model, x: npt.NDArray[np.float32]) -> npt.NDArray[np.int8]:
    """Decide rows that nobody will ever label."""
    n = len(x)
    code, nothing = np.full(n, Op.SCORE, np.int8), np.full(n, -1, np.int32)
    score = x[:, 0].astype(np.float64) if model.params.preset == "external" else np.zeros(n)
    rows = x[:, : model.params.d]
    return model.run(Operations(code, rows, score, np.zeros(n, np.int8), nothing), np.empty(0, np.int8)).decision


@pytest.mark.parametrize(
    "params",
    [
        Params(d=5, tau=0.02, control="alarm_rate"),
        Params(d=5, tau=0.02, one_class=True, control="alarm_rate"),
        Params(preset="external", tau=0.02, control="alarm_rate"),
    ],
    ids=["plus", "one-class", "external"],
)
def test_alarms_come_at_the_rate_from_the_first_day_without_any_label(params: Params) -> None:
    """A cold model that never sees a label alarms at tau, a little below rather than above, soon after its warm-up."""
    x, _ = shells(20_000, 5, seed=3)
    decision = observe(Model.create(params), x)

    assert (decision[:50] == -1).all()
    assert (decision[50:500] > 0).any()
    assert 0.9 * 0.02 <= (decision > 0).mean() <= 1.02 * 0.02
    assert all(0.75 * 0.02 <= part.mean() <= 1.15 * 0.02 for part in np.split(decision > 0, 5))


def test_warm_up_counts_observations() -> None:
    """The first alarm comes after min(1/tau, 100) observations; alarms held back say `warmup`."""
    for tau, warmup in ((0.3, 4), (0.1, 10), (0.01, 100), (0.001, 100)):
        model = Model.create(Params(preset="external", tau=tau, control="alarm_rate"))
        decision = observe(model, (2.0 ** np.arange(120))[:, None].astype(np.float32))

        assert int(np.argmax(decision > 0)) == warmup
        assert model.held == warmup
        assert not model.warming_up


def test_labels_teach_the_model_and_do_not_move_the_threshold() -> None:
    """The label of a waiting observation changes weights and rates; threshold and budget stay as they are."""
    params = Params(d=3, D=20, tau=0.1, control="alarm_rate")
    model = Model.create(params)
    feed = delayed(params, 2_000, seed=5)
    decided = np.zeros(feed.slots, np.int8)
    for e in range(len(feed.operations.code)):
        before = (model.threshold, model.budget_left, model.digest())
        model.run(feed[e : e + 1], decided)
        if feed.operations.code[e] in (Op.LEARN, Op.RELEASE):
            assert (model.threshold, model.budget_left) == before[:2]
            assert model.digest() != before[2]


def test_a_change_of_tau_or_control_counts_from_the_next_observation() -> None:
    """State stays as it is, there is no second warm-up, and each part of the stream holds its own rate."""
    x, y = shells(60_000, 4, seed=8)
    params = Params(d=4, tau=0.05)
    model = Model.create(params)
    model.stream(x[:20_000], y[:20_000])
    shares = []
    for part, tau in ((slice(20_000, 40_000), 0.05), (slice(40_000, 60_000), 0.02)):
        changed = model.with_params(replace(params, tau=tau, control="alarm_rate"))
        assert changed.to_bytes() == model.to_bytes()
        assert not changed.warming_up
        model = changed
        shares.append(float((observe(model, x[part])[2_000:] > 0).mean()) / tau)
    back = model.with_params(params)
    outcome = back.stream(x[:20_000], y[:20_000])
    shares.append(float((outcome.decision[(y[:20_000] < 0)][2_000:] > 0).mean()) / 0.05)

    assert all(0.85 <= share <= 1.05 for share in shares), shares


def test_a_model_trained_with_labels_may_start_under_the_control_of_alarms() -> None:
    """A seed has its threshold from labelled history and the alarms of its first day within rate and credit."""
    x, y = shells(12_000, 4, seed=9)
    trained = Model.create(Params(d=4, tau=0.05))
    trained.stream(x[:6000], y[:6000])
    seed = seeded(trained, Params(d=4, tau=0.05, control="alarm_rate"), stream=0)
    decision = observe(seed, x[6000:])

    assert (decision[:200] > 0).any()
    assert 0.8 * 0.05 <= (decision > 0).mean() <= 1.05 * 0.05


def test_withheld_alarms_name_the_budget() -> None:
    """Once the bucket is full the reason is `budget`, and room comes back with tau per observation."""
    story = climbing(40, TIGHT)
    outcome = story.feed().run(Model.create(TIGHT))
    tail = deque(outcome.reason[outcome.decision == -1], maxlen=10)

    assert set(tail) == {Reason.BUDGET}
