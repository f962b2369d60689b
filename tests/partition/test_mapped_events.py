"""Mapped events through a worker on an embedded log: the decisions of plain events, through crashes and changes."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from npstream.client import Message
from npstream.errors import SettingsError
from npstream.settings.source import read_yaml
from npstream.testing import RunResult, Stage, run
from tests.codec.streams import enveloped, payments, spaced, under

ROOT = Path(__file__).parents[2]
PAYMENTS = read_yaml(ROOT / "config" / "payments.yaml")["events"]
SMALL: dict[str, Any] = {"topics": {"events": "e"}, "model": {"D": 8, "tau": 0.1}, "worker": {"batch_max": 40}}
NAMES = ("b", "a", "c")


def numbers(count: int, *, mapped: bool) -> list[Message]:
    """The same stream as plain arrays and as somebody's own JSON."""
    rng = np.random.default_rng(3)
    found = []
    for i in range(count):
        target = bool(rng.random() < 0.3)
        x = rng.normal(0.8 * target, 1.0, 3).round(4).tolist()
        document: dict[str, Any] = {"id": i, "x": x, "y": int(target) or -1}
        if mapped:
            document = {"meta": {"n": [1, i]}, "in": dict(zip(NAMES, x, strict=True)), "ok": not target}
        found.append(Message(b"k", spaced(document)))
    return found


def nameless(result: RunResult) -> list[dict[str, Any]]:
    """The decisions without the name of the model."""
    found = [orjson.loads(record.value or b"") for topic, _, record in result.published if topic.endswith("decisions")]
    return [{name: value for name, value in decision.items() if name != "model"} for decision in found]


def test_a_mapping_of_numbers_gives_the_decisions_of_plain_arrays() -> None:
    """But for the name of the model, which has the contract in it."""
    events = {
        "id": "meta.n[1]",
        "label": {"path": "ok", "target": [False], "non_target": [True]},
        "features": {name: {"number": f"in.{name}"} for name in NAMES},
    }
    plain = run({**SMALL, "model": {**SMALL["model"], "d": 3}}, numbers(400, mapped=False))
    mapped = run({**SMALL, "events": events}, numbers(400, mapped=True))

    assert nameless(plain) == nameless(mapped)
    assert {len(decision.model.split(":")) for decision in plain.decisions} == {2}
    assert {len(decision.model.split(":")) for decision in mapped.decisions} == {3}


def test_crashes_leave_no_trace_in_mapped_events() -> None:
    """Every kind of feature, late labels and bad events, plain and in an envelope."""
    for write, section in ((spaced, PAYMENTS), (enveloped, under("payload.after", PAYMENTS))):
        events = [Message(b"k", write(document)) for document in payments(150)]
        calm = run({**SMALL, "events": section}, events)

        assert run({**SMALL, "events": section}, events, crashes=[4, 9, 14, 21]) == calm
        assert {letter.reason for letter in calm.dead_letters} == {"missing_feature", "bad_category"}
        assert len(calm.decisions) > 150 - 10


def test_a_worker_with_another_list_of_features_refuses_the_state(tmp_path: Path) -> None:
    """It says which feature changed and what can be done; the label's rule may change."""
    stage = Stage({**SMALL, "events": PAYMENTS}, tmp_path)
    stage.send([Message(b"k", spaced(document)) for document in payments(50)])
    stage.run()
    changed = {**PAYMENTS, "features": {**PAYMENTS["features"], "amount": {"number": "amount"}}}
    stage.send([Message(b"k", spaced(document)) for document in payments(50)])

    with pytest.raises(SettingsError) as caught:
        stage.run(settings={"events": changed})
    assert "events.features.amount: is now number amount; it was number amount scale log" in str(caught.value)
    assert "npstream promote" in str(caught.value)
    stage.run(settings={"events": {**PAYMENTS, "label": {**PAYMENTS["label"], "target": [True, "Y", "yes"]}}})


TRANSFORM = """
calls = 0


def extract(event):
    if event["amount"] is None:
        raise KeyError("amount")
    return {**event, "amount": event["amount"] * FACTOR}


def counting(event):
    global calls
    calls += 1
    return {**event, "velocity_1h": calls}
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's, importable as long as the test lasts."""
    name = f"extractors_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(TRANSFORM.replace("FACTOR", "2"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


def test_a_function_of_the_users_makes_the_events_that_are_read(module: str) -> None:
    """Decisions are those of the events that it returns; where it fails the event is bad, and the function is named."""
    documents = payments(120)
    doubled = [d if d.get("amount") is None else {**d, "amount": d["amount"] * 2} for d in documents if "amount" in d]
    settings = {**SMALL, "events": PAYMENTS}
    events = [Message(b"k", spaced(document)) for document in documents if "amount" in document]
    with_function = {**SMALL, "events": {**PAYMENTS, "transform": f"{module}:extract"}}
    found = run(with_function, events)

    assert nameless(found) == nameless(run(settings, [Message(b"k", spaced(document)) for document in doubled]))
    assert run(with_function, events, crashes=[5, 9]) == found
    reasons = {(letter.reason, letter.detail) for letter in found.dead_letters if letter.reason != "bad_category"}
    assert reasons == {("transform_failed", f"{module}:extract raised KeyError")}
