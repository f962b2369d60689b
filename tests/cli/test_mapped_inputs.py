"""Tables in the names of an upstream team, by every command that reads files: as the topic of the same events."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from npstream.cli.exits import OK, USAGE
from npstream.records import Channel
from npstream.testing import Stage
from tests.cli.lines import SMALL, npstream, settings_file
from tests.data.payments_table import MAPPED, rows, values, write_csv, write_parquet

_SETTINGS: dict[str, Any] = {"events": MAPPED, "model": {"D": 8, "tau": 0.1}}


def backtest(*arguments: str | Path) -> tuple[str, float]:
    """Digest and detection rate of a run."""
    done = npstream("backtest", *arguments, "--json")
    assert done.code == OK, done.err
    (run,) = json.loads(done.out)
    return run["digest"], run["tpr"]


@pytest.mark.parametrize("delay", ["0", "30"])
def test_a_file_and_a_topic_of_the_same_rows_have_one_digest(delay: str, tmp_path: Path) -> None:
    """CSV, Parquet, a swapped header and what produce made of a file: every decision says the same, byte for byte."""
    table = rows(600)
    Stage({**SMALL, **_SETTINGS}, tmp_path)
    config = settings_file(tmp_path, **_SETTINGS)
    csv, swapped = write_csv(tmp_path / "a.csv", table), write_csv(tmp_path / "b.csv", table, sorted(table[0]))
    arrow = write_parquet(tmp_path / "a.parquet", table)

    sent = npstream("produce", arrow, "--config", config, "--delay", delay)
    assert sent.code == OK, sent.err
    topic = backtest("--config", config)

    assert [backtest(path, "--config", config, "--delay", delay) for path in (csv, swapped, arrow)] == [topic] * 3
    assert topic[1] > 0.5


def test_events_of_another_sender_have_it_too(tmp_path: Path) -> None:
    """Whoever wrote the events: nested JSON with members that nothing asks for is the rows of the table."""
    table = rows(300)
    stage = Stage({**SMALL, **_SETTINGS}, tmp_path)
    config = settings_file(tmp_path, **_SETTINGS)
    with closing(stage.log()) as log:
        log.append(Channel.EVENTS, 0, [(None, value, (), 1000) for value in values(table)])
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(values(table)))

    found = {
        backtest(path, "--config", config) for path in (write_csv(tmp_path / "a.csv", table), tmp_path / "a.jsonl")
    }

    assert found == {backtest("--config", config)}


@pytest.mark.parametrize("command", ["backtest", "train", "tune", "produce"])
def test_every_command_reads_a_mapped_table(command: str, tmp_path: Path) -> None:
    """It says what it took; without a feature's column it names that."""
    table = rows(200)
    Stage({**SMALL, **_SETTINGS}, tmp_path)
    config = settings_file(tmp_path, **_SETTINGS)
    out: dict[str, list[str | Path]] = {
        "train": ["--out", tmp_path / "model.npstream"],
        "tune": ["--out", tmp_path / "best.yaml", "--trials", "1", "--jobs", "1", "--preset", "plus"],
    }
    names = [name for name in table[0] if name != "merchant_mcc"]

    done = npstream(command, write_csv(tmp_path / "a.csv", table), "--config", config, *out.get(command, []))
    refused = npstream(command, write_csv(tmp_path / "b.csv", table, names), "--config", config, *out.get(command, []))

    assert done.code == OK, done.err
    assert "a.csv: features amount, velocity_1h, card.country, merchant_mcc, auth.three_ds, created_at;" in done.err
    assert refused.code == USAGE
    assert "b.csv: no column merchant_mcc (feature mcc)" in refused.err


def test_a_model_trained_on_a_file_starts_a_worker(tmp_path: Path) -> None:
    """What was learned from a table is for the topic of the same features."""
    table = rows(300)
    stage = Stage({**SMALL, **_SETTINGS}, tmp_path)
    config = settings_file(tmp_path, **_SETTINGS)
    model = tmp_path / "model.npstream"
    trained = npstream("train", write_csv(tmp_path / "a.csv", table), "--config", config, "--out", model)
    assert trained.code == OK, trained.err
    assert npstream("produce", tmp_path / "a.csv", "--config", config).code == OK

    found = stage.run(settings={"start_from": str(model)})

    assert len(found.decisions) == 300
    assert not any(decision.reason == "warmup" for decision in found.decisions)
