"""Reasons of alarms: what explaining finds, the same in any batching, and nothing else changes."""

from dataclasses import replace

import orjson
import pytest

from npstream.codec.decisions import Contribution, Decision, decode_decision
from npstream.codec.decoder import EventConfig, EventDecoder
from npstream.codec.features import Feature
from npstream.codec.snapshot import decode_snapshot, encode_snapshot
from npstream.model import Params
from npstream.partition import PartitionConfig, PartitionProcessor
from npstream.records import Channel, Output, Record
from tests.partition.builders import D, config, mixed, processor, record, split

MAPPED = (
    Feature(name="amount", kind="number", path="a", scale="log", missing="allow"),
    Feature(name="country", kind="category", path="c", buckets=16),
    Feature(name="hour", kind="time", path="t", cycle="day"),
)


def decided(outputs: list[Output]) -> list[Decision]:
    """The decisions among outputs."""
    return [decode_decision(output.value) for output in outputs if output.channel == Channel.DECISIONS]


def payments(n: int) -> tuple[PartitionConfig, list[Record]]:
    """Mapped events: fraud comes from one country, at night and with large amounts; some miss the amount."""
    values = []
    for i in range(n):
        fraud = i % 5 == 2
        amount = None if i % 11 == 0 else (900.0 if fraud else 20.0) + i % 7
        country = ("RU" if i % 3 else "DE") if fraud else ("DE", "FR", "IT")[i % 3]
        hour = 3 if fraud else 8 + i % 10
        values.append(
            {"id": i, "a": amount, "c": country, "t": f"2026-01-01T{hour:02d}:00:00Z", "y": 1 if fraud else -1}
        )
    params = Params(d=4, D=8, tau=0.05, buckets=(0, 16, 0, 0), control="alarm_rate")
    return config(params=params, events=EventConfig(d=4, mapping=MAPPED)), [
        record(i, value) for i, value in enumerate(values)
    ]


def explained(using: PartitionConfig, records: list[Record]) -> list[list[Contribution]]:
    """What moved each decided event's score, by asking the model just before it decides, the farthest first."""
    machine, decoder = processor(using), EventDecoder(using.events)
    found = []
    for each in records:
        moved = machine.model.contributions(decoder.decode([each]).x[0]).contribution.tolist()
        parts = [Contribution(*part) for part in zip(using.feature_names, moved, strict=True)]
        if decided(machine.process([each]).outputs):
            found.append(sorted(parts, key=lambda part: -abs(part.contribution)))
    return found


@pytest.mark.parametrize("mapped", [False, True], ids=["plain", "mapped"])
def test_reasons_are_what_moved_the_score_most_by_explain(mapped: bool) -> None:
    """Those of each alarm, to the bit and with the names of the mapping; nothing else has reasons."""
    using, records = payments(1_500) if mapped else (config(), mixed(1_500))
    found = decided(processor(replace(using, reasons=2)).process(records).outputs)
    expected = explained(using, records)
    alarms = [at for at, decision in enumerate(found) if decision.decision == 1]

    assert len(alarms) > 30
    assert [found[at].reasons for at in alarms] == [tuple(expected[at][:2]) for at in alarms]
    assert {decision.reasons for decision in found if decision.decision == -1} == {()}
    assert all(decision.reasons for at, decision in enumerate(found) if at in alarms)
    names = {part.feature for decision in found for part in decision.reasons}
    assert names <= ({"amount", "country", "hour.sin", "hour.cos"} if mapped else {f"x[{i}]" for i in range(D)})


@pytest.mark.parametrize("control", ["fpr", "alarm_rate"])
def test_nothing_but_the_reasons_is_different(control: str) -> None:
    """Decisions without their reasons, and what is learned, are those of a partition that gives none."""
    params = Params.from_dict({"d": D, "D": 8, "tau": 0.1, "budget": 5.0, "control": control})
    plain, reasoned = processor(config(params=params)), processor(config(params=params, reasons=D + 5))
    expected, found = (decided(machine.process(mixed(2_000)).outputs) for machine in (plain, reasoned))

    assert [replace(decision, reasons=()) for decision in found] == expected
    assert max(len(decision.reasons) for decision in found) == D
    assert reasoned.model.digest() == plain.model.digest()


def test_batches_and_a_restart_leave_no_trace() -> None:
    """Any split, and a snapshot in between, gives the same bytes."""
    using = config(reasons=2)
    whole, cut = processor(using), processor(using)
    expected = whole.process(mixed(2_000)).outputs
    found: list[Output] = []
    for at, part in enumerate(split(mixed(2_000), 37)):
        if at % 20 == 7:
            cut = PartitionProcessor.from_snapshot(decode_snapshot(encode_snapshot(cut.snapshot())))
        found += cut.process(part).outputs

    assert found == expected
    assert cut.proof() == whole.proof()


def test_they_are_asked_for_at_a_checkpoint() -> None:
    """From the change on, alarms have them, and after the next one no more."""
    machine = processor(config())
    found = []
    for part, reasons in zip(split(mixed(1_500), 500), (0, 1, 0), strict=True):
        machine.reconfigure(config(reasons=reasons))
        found.append({len(decision.reasons) for decision in decided(machine.process(part).outputs)})

    assert found == [{0}, {0, 1}, {0}]


def test_an_alarm_without_a_model_has_none() -> None:
    """A bad event that is decided all the same, and a score that came from elsewhere."""
    asked = processor(config(on_bad_event="1", reasons=2))
    (bad,) = decided(asked.process([record(0, {"id": "a", "x": [1, 2], "y": 1})]).outputs)
    external = config(params=Params(preset="external", d=0, tau=0.5), events=EventConfig(d=0, external=True), reasons=2)
    values = [record(i, orjson.dumps({"id": i, "score": i % 9, "y": -1})) for i in range(500)]
    scored = decided(processor(external).process(values).outputs)

    assert (bad.decision, bad.reasons) == (1, ())
    assert {(decision.decision, decision.reasons) for decision in scored} == {(1, ()), (-1, ())}
