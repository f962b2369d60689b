"""Looking into checkpoints: what they hold, how they differ, what can be taken from them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npstream import app, client
from npstream.backend import backend_of
from npstream.codec.snapshot import decode_snapshot
from npstream.model import Model, Params
from npstream.partition import PartitionProcessor
from npstream.records import Channel
from npstream.testing import Stage
from tests.contracts.builders import read_checkpoint
from tests.history import score_model_file
from tests.history.stages import SETTINGS, as_json, mixed, stage, tool
from tests.stage.stage import D, run_cli


@pytest.fixture
def made(tmp_path: Path) -> Stage:
    """A worker has run twice, with another tau the second time."""
    found = stage(tmp_path, partitions=2)
    found.send(mixed(400))
    found.run()
    found.send(mixed(400, seed=1, first=400))
    found.run(settings={"model": {**SETTINGS["model"], "tau": 0.2}})
    return found


def live_model(made: Stage, partition: int) -> PartitionProcessor:
    """The processor a worker would restore now."""
    state = backend_of(made.settings).open_state()
    position = state.committed(partition)
    assert position is not None
    chunks = read_checkpoint(state, partition, position.pointer)
    state.close()
    return PartitionProcessor.from_snapshot(decode_snapshot(b"".join((c.value or b"")[12:] for c in chunks)))


def test_the_newest_checkpoint_as_json(made: Stage, tmp_path: Path) -> None:
    """Every number is that of the state a worker would restore."""
    card = as_json(tool(tmp_path, "inspect", "--partition", "1", "--json"))
    processor = live_model(made, 1)
    model = processor.model

    end = made.records(Channel.EVENTS, 1)[-1].offset + 1
    assert (card["next_offset"], card["committed_offset"], card["tau"]) == (end, end, 0.2)
    assert (card["learned"], card["threshold"], card["gamma"]) == (model.t, model.threshold, model.gamma)
    rates = processor.rates()
    assert (card["fpr"]["lifetime"], card["fpr"]["recent"]) == (rates.fpr.lifetime.share, rates.fpr.window.share)
    assert card["fpr"]["lifetime"] > model.false_alarms / model.negatives  # it leaves out the warm-up
    low, high = card["fpr"]["interval"]
    assert low < card["fpr"]["lifetime"] < high
    assert card["budget_left"] == pytest.approx(model.budget_left)
    assert (card["pending_labels"], card["tally"]) == (len(processor.pending), processor.tally.to_dict())
    assert np.array(card["kernel"]).shape == (D, D)
    assert len(card["directions"]) == 5
    assert card["directions"][0]["weight"] >= card["directions"][1]["weight"]


def test_the_newest_checkpoint_in_words(made: Stage, tmp_path: Path) -> None:
    """A person reads offset, rates with intervals, threshold, budget, waiting labels and directions."""
    text = tool(tmp_path, "inspect", "--partition", "0").stdout

    for word in ("checkpoint at input offset", "0 to replay", "95%:", "threshold", "false alarms left", "x[0]"):
        assert word in text


def test_all_partitions_in_a_table(made: Stage, tmp_path: Path) -> None:
    """Without a partition each one has a line."""
    assert len(as_json(tool(tmp_path, "inspect", "--json"))) == 2
    assert [line.split()[0] for line in tool(tmp_path, "inspect").stdout.splitlines()[2:]] == ["0", "1"]


def test_the_history_has_beginning_changes_and_kept_checkpoints(made: Stage, tmp_path: Path) -> None:
    """Where the partition began, where tau changed, and which checkpoints can be returned to."""
    found = as_json(tool(tmp_path, "inspect", "--partition", "0", "--history", "--json"))

    assert len(found["snapshots"]) == SETTINGS["checkpoint"]["keep"]
    assert [change["began"] for change in found["changes"]] == [True, False]
    assert found["changes"][1]["settings"] == {"params.tau": [0.1, 0.2]}
    text = tool(tmp_path, "inspect", "--partition", "0", "--history").stdout
    assert "began" in text
    assert "params.tau 0.1 -> 0.2" in text


def test_two_checkpoints_side_by_side(made: Stage, tmp_path: Path) -> None:
    """The difference shows what was learned between them and at which rates."""
    kept = [
        s["next_offset"]
        for s in as_json(tool(tmp_path, "inspect", "--partition", "0", "--history", "--json"))["snapshots"]
    ]
    a, b = str(kept[0]), str(kept[-1])
    found = as_json(tool(tmp_path, "inspect", "--partition", "0", "--diff", a, b, "--json"))

    cards = [as_json(tool(tmp_path, "inspect", "--partition", "0", "--at", at, "--json")) for at in (a, b)]
    assert found["changed"]["next_offset"] == [kept[0], kept[-1]]
    assert found["between"]["negatives"] == cards[1]["negatives"] - cards[0]["negatives"] > 0
    assert found["counted"]["events"] == cards[1]["tally"]["events"] - cards[0]["tally"]["events"]
    assert "between them" in tool(tmp_path, "inspect", "--partition", "0", "--diff", a, b).stdout
    assert tool(tmp_path, "inspect", "--partition", "0", "--diff", a, a).stdout.count("->") == D


def test_an_exported_model_starts_a_new_group(made: Stage, tmp_path: Path) -> None:
    """The file holds the model alone, and a partition without state begins with it."""
    file = tmp_path / "model.npstream"
    result = tool(tmp_path, "inspect", "--partition", "0", "--export", str(file), "--json")
    learned = live_model(made, 0).model

    assert as_json(result)["bytes"] == file.stat().st_size
    assert app.read_model(file).digest() == learned.digest()
    assert len(decode_snapshot(file.read_bytes()).blobs["pending.ids"]) == 0
    other = stage(tmp_path / "other", start_from=str(file), model={**SETTINGS["model"], "tau": 0.2})
    other.send(mixed(20, seed=5))
    assert other.run().decisions[0].t == learned.t


@pytest.mark.parametrize(
    "model", [{}, {"preset": "paper", "budget": None}, {"one_class": True}], ids=["plus", "paper", "one_class"]
)
def test_a_model_file_can_be_scored_with_numpy_alone(tmp_path: Path, model: dict[str, Any]) -> None:
    """The documented script gives the scores of the model, up to the last few bits of sine and cosine."""
    made = stage(tmp_path, model={**SETTINGS["model"], **model})
    made.send(mixed(300))
    made.run()
    tool(tmp_path, "inspect", "--partition", "0", "--export", str(tmp_path / "m.npstream"))
    rows = np.random.default_rng(0).normal(size=(50, D)).astype(np.float32)
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", fmt="%.9g")

    script = Path(__file__).with_name("score_model_file.py")
    done = subprocess.run(
        [sys.executable, "-I", str(script), str(tmp_path / "m.npstream"), str(tmp_path / "rows.csv")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    learned: Model = app.read_model(tmp_path / "m.npstream")
    scores, alarms = zip(*(line.split() for line in done.stdout.splitlines()), strict=True)
    assert np.array(scores, float) == pytest.approx(learned.score_many(rows), rel=1e-9, abs=1e-12)
    assert (np.array(alarms, int) == (learned.score_many(rows) > learned.threshold)).all()


@pytest.mark.parametrize("buckets", [(), (0, 64, 8), (16, 0, 4)], ids=["numbers", "one_number", "between"])
def test_the_script_knows_categories_and_missing_numbers(buckets: tuple[int, ...]) -> None:
    """Its scores are those of the model, also where numbers are missing and columns are categories."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2_000, 3))
    x[:, np.flatnonzero(buckets)] = rng.integers(0, 12, (2_000, int(np.count_nonzero(buckets))))
    x[rng.random(x.shape) < 0.2] = np.nan
    model = Model.create(Params(d=3, D=8, tau=0.1, buckets=buckets, seed=4), stream=2)
    model.learn_many(x, np.where(rng.random(2_000) < 0.3, 1, -1))

    scores = score_model_file.score(model.params.to_dict(), model.arrays(), x[:100].astype(np.float32).astype(float))

    assert scores == pytest.approx(model.score_many(x[:100]), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--partition", "0", "--at", "3"], "keeps no checkpoint at offset 3; kept are those at"),
        (["--partition", "9"], "partition 9 does not exist"),
        (["--history"], "say which partition"),
        (["--partition", "0", "--export", "."], "cannot write .: it is a folder"),
        (["--partition", "0", "--export", "/dev/null/m.npstream"], "cannot write /dev/null/m.npstream"),
    ],
)
def test_what_is_not_there_is_reported(made: Stage, tmp_path: Path, arguments: list[str], message: str) -> None:
    """One clear message and exit code 2."""
    result = tool(tmp_path, "inspect", *arguments)

    assert result.exit_code == 2
    assert message in result.stderr


def test_a_group_without_checkpoints_is_reported(tmp_path: Path) -> None:
    """An empty log is not shown as zeros."""
    stage(tmp_path)

    for arguments in ([], ["--partition", "0"]):
        result = tool(tmp_path, "inspect", *arguments)
        assert result.exit_code == 2
        assert "checkpoint" in result.stderr


def test_a_score_from_elsewhere_has_neither_directions_nor_features(tmp_path: Path) -> None:
    """With preset external the gate is shown, and a decision is explained by its score alone."""
    made = stage(tmp_path, model={"preset": "external", "tau": 0.2})
    made.send([client.event(i, score=float(i % 11), target=i % 11 > 8) for i in range(200)])
    made.run()
    card = as_json(tool(tmp_path, "inspect", "--partition", "0", "--json"))
    explained = as_json(tool(tmp_path, "explain", "--partition", "0", "--offset", "150", "--json"))

    assert (card["preset"], card["directions"], card["kernel"]) == ("external", [], None)
    assert (explained["decision"]["score"], explained["features"], explained["published"]) == (7.0, [], True)
    assert "threshold" in tool(tmp_path, "inspect", "--partition", "0").stdout


def test_a_wrong_settings_file_is_named() -> None:
    """The path that cannot be read is in the message."""
    result = run_cli("inspect", "--config", "nowhere.yaml")

    assert result.exit_code == 2
    assert "nowhere.yaml" in result.stderr
