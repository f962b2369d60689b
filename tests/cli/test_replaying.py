"""backtest, train and tune as commands: side by side, from files and topics, and what they leave behind."""

import json
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from npstream import app, client
from npstream.backend import backend_of
from npstream.cli.exits import OK, SETTINGS
from npstream.records import Channel, Position, Record
from npstream.settings import load
from npstream.testing import Stage
from tests.cli.lines import ENTRY, PYTHON, SMALL, npstream, settings_file
from tests.replay.data import event_lines, late_lines, rows, write_lines, write_npz

QUICK = ("--set", "model.D=8", "--set", "model.tau=0.1")


def json_of(*arguments: str | Path) -> Any:
    """The document a command printed."""
    done = npstream(*arguments, "--json")
    assert (done.code, done.err) == (OK, "")
    return json.loads(done.out)


def events(count: int) -> list[client.Message]:
    """Rows as labelled events."""
    x, y = rows(count)
    return [client.event(i, [float(v) for v in x[i]], target=bool(y[i] > 0)) for i in range(count)]


# backtest


def test_a_file_needs_no_settings_file(tmp_path: Path) -> None:
    """The width is counted, and the list of runs has what scripts rely on."""
    path = write_npz(tmp_path / "data.npz", 500, d=5)

    (run,) = json_of("backtest", path, "--set", "model.tau=0.1")

    assert (run["events"], run["tau"], run["settings"]["model"]["d"]) == (500, 0.1, 5)
    assert {"fpr", "tpr", "np_score", "digest", "quarters"} <= run.keys()
    assert sum(quarter["negatives"] for quarter in run["quarters"]) == run["negatives"]


def test_settings_are_compared_side_by_side(tmp_path: Path) -> None:
    """Lists make a product, presets are taken by their own defaults, and every run says its settings."""
    path = write_npz(tmp_path / "data.npz", 300)

    runs = json_of(
        "backtest", path, "--set", "model.D=8", "--set", "model.tau=0.1,0.2", "--set", "model.preset=plus,paper"
    )

    reported = [(run["name"], run["tau"], run["settings"]["model"]["preset"]) for run in runs]
    assert reported == [
        ("tau=0.1 preset=plus", 0.1, "plus"),
        ("tau=0.1 preset=paper", 0.1, "paper"),
        ("tau=0.2 preset=plus", 0.2, "plus"),
        ("tau=0.2 preset=paper", 0.2, "paper"),
    ]
    assert len({run["digest"] for run in runs}) == 4


def test_settings_files_are_compared_side_by_side(tmp_path: Path) -> None:
    """Several --config are several runs over one file, named after the files."""
    path = write_npz(tmp_path / "data.npz", 300)
    configs: list[str | Path] = []
    for name, tau in (("strict", 0.05), ("loose", 0.3)):
        (tmp_path / name).mkdir()
        config = settings_file(tmp_path / name, model={**SMALL["model"], "tau": tau})
        configs += ["--config", config.rename(tmp_path / f"{name}.yaml")]

    runs = json_of("backtest", path, *configs)

    assert [(run["name"], run["tau"]) for run in runs] == [("strict", 0.05), ("loose", 0.3)]


def test_all_settings_are_checked_before_the_first_run(tmp_path: Path) -> None:
    """One wrong value among several ends the comparison at once, named by its run."""
    path = write_npz(tmp_path / "data.npz", 300)

    done = npstream("backtest", path, "--set", "model.tau=0.1,7,0.2,8")

    assert (done.code, done.out) == (SETTINGS, "")
    assert [line.removeprefix("npstream: ").split(":")[0] for line in done.err.splitlines()] == ["tau=7", "tau=8"]


def test_one_model_is_compared_with_twelve(tmp_path: Path) -> None:
    """A file is spread over as many models as asked for; no row is lost."""
    path = write_npz(tmp_path / "data.npz", 400)

    (run,) = json_of("backtest", path, *QUICK, "--partitions", "12")

    assert [part["partition"] for part in run["partitions"]] == list(range(12))
    assert sum(part["tally"]["decisions"] for part in run["partitions"]) == 400 == run["tally"]["decisions"]


def test_labels_can_be_delayed(tmp_path: Path) -> None:
    """With a delay every label comes on its own and is joined; the buffer of the defaults is long enough."""
    path = write_npz(tmp_path / "data.npz", 400)

    (run,) = json_of("backtest", path, *QUICK, "--delay", "100")

    tally = run["tally"]
    assert (tally["labels_joined"], tally["labels_with_event"], tally["labels_late"]) == (400, 0, 0)
    assert run["negatives"] + run["positives"] == 400


def test_a_plan_says_what_a_replay_would_cost(tmp_path: Path) -> None:
    """Events, bytes, partitions, runs and seconds; nothing is replayed to the end and nothing is written."""
    path = write_npz(tmp_path / "data.npz", 400)

    plan = json_of("backtest", path, "--set", "model.tau=0.1,0.2", "--plan", "--report", tmp_path / "report")

    assert {name: plan[name] for name in ("runs", "events", "partitions", "bytes")} == {
        "runs": 2,
        "events": 400,
        "partitions": 1,
        "bytes": 400 * 3 * 4,
    }
    assert plan["seconds"] >= 0
    assert not (tmp_path / "report").exists()


def test_a_report_is_left_behind(tmp_path: Path) -> None:
    """A page and the samples behind its curves."""
    path = write_npz(tmp_path / "data.npz", 300)

    done = npstream("backtest", path, *QUICK, "--report", tmp_path / "deep" / "report")

    assert done.code == OK
    assert f"report: {tmp_path / 'deep' / 'report' / 'report.html'}" in done.out
    assert "<svg" in (tmp_path / "deep" / "report" / "report.html").read_text()
    assert (tmp_path / "deep" / "report" / "samples.csv").read_text().startswith("run,partition,records,")


def test_a_topic_is_read_and_left_alone(tmp_path: Path) -> None:
    """A backtest comes to the digests that the live group committed; the group and its topics stay as they were."""
    stage = Stage(SMALL, tmp_path, 2)
    stage.send(events(400))
    stage.run()
    before = committed_state(stage)
    config = settings_file(tmp_path)

    (run,) = json_of("backtest", "--config", config)
    (part,) = json_of("backtest", "--config", config, "--partition", "1", "--to", "10")

    assert committed_state(stage) == before
    assert [found["chain"] for found in run["partitions"]] == [position.proof.chain for position in before[0]]
    assert (run["events"], part["events"]) == (400, 10)


def committed_state(stage: Stage) -> tuple[list[Position], list[Record]]:
    """All that a group has: its committed positions, and every record of its four topics."""
    with closing(backend_of(stage.settings).open_state()) as state:
        positions = [state.committed(partition) for partition in range(stage.partitions)]
    records = [r for c in Channel for p in range(stage.partitions) for r in stage.records(c, p)]
    return [position for position in positions if position is not None], records


def test_lines_of_events_are_replayed(tmp_path: Path) -> None:
    """A JSONL file of events, labels on their own, over one model or three."""
    path = write_lines(tmp_path / "events.jsonl", event_lines(300))

    (one,), (three,) = json_of("backtest", path, *QUICK), json_of("backtest", path, *QUICK, "--partitions", "3")

    assert one["tally"]["labels_joined"] == three["tally"]["labels_joined"] == 150
    assert len(three["partitions"]) == 3


def test_scores_of_another_model_are_replayed(tmp_path: Path) -> None:
    """A data set with one column is a stream of scores for preset external; no width has to be given."""
    path = write_npz(tmp_path / "scores.npz", 400, d=1)

    (run,) = json_of("backtest", path, "--set", "model.preset=external", "--set", "model.tau=0.1")

    assert (run["events"], run["settings"]["model"]["d"]) == (400, 0)
    assert run["tpr"] > 0


# train


def test_a_trained_model_starts_new_partitions(tmp_path: Path) -> None:
    """The file works as --start-from and as start_from in settings: the same decisions, no warm-up."""
    path = write_npz(tmp_path / "data.npz", 900)
    model = tmp_path / "model.npstream"
    config = settings_file(tmp_path, start_from=str(model))

    trained = json_of("train", path, "--config", config, "--out", model, "--set", "start_from=null")
    (by_option,) = json_of("backtest", path, *QUICK, "--set", "model.budget=5", "--start-from", model)
    (by_setting,) = json_of("backtest", path, "--config", config)

    assert (trained["events"], trained["learned"]) == (900, 900)
    assert trained["digest"] == app.read_model(model).digest()
    assert by_option["digest"] == by_setting["digest"]
    assert by_setting["tally"]["withheld_warmup"] == 0


def test_a_worker_starts_from_the_trained_model(tmp_path: Path) -> None:
    """Live partitions without state publish what a backtest from the model says they will."""
    model = tmp_path / "model.npstream"
    npstream(
        "train", write_npz(tmp_path / "data.npz", 900, seed=1), "--config", settings_file(tmp_path), "--out", model
    )
    stage = Stage({**SMALL, "start_from": str(model)}, tmp_path, 2)
    stage.send(events(200))

    live = stage.run(crashes=[5])
    (run,) = json_of("backtest", "--config", settings_file(tmp_path, start_from=str(model)))

    assert live.decisions[0].t == 900
    assert "warmup" not in {decision.reason for decision in live.decisions}
    assert json_of("audit", "--config", settings_file(tmp_path, start_from=str(model)))["holds"]
    assert sum(decision.decision > 0 for decision in live.decisions) == run["tally"]["alarms"]


def test_training_compares_starts_on_events_it_held_back(tmp_path: Path) -> None:
    """Cold and warm, over one and twelve models by default, each on the same last events."""
    path = write_npz(tmp_path / "data.npz", 1000)

    trained = json_of(
        *(
            "train",
            path,
            *QUICK,
            "--holdout",
            "150",
            "--out",
            tmp_path / "model.npstream",
            "--report",
            tmp_path / "report",
        )
    )

    names = [run["name"] for run in trained["comparison"]]
    assert names == ["1 model, cold", "1 model, warm", "12 models, cold", "12 models, warm"]
    assert {run["events"] for run in trained["comparison"]} == {150}
    page = (tmp_path / "report" / "report.html").read_text()
    assert all(name in page for name in names)
    without = json_of("train", path, *QUICK, "--holdout", "0", "--out", tmp_path / "model.npstream")
    assert (without["digest"], without["comparison"]) == (trained["digest"], [])


def test_late_labels_are_counted_for_the_events_they_belong_to(tmp_path: Path) -> None:
    """Where every label is late the held-back events are measured by theirs, and nothing is made up without any."""
    late, later = (write_lines(tmp_path / f"{delay}.jsonl", late_lines(1000, delay, 3)) for delay in (60, 900))

    trained = json_of("train", late, *QUICK, "--holdout", "100", "--out", tmp_path / "model.npstream")
    shown = npstream("train", later, *QUICK, "--holdout", "100", "--out", tmp_path / "model.npstream")

    for run in trained["comparison"]:
        assert run["negatives"] + run["positives"] == 100
        assert 0 <= run["fpr"] <= 1
    assert shown.code == 0
    assert "no labels" in shown.out
    assert "nan" not in shown.out
    assert "0.000" not in shown.out


def test_a_topic_trains_a_model_without_touching_it(tmp_path: Path) -> None:
    """All partitions become one model; the comparison runs on the topic's own partitions."""
    stage = Stage(SMALL, tmp_path, 3)
    stage.send(events(600))

    trained = json_of(
        "train", "--config", settings_file(tmp_path), "--out", tmp_path / "model.npstream", "--holdout", "90"
    )

    assert trained["learned"] == 600
    assert [run["name"] for run in trained["comparison"]] == ["3 models, cold", "3 models, warm"]
    assert sum(run["events"] for run in trained["comparison"]) == 2 * 90


def test_a_model_of_another_shape_is_refused(tmp_path: Path) -> None:
    """Settings and model file must agree; the message says both values."""
    path, model = write_npz(tmp_path / "data.npz", 300), tmp_path / "model.npstream"
    json_of("train", path, *QUICK, "--out", model)

    done = npstream("backtest", path, "--set", "model.D=16", "--start-from", model)

    assert (done.code, done.out) == (SETTINGS, "")
    assert "model.D: 16 given, the model to start from was trained with 8" in done.err


# tune


def test_the_winner_can_be_loaded_and_scores_what_was_promised(tmp_path: Path) -> None:
    """A backtest with the file that was written finds the NP-score and the digest of the best trial."""
    path, best = write_npz(tmp_path / "data.npz", 300), tmp_path / "best.yaml"

    found = json_of("tune", path, *QUICK, "--trials", "6", "--jobs", "1", "--out", best)
    (run,) = json_of("backtest", path, "--config", best)

    assert (run["np_score"], run["digest"]) == (found["best"]["np_score"], found["best"]["digest"])
    assert found["best"]["np_score"] <= found["base"]["np_score"]
    assert len(found["trials"]) == 6


def test_secrets_stay_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The winning file has the settings as they were written: nothing from the environment is put in."""
    monkeypatch.setenv("TUNE_LOG", str(tmp_path / "log.db"))
    monkeypatch.setenv("NPSTREAM__EMBEDDED__GROUP", "from-the-environment")
    config = settings_file(tmp_path, embedded={"path": "${TUNE_LOG}"}, labels={"buffer_max": 77})
    best = tmp_path / "best.yaml"

    json_of(
        *("tune", write_npz(tmp_path / "data.npz", 300), "--config", config, "--set", "model.tau=0.2"),
        *("--trials", "3", "--jobs", "1", "--out", best),
    )

    written = yaml.safe_load(best.read_text())
    assert written["embedded"] == {"path": "${TUNE_LOG}"}
    assert (written["labels"], written["model"]["tau"]) == ({"buffer_max": 77}, 0.2)
    assert load(best, {"TUNE_LOG": "x"}).model.d == 3


def test_a_search_on_a_topic_leaves_it_alone(tmp_path: Path) -> None:
    """Trials run over the topic's own partitions."""
    stage = Stage(SMALL, tmp_path, 2)
    stage.send(events(300))

    found = json_of(
        *("tune", "--config", settings_file(tmp_path), "--trials", "2", "--jobs", "1"),
        *("--out", tmp_path / "best.yaml"),
    )

    assert {trial["events"] for trial in found["trials"]} == {300}


def test_there_is_nothing_to_search_in_scores_of_another_model(tmp_path: Path) -> None:
    """Preset external is refused with the reason."""
    path = write_npz(tmp_path / "data.npz", 100, d=1)

    done = npstream("tune", path, "--set", "model.preset=external", "--out", tmp_path / "best.yaml")

    assert "nothing to search" in done.err


@pytest.mark.slow
def test_a_search_on_both_cores_prints_one_document(tmp_path: Path) -> None:
    """As a process of its own, with processes of its own, nothing but the document reaches standard output."""
    path = write_npz(tmp_path / "data.npz", 200)
    command = [PYTHON, "-c", ENTRY, "tune", str(path), *QUICK, "--trials", "4", "--jobs", "2", "--json"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=170, check=True)

    assert done.stderr == ""
    assert len(json.loads(done.stdout)["trials"]) == 4
    assert (tmp_path / "best.yaml").exists()
