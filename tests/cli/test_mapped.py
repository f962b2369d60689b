"""Mapped events on the command line: `map`, `check --events`, `doctor` and `explain` name columns and paths."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from npstream.cli.exits import FAILED, OK, SETTINGS
from npstream.client import Message
from tests.cli.lines import npstream, settings_file
from tests.codec.streams import payments, spaced
from tests.history.stages import as_json, stage, tool

EVENTS = yaml.safe_load((Path(__file__).parents[2] / "config" / "payments.yaml").read_text())["events"]


CODE = """
seen = []


def pure(event):
    return event


def impure(event):
    seen.append(event)
    return {**event, "amount": len(seen)}
"""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """Payments as a file of lines."""
    path = tmp_path / "payments.jsonl"
    path.write_bytes(b"".join(spaced(document) + b"\n" for document in payments(30)))
    return path


def settings(folder: Path, **events: Any) -> Path:
    """Settings of the example on an embedded log."""
    return settings_file(folder, events={**EVENTS, **events}, model={"D": 8, "tau": 0.1}, topics={"events": "payments"})


def test_check_shows_columns_and_how_an_event_is_read(tmp_path: Path, sample: Path) -> None:
    """Columns with cells and contract, what of a sample is bad and why, and the first event column by column."""
    done = npstream("check", "--config", settings(tmp_path), "--events", sample)

    assert done.code == OK, done.err
    for words in (
        "# 8 columns, feature contract ",
        "mcc           category merchant_mcc buckets 256 (256 cells)",
        "missing_feature, event ",
        "bad_category, event ",
        "event 0 is read so: id 'p-0', label ",
        "hour.cos      created_at     '2026-05-01T00:15:00Z' -> 0.997859",
    ):
        assert words in done.out
    found = json.loads(npstream("check", "--config", settings(tmp_path), "--events", sample, "--json").out)
    assert found["columns"][:2] == ["amount", "velocity"]
    assert found["sample"][0].startswith("payments.jsonl: ")


def test_check_runs_a_function_twice(tmp_path: Path, sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is not pure is refused as a setting; one that is passes."""
    name = f"made_for_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))

    pure = npstream("check", "--config", settings(tmp_path, transform=f"{name}:pure"), "--events", sample)
    impure = npstream("check", "--config", settings(tmp_path, transform=f"{name}:impure"), "--events", sample)
    missing = npstream("check", "--config", settings(tmp_path, transform=f"{name}:none"))

    assert pure.code == OK, pure.err
    assert (impure.code, missing.code) == (SETTINGS, SETTINGS)
    assert f"events.transform: {name}:impure is not pure" in impure.err
    assert f"{name} has no function none" in missing.err


def test_map_writes_what_check_accepts(tmp_path: Path, sample: Path) -> None:
    """From a file, and from a topic."""
    guessed = npstream("map", sample)
    assert guessed.code == OK, guessed.err
    config = settings_file(tmp_path, **yaml.safe_load(guessed.out), model={"D": 8, "tau": 0.1})
    checked = npstream("check", "--config", config, "--events", sample)
    assert checked.code == OK, checked.err
    assert npstream("init", "--config", config).code == OK
    assert npstream("produce", sample, "--config", config).code == OK
    from_topic = npstream("map", "--config", config)

    assert yaml.safe_load(from_topic.out) == yaml.safe_load(guessed.out)
    assert npstream("map").code != OK


def test_doctor_and_explain_name_columns(tmp_path: Path, sample: Path) -> None:
    """The doctor shows how the newest event is read; an explanation has the columns of the mapping."""
    made = stage(tmp_path, events=EVENTS, model={"D": 8, "tau": 0.1})
    made.send([Message(b"k", line) for line in sample.read_bytes().splitlines()])
    made.run()
    doctor, explained = (
        tool(tmp_path, "doctor"),
        tool(tmp_path, "explain", "--partition", "0", "--offset", "0", "--json"),
    )

    assert doctor.exit_code in (OK, FAILED)
    assert "is read so: id 'p-29'" in doctor.stdout
    assert "card.country" in doctor.stdout
    assert {part["feature"] for part in as_json(explained)["features"]} == {
        "amount", "velocity", "device_score", "country", "mcc", "three_ds", "hour.sin", "hour.cos",
    }  # fmt: skip
