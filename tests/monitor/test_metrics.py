"""What a scrape says, of a worker that really runs."""

import json
import math
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from npstream.history.inspect import describe
from npstream.model import Params
from npstream.monitor.document import status_document
from npstream.monitor.metrics import Metrics
from npstream.monitor.recorder import Recorder
from npstream.monitor.status import WorkerStatus
from npstream.observe import METRICS
from npstream.partition import LabelConfig, PartitionProcessor
from npstream.records import AlarmRates, ChallengerRates, Counted, Spans, Tier, TierRates
from tests.monitor.builders import IDENTITY, Sample, config, events, handled, reading, sample, samples
from tests.partition.builders import config as partition_config
from tests.partition.builders import overruled, processor
from tests.stage.watched import Watched


def of(name: str, **labels: str) -> Sample:
    """A sample of partition 0."""
    return sample(name, partition="0", **labels)


def test_every_metric_of_the_list_is_exported_and_nothing_else(tmp_path: Path) -> None:
    """The families of a scrape are those of the list, each of its kind and with its help."""
    with Watched(tmp_path / "log", 2) as stage:
        stage.send([*events(50), b"rubbish"])
        stage.wait_for(handled(51, 0))
        families = list(text_string_to_metric_families(stage.get("metrics")[1]))

    # A parsed counter has lost its suffix.
    found = {(f.name + ("_total" if f.type == "counter" else ""), f.type, f.documentation) for f in families}
    ours = {(name, kind, help) for name, kind, help in found if name.startswith("npstream_")}
    assert ours == {(m.name, m.kind, m.help) for m in METRICS if m.name.startswith("npstream_")}
    assert {name for name, *_ in found - ours} == {m.name for m in METRICS if not m.name.startswith("npstream_")}


def test_names_carry_their_unit() -> None:
    """Counters end in _total; seconds, bytes and ratios say so."""
    wrong = [m.name for m in METRICS if (m.kind == "counter") != m.name.endswith("_total")]
    stems = {m.name.removesuffix("_total"): m.unit for m in METRICS}

    assert wrong == []
    assert [
        n for n, unit in stems.items() if unit in ("seconds", "bytes", "ratio") and not n.endswith(f"_{unit}")
    ] == []
    assert len({m.name for m in METRICS}) == len(METRICS)


def test_prometheus_own_check_accepts_a_scrape(tmp_path: Path) -> None:
    """`promtool check metrics` has nothing to say about a running worker."""
    promtool = shutil.which("promtool")
    if promtool is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI needs promtool: install the package prometheus", pytrace=False)
        pytest.skip("no promtool here: install the package prometheus")
    with Watched(tmp_path / "log") as stage:
        stage.send(events(100))
        stage.wait_for(handled(100))
        scrape = stage.get("metrics")[1]

    done = subprocess.run(
        [promtool, "check", "metrics"], input=scrape, capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_counters_agree_with_the_status(tmp_path: Path) -> None:
    """Decisions, labels, outcomes, dead letters and events add up to what was fed."""
    stage = Watched(tmp_path / "log", using=config(on_bad_event="-1"))
    with stage:
        bad = [b"[]", b"[]", b'{"id": "a", "x": [1]}', None]
        stage.send([*events(700), *bad, b'{"id": 1, "x": [0.5, 0.5]}', b'{"id": 1, "y": -1}'])
        partition = stage.wait_for(handled(706))["partitions"][0]
        found = stage.metrics()

    assert found[of("npstream_events_total")] == 706
    reasons = {"not_object": 2, "wrong_length": 1, "tombstone": 1}
    assert {
        r: n
        for r in ("not_object", "wrong_length", "tombstone", "oversize")
        if (n := found[of("npstream_dead_letters_total", reason=r)])
    } == reasons
    assert found[of("npstream_decisions_total", decision="-1", reason="invalid")] == 1
    made = {
        (d, r): found[of("npstream_decisions_total", decision=d, reason=r)]
        for d, r in (("1", "score"), ("-1", "score"), ("-1", "warmup"), ("-1", "budget"))
    }
    assert sum(made.values()) == partition["decisions"] == 701
    assert made["1", "score"] == partition["alarms"] > 0
    assert made["-1", "warmup"] == partition["withheld"]["warmup"]
    assert found[of("npstream_labels_total", fate="with_event")] == 700
    assert found[of("npstream_labels_total", fate="joined")] == 1
    outcomes = {
        (t, d): found[of("npstream_outcomes_total", truth=t, decision=d)]
        for t in ("target", "non_target")
        for d in ("1", "-1")
    }
    assert sum(outcomes.values()) == 701
    assert outcomes["non_target", "1"] == partition["fpr"]["lifetime"]["hits"]
    assert outcomes["target", "1"] == partition["tpr"]["lifetime"]["hits"]
    assert found[of("npstream_fpr_ratio", span="lifetime")] == partition["fpr"]["lifetime"]["value"]
    assert found[of("npstream_fpr_lower_ratio", span="window")] == partition["fpr"]["window"]["lower"]
    assert found[of("npstream_threshold")] == partition["threshold"]
    assert found[of("npstream_checkpoints_total")] >= 2
    assert found[of("npstream_checkpoint_bytes")] == partition["checkpoint_bytes"] > 0
    assert found[of("npstream_batch_records_sum")] == 706
    assert found[of("npstream_partition_phase", phase="live")] == 1
    assert found[of("npstream_tau_ratio")] == 0.1
    assert found[of("npstream_alarm_rate_control")] == 0
    since_warmup = partition["alarm_rate"]["lifetime"]
    assert found[of("npstream_alarm_ratio", span="lifetime")] == since_warmup["value"]
    assert since_warmup["hits"] == partition["alarms"]
    assert partition["decisions"] - 30 < since_warmup["of"] < partition["decisions"]
    assert found[of("npstream_labels_total", fate="corrected")] == 0


def test_the_share_of_alarms_is_shown_where_it_is_controlled(tmp_path: Path) -> None:
    """Without a single label the rate that tau is for is known; that of labelled non-targets is not."""
    controlled = config(params=Params(d=2, D=8, tau=0.1, control="alarm_rate"))
    unlabelled = [json.dumps({"x": json.loads(event)["x"]}).encode() for event in events(1000)]
    with Watched(tmp_path / "log", using=controlled) as stage:
        stage.send(unlabelled)
        partition = stage.wait_for(handled(1000))["partitions"][0]
        found = stage.metrics()

    assert partition["control"] == "alarm_rate"
    assert 0.05 < partition["alarm_rate"]["window"]["value"] < 0.15
    assert partition["fpr"]["lifetime"]["value"] is None
    assert found[of("npstream_alarm_rate_control")] == 1
    assert found[of("npstream_alarm_ratio", span="window")] == partition["alarm_rate"]["window"]["value"]


def test_a_worker_counts_only_what_it_decided_itself(tmp_path: Path) -> None:
    """After a restart counters begin at zero while rates, recent ones too, go on from the restored state."""
    stage = Watched(tmp_path / "log")
    stage.send(events(300))
    stage.start()
    before = stage.wait_for(handled(300))["partitions"][0]
    stage.stop()
    with stage:
        stage.send(events(20, seed=1))
        partition = stage.wait_for(handled(320))["partitions"][0]
        found = stage.metrics()

    assert found[of("npstream_events_total")] == 20
    assert found[of("npstream_labels_total", fate="with_event")] == 20
    for span in ("lifetime", "window"):
        counted = [sum(known[rate][span]["of"] for rate in ("fpr", "tpr")) for known in (before, partition)]
        assert 260 < counted[0] < 300
        assert counted[1] == counted[0] + 20


def test_page_inspect_and_metrics_say_the_same(tmp_path: Path) -> None:
    """Each reads the same state, before and after a restart: recent rates, those since the warm-up, alarms a day."""
    machine = processor(partition_config(labels=LabelConfig(buffer_max=50, corrections=True)))
    machine.process([item._replace(timestamp_ms=1_700_000_000_000 + 20_000 * item.offset) for item in overruled(1500)])
    restored = PartitionProcessor.from_snapshot(machine.snapshot())
    card = describe(machine.snapshot())
    recorder = Recorder(IDENTITY, lambda: 0.0)
    recorder.restoring(0)
    # As after a restart: nothing is committed yet.
    recorder.replaying(reading(rates=restored.rates()))
    recorder.polled()
    page = status_document(IDENTITY, recorder.board.current, {}, 0.0, True)["partitions"][0]
    found = samples(recorder.metrics.render(recorder.board.current, {}, 0.0, 0.0, True).decode())

    assert restored.rates() == machine.rates()
    for rate, name in (("fpr", "fpr"), ("tpr", "tpr"), ("alarm_rate", "alarm")):
        assert 0 < page[rate]["window"]["value"] == card[rate]["recent"]
        assert page[rate]["window"]["of"] == card[rate]["recent_of"]
        assert found[of(f"npstream_{name}_ratio", span="window")] == card[rate]["recent"]
        assert page[rate]["lifetime"]["value"] == card[rate]["lifetime"]
        assert found[of(f"npstream_{name}_ratio", span="lifetime")] == card[rate]["lifetime"]
    assert 0 < page["alarms_per_day"] == card["alarms_per_day"] == found[of("npstream_alarms_per_day")]


def test_bad_events_are_counted_once() -> None:
    """What a replay met again was counted by the worker that decided it; from there on each reading adds its own."""
    recorder = Recorder(IDENTITY, lambda: 0.0)
    replayed = {("not_json", "none"): 3}
    recorder.replaying(reading(bad_events=replayed))
    recorder.observed(reading(bad_events=replayed | {("empty", "1"): 2}))
    recorder.observed(reading(bad_events=replayed | {("empty", "1"): 2, ("empty", "-1"): 1}))
    found = samples(scrape(recorder))

    dead_letters = {r: found[of("npstream_dead_letters_total", reason=r)] for r in ("not_json", "empty", "oversize")}
    assert dead_letters == {"not_json": 0, "empty": 3, "oversize": 0}
    assert found[of("npstream_decisions_total", decision="1", reason="invalid")] == 2
    assert found[of("npstream_decisions_total", decision="-1", reason="invalid")] == 1


def test_a_released_partition_leaves_no_series() -> None:
    """On revoke every child of the partition is gone and those of the others stay; after a reset all are."""
    recorder = Recorder(IDENTITY, lambda: 0.0)
    for partition in (0, 1):
        recorder.restoring(partition)
        recorder.replaying(reading(partition=partition))
        recorder.observed(reading(partition=partition))
    scrapes = [scrape(recorder)]
    recorder.released(0)
    scrapes.append(scrape(recorder))
    recorder.session_ended("test")
    scrapes.append(scrape(recorder))

    zeros, ones = ([re.findall(f'^.*partition="{p}".*$', text, re.MULTILINE) for text in scrapes] for p in (0, 1))
    assert len(zeros[0]) == len(ones[0]) > 60
    assert zeros[1:] == [[], []]
    assert [len(found) for found in ones] == [len(ones[0]), len(ones[0]), 0]


def tier(name: str, rate: float, alarms: int) -> Tier:
    """A tier of which half of the alarms were false."""
    counts = {"alarms": alarms, "false_alarms": alarms // 2, "detections": alarms - alarms // 2}
    rest = {"threshold": 2.0, "budget_left": 7.0, "fpr": 0.0, "tpr": 0.0, "outstanding": 0, "held": 0, "withheld": 0}
    return Tier(name=name, rate=rate, negatives=1000, positives=100, **counts, **rest)  # type: ignore[arg-type]


def rates_of(*names: str) -> AlarmRates:
    """Recently 1 of 20 non-targets, in all 5 of 100 or with each further tier more; half of the targets."""
    found = [
        TierRates(name, fpr=Spans(Counted(1, 20), Counted(5 + k, 100)), tpr=Spans(Counted(1, 2), Counted(30, 60)))
        for k, name in enumerate(names)
    ]
    return AlarmRates(tiers=tuple(found))


def test_every_tier_has_series_and_lines_of_its_own() -> None:
    """Alarms are counted from the first reading on, rates are those of the state; a released partition has none."""
    recorder = Recorder(IDENTITY, lambda: 0.0)
    recorder.restoring(0)
    rates = rates_of("block", "review")
    recorder.replaying(reading(rates=rates, tiers=(tier("block", 0.01, 4), tier("review", 0.1, 40))))
    recorder.observed(reading(rates=rates, tiers=(tier("block", 0.01, 10), tier("review", 0.1, 60))))
    found = samples(scrape(recorder))
    recorder.polled()
    shown = status_document(IDENTITY, recorder.board.current, {}, 0.0, ready=True)["partitions"][0]["tiers"]

    assert {name: found[of("npstream_tier_alarms_total", tier=name)] for name in ("block", "review")} == {
        "block": 6,
        "review": 20,
    }
    assert found[of("npstream_tier_tau_ratio", tier="block")] == 0.01
    assert found[of("npstream_tier_fpr_ratio", tier="block", span="window")] == 1 / 20
    assert found[of("npstream_tier_fpr_ratio", tier="review", span="lifetime")] == 6 / 100
    assert found[of("npstream_tier_tpr_ratio", tier="review", span="lifetime")] == 30 / 60
    assert found[of("npstream_tier_threshold", tier="block")] == 2.0
    assert found[of("npstream_tier_budget_left_alarms", tier="block")] == 7.0
    assert [(each["name"], each["tau"], each["alarms"]) for each in shown] == [("block", 0.01, 10), ("review", 0.1, 60)]
    assert [each["fpr"]["lifetime"]["hits"] for each in shown] == [5, 6]
    recorder.released(0)
    assert "npstream_tier_alarms_total{" not in scrape(recorder)


def test_a_challenger_has_series_while_there_is_one() -> None:
    """Rates of the second model beside the published ones; not a number once it is gone, and none when released."""
    recorder = Recorder(IDENTITY, lambda: 0.0)
    recorder.restoring(0)
    spans = Spans(Counted(1, 20), Counted(5, 100))
    recorder.replaying(reading(challenger=ChallengerRates(0.02, "fpr", 300, spans, spans, Spans())))
    recorder.observed(reading(challenger=ChallengerRates(0.02, "fpr", 300, spans, spans, Spans())))
    found = samples(scrape(recorder))
    recorder.polled()
    shown = status_document(IDENTITY, recorder.board.current, {}, 0.0, ready=True)["partitions"][0]["challenger"]

    assert found[of("npstream_challenger_tau_ratio")] == 0.02
    assert found[of("npstream_challenger_fpr_ratio", span="window")] == 1 / 20
    assert found[of("npstream_challenger_alarm_ratio", span="lifetime")] == 5 / 100
    assert math.isnan(found[of("npstream_challenger_tpr_ratio", span="lifetime")])
    assert (shown["began"], shown["tau"], shown["fpr"]["lifetime"]["of"]) == (300, 0.02, 100)
    recorder.observed(reading())
    assert math.isnan(samples(scrape(recorder))[of("npstream_challenger_fpr_ratio", span="window")])
    recorder.released(0)
    assert "npstream_challenger_fpr_ratio{" not in scrape(recorder)


def scrape(recorder: Recorder) -> str:
    """The exposition as it would be served now."""
    return recorder.metrics.render(recorder.board.current, {}, 0.0, 0.0, True).decode()


def test_metrics_of_two_workers_do_not_meet() -> None:
    """Each exporter has a registry of its own."""
    first, second = Metrics(IDENTITY), Metrics(IDENTITY)
    first.aborted("test")

    assert b"npstream_aborts_total{" in first.render(WorkerStatus(), {}, 0.0, 0.0, False)
    assert b"npstream_aborts_total{" not in second.render(WorkerStatus(), {}, 0.0, 0.0, False)
