"""The search: the same trials whoever runs them, each run once, the best never worse than the start."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npstream.errors import SettingsError, UsageError
from npstream.jobs import Results
from npstream.model import Params
from npstream.partition import PartitionConfig
from npstream.replay.candidates import GENERATION, Candidate, base_of, close_in, explore
from npstream.replay.source import ArraySource, RecordSource
from npstream.replay.trials import COLUMNS, Score, data_digest, score_of, trial_key
from npstream.replay.tune import Search, Trial, tune
from npstream.settings.model_section import read_params
from tests.replay.data import config, event_lines, records, rows, tau

DATA = ArraySource(*rows(300))


class Stop(Exception):
    """Ends a search in its middle."""


def configure(candidate: Candidate) -> PartitionConfig:
    """The small rules with a candidate in them."""
    base = config().params
    return config().with_params(Params.from_dict({"d": 3, "tau": base.tau, **candidate.fields(base)}))


def search(trials: int, jobs: int = 1) -> Search:
    """A search around the small rules."""
    return Search(config().params, ("plus", "paper"), trials, jobs, configure)


def run(path: Path, trials: int, jobs: int = 1, reported: Callable[[Trial], None] = lambda trial: None) -> list[Trial]:
    """Search, keeping trials in `path`."""
    return tune(search(trials, jobs), DATA, Results(path, COLUMNS), reported)


def test_the_best_is_at_least_as_good_as_the_start(tmp_path: Path) -> None:
    """The settings as they are come first, all trials are used, and no candidate is tried twice."""
    trials = run(tmp_path / "t.csv", 11)

    assert trials[0].candidate == base_of(config().params)
    assert len(trials) == len({trial.candidate for trial in trials}) == 11
    assert min(trials, key=lambda trial: trial.rank).score.np_score <= trials[0].score.np_score
    assert {trial.candidate.preset for trial in trials} == {"plus", "paper"}


@pytest.mark.slow
def test_a_search_is_the_same_on_any_number_of_cores(tmp_path: Path) -> None:
    """Two processes find what one finds, in the same order."""
    assert run(tmp_path / "one.csv", 7) == run(tmp_path / "two.csv", 7, jobs=2)


@pytest.mark.parametrize("after", [1, 4, 6])
def test_an_interrupted_search_goes_on_where_it_stopped(tmp_path: Path, after: int) -> None:
    """Stopped after any trial and started again it ends with the same trials, and runs none of them twice."""
    seen: list[Trial] = []

    def stop(trial: Trial) -> None:
        seen.append(trial)
        if len(seen) == after:
            raise Stop

    path = tmp_path / "t.csv"
    with pytest.raises(Stop):
        run(path, 8, reported=stop)
    kept = path.read_text()

    trials = run(path, 8)

    assert trials == run(tmp_path / "undisturbed.csv", 8)
    assert kept.count("\n") == after + 1
    assert path.read_text().startswith(kept)
    assert path.read_text().count("\n") == len(trials) + 1


def test_more_trials_go_on_from_fewer(tmp_path: Path) -> None:
    """What was explored before is explored no more."""
    path = tmp_path / "t.csv"
    explored = run(path, 4)[:2]
    lines = path.read_text()

    trials = run(path, 12)

    assert trials[:2] == explored
    assert path.read_text().startswith(lines)


@pytest.mark.parametrize("label", [b"", b',"y":-1', b',"y":1'], ids=["no label", "no target", "no non-target"])
def test_there_is_nothing_to_search_by_without_labels(tmp_path: Path, label: bytes) -> None:
    """Settings that were never measured are not ranked: every one would look perfect."""
    lines = [b'{"x":[0,0,%d]%s}' % (i, label) for i in range(40)]
    data = RecordSource({0: records(lines)})

    with pytest.raises(UsageError, match="labelled"):
        tune(search(4), data, Results(tmp_path / "t.csv", COLUMNS), lambda trial: None)


def test_what_cannot_be_is_passed_over(tmp_path: Path) -> None:
    """A candidate that the settings refuse costs nothing and stops nothing."""

    def plus_only(candidate: Candidate) -> PartitionConfig:
        if candidate.preset == "paper":
            raise SettingsError(["no"])
        return configure(candidate)

    trials = tune(
        replace(search(8), configure=plus_only), DATA, Results(tmp_path / "t.csv", COLUMNS), lambda trial: None
    )

    assert {trial.candidate.preset for trial in trials} == {"plus"}


def test_a_key_changes_with_all_that_determines_a_trial() -> None:
    """Any setting, any event and how they are spread make another trial."""
    x, y = rows(300)
    other_x, other_y = x.copy(), y.copy()
    other_x[7, 1] += 1
    other_y[7] *= -1
    lines = records(event_lines(40))
    sources: list[ArraySource | RecordSource] = [
        *(DATA, ArraySource(other_x, y), ArraySource(x, other_y), ArraySource(x, y, 2), ArraySource(x, y, 1, 9)),
        *(RecordSource({0: lines}), RecordSource({1: lines}), RecordSource({0: lines[:-1]})),
        RecordSource({0: [lines[0]._replace(timestamp_ms=5), *lines[1:]]}),
    ]
    keys = [trial_key(config(), data_digest(source)) for source in sources]
    keys += [trial_key(changed, data_digest(DATA)) for changed in (tau(config(), 0.2), config(buffer_max=9))]

    assert len(set(keys)) == len(keys)
    assert trial_key(config(), data_digest(ArraySource(*rows(300)))) == keys[0]


def test_scores_come_back_as_they_were(tmp_path: Path) -> None:
    """Every digit survives the file; so does a rate that does not exist."""
    path = tmp_path / "t.csv"
    score = Score(1 / 3, float("nan"), 2 / 7, 12, "0f")
    row: dict[str, str | int | float] = {"preset": "plus", "D": 8, "g": 0.5, "eta": 0.01, "tau": 0.1}
    Results(path, COLUMNS).append("a", [row | score._asdict()])

    assert str(score_of(*Results(path, COLUMNS).rows(["a"]))) == str(score)


def test_a_budget_is_not_taken_to_a_preset_without_one() -> None:
    """Settings that name a budget can be searched over preset paper all the same."""
    base = Params(d=3, budget=5.0, charge="issue")
    raw = {"d": 3, "budget": 5.0, "charge": "issue", **Candidate("paper", 10, 0.1, 0.1).fields(base)}

    assert read_params(raw).preset == "paper"


@given(
    d=st.integers(1, 500),
    units=st.integers(1, 5000),
    eta=st.floats(1e-6, 10.0),
    g=st.floats(1e-9, 1e5),
    preset=st.sampled_from(["plus", "paper"]),
    number=st.integers(0, 30),
)
def test_every_candidate_can_be_a_model(d: int, units: int, eta: float, g: float, preset: str, number: int) -> None:
    """Whatever the settings are, what is proposed lies within what parameters may be."""
    base = Params.from_dict({"preset": preset, "d": d, "D": units, "eta": eta, "g": g})
    proposed = explore(base, ("plus", "paper"), 9)
    proposed += close_in(proposed[number % 9], base, number)

    assert len(proposed) == 9 + GENERATION
    for candidate in proposed:
        fields = {name: value for name, value in candidate.fields(base).items() if value is not None}
        Params.from_dict({"d": d, **fields})
