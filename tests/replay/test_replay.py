"""Replay: the same decisions however it is fed, and numbers that add up."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from npstream.codec.decoder import EventConfig
from npstream.model import Model, Params
from npstream.partition import PartitionConfig
from npstream.records import Record
from npstream.replay.forecast import forecast
from npstream.replay.replay import QUARTERS, Result, replay
from npstream.replay.source import ArraySource, RecordSource, Source
from npstream.report.rates import Rates, rates
from tests.replay.data import Rebatched, config, event_lines, records, rows, tau, write_npz

SOURCES: dict[str, Source] = {
    "labelled rows": ArraySource(*rows(2300)),
    "late labels": ArraySource(*rows(900), 1, 40),
    "three partitions": ArraySource(*rows(1100), 3, 7),
    "events": RecordSource({0: records(event_lines(700)), 5: records(event_lines(300, seed=1), first=90)}, "orders"),
}


@pytest.mark.parametrize("size", [1, 7, 250, 5000])
@pytest.mark.parametrize("name", SOURCES)
def test_the_digest_does_not_depend_on_batches(name: str, size: int) -> None:
    """Decisions, rates and quarters are the same in batches of any size."""
    source = SOURCES[name]

    whole, again = replay(config(), source), replay(config(), Rebatched(source, size))

    assert (again.digest, again.rates, again.quarters) == (whole.digest, whole.rates, whole.quarters)


@pytest.mark.slow
def test_two_processes_give_one_digest(tmp_path: Path) -> None:
    """Another process, with nothing shared but the file, comes to the same digest as this one."""
    path = write_npz(tmp_path / "data.npz", 400)
    program = "import sys; from npstream.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", program, "backtest", str(path), "--set", "model.tau=0.1", "--json"]

    found = [subprocess.run(command, capture_output=True, text=True, timeout=120, check=True) for _ in range(2)]
    here = replay(config(D=100, buffer_max=20_000), ArraySource(*rows(400), topic="events"))

    assert [json.loads(done.stdout)[0]["digest"] for done in found] == [here.digest, here.digest]


@pytest.mark.parametrize("change", [{"tau": 0.2}, {"seed": 1}, {"D": 9}, {"preset": "paper"}, {"budget": 1.0}])
def test_any_setting_of_the_model_changes_the_digest(change: dict[str, Any]) -> None:
    """Equal digests mean equal decisions: another setting is another digest."""
    source = ArraySource(*rows(500))

    assert replay(config(**change), source).digest != replay(config(), source).digest


def test_one_changed_feature_changes_the_digest() -> None:
    """The digest covers every decision: the last event's smallest change is seen."""
    x, y = rows(300)
    changed = x.copy()
    changed[-1, 0] += 0.01

    assert replay(config(), ArraySource(changed, y)).digest != replay(config(), ArraySource(x, y)).digest


def test_a_replay_is_the_model_over_the_same_rows() -> None:
    """No second implementation: rates of a replay are those of the model's own stream."""
    x, y = rows(1500)
    using = config()

    outcome = Model.create(using.params).stream(x, y)

    assert replay(using, ArraySource(x, y)).rates == rates(outcome.decision, y)


@pytest.mark.parametrize("name", SOURCES)
def test_quarters_and_partitions_add_up_to_the_whole(name: str) -> None:
    """Counts of the four quarters, and of the partitions, sum to the counts of the run."""
    result = replay(config(), SOURCES[name])

    assert len(result.quarters) == QUARTERS
    assert total(result.quarters) == result.rates == total([part.rates for part in result.partitions])
    for part in result.partitions:
        assert total(part.quarters) == part.rates


def test_quarters_divide_the_stream_evenly() -> None:
    """With a label at every event each quarter holds a quarter of the events."""
    result = replay(config(), ArraySource(*rows(1000)))

    assert [quarter.negatives + quarter.positives for quarter in result.quarters] == [250] * 4


def total(parts: list[Rates] | Any) -> Rates:
    """The sum of rates."""
    return sum(parts, Rates(0, 0, 0, 0))


def test_progress_counts_every_record() -> None:
    """What progress is called with sums to the ranges of the source."""
    source, seen = SOURCES["three partitions"], list[int]()

    replay(config(), source, progress=seen.append)

    assert sum(seen) == sum(end - begin for begin, end in source.ranges.values())


def test_a_seed_starts_every_partition() -> None:
    """Warm partitions decide from the first event; their rates count only their own events."""
    x, y = rows(1200)
    model = Model.create(config().params).learn_many(x[:1000], y[:1000])
    source = ArraySource(x[1000:], y[1000:], 4)

    warm, cold = replay(config(), source, seed=model), replay(config(), source)

    assert warm.rates.negatives + warm.rates.positives == 200
    assert sum(part.tally.withheld_warmup for part in warm.partitions) == 0
    assert sum(part.tally.withheld_warmup for part in cold.partitions) > 0
    assert warm.rates.tpr > cold.rates.tpr


def test_rubbish_stops_a_partition_and_is_reported() -> None:
    """The cap on dead letters ends a partition's replay where the worker would pause it; the others go on."""
    bad = [Record(i, 1 + i, None, b"rubbish", ()) for i in range(1500)]
    result = replay(config(), RecordSource({0: bad, 1: records(event_lines(100))}))

    halted = {part.partition: part.halted for part in result.partitions}
    assert "more than 50% of a block of 1000 events are bad" in (halted[0] or "")
    assert halted[1] is None
    assert result.partitions[0].tally.dead_letters == 500


def test_external_scores_are_replayed() -> None:
    """A data set with one column is a stream of scores for preset external."""
    x, y = rows(400, d=1)
    external = PartitionConfig(params=Params(preset="external", tau=0.1), events=EventConfig(d=0, external=True))

    result = replay(external, ArraySource(x, y))

    assert (result.rates.negatives, result.rates.positives) == (int((y < 0).sum()), int((y > 0).sum()))
    assert result.rates.tpr > 0.3


def test_a_higher_rate_detects_more() -> None:
    """The ROC over target rates rises, and each rate is held within its budget."""
    source = ArraySource(*rows(4000))
    found: list[Result] = [replay(tau(config(), value), source) for value in (0.02, 0.1, 0.3)]

    tprs = [result.rates.tpr for result in found]
    assert tprs == sorted(tprs)
    for result in found:
        allowed = result.config.params.tau * result.rates.negatives + 2 * result.config.params.budget + 1
        assert result.rates.false_positives <= allowed


def test_a_forecast_scales_what_it_measured() -> None:
    """Events are those of the ranges, bytes those of the first records scaled; time is the clock's."""
    source = ArraySource(*rows(20_000), 2)
    ticks = iter([0.0, 1.0, 5.0, 26.0])

    found = forecast(config(), source, lambda: next(ticks))

    # One second to begin; sixteen thousand of the twenty thousand events took twenty more.
    assert (found.events, found.partitions, found.bytes, found.seconds) == (20_000, 2, 20_000 * 12, 26.0)
