"""A challenger beside the champion: it is what a partition of its own would be, and takes over where it stands."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import orjson
import pytest

from npstream.codec.decoder import EventConfig
from npstream.codec.features import Feature
from npstream.codec.snapshot import decode_snapshot, encode_snapshot
from npstream.errors import SettingsError, StateCorrupt
from npstream.model import Params, succeeded
from npstream.model.sampling import NEVER
from npstream.model.threshold import BUCKET, NEGATIVES, OUTSTANDING, TRACKED
from npstream.partition import LabelConfig, PartitionConfig, PartitionProcessor
from npstream.partition.config import ChallengerConfig
from npstream.records import Output, Record
from tests.partition.builders import D, config, mixed, overruled, processor, record, split

CORRECTED = LabelConfig(buffer_max=50, expire_events=200, corrections=True)
EXPIRED = LabelConfig(buffer_max=40, expire_events=60, on_expiry="negative")


def features(*paths: str) -> tuple[Feature, ...]:
    """Numbers at these paths; the last may be missing."""
    named = [Feature(name=path.replace("[", "").replace("]", ""), kind="number", path=path) for path in paths]
    return (*named[:-1], replace(named[-1], missing="allow"))


FEWER = EventConfig(d=2, mapping=features("x[0]", "x[2]"))
SAME = EventConfig(d=D)
TIERS = (("block", 0.05), ("review", 0.2))

RIVALS = {
    "larger": ChallengerConfig(params=Params(d=D, D=16, tau=0.2, budget=5.0), events=SAME),
    "paper": ChallengerConfig(params=Params(preset="paper", d=D, D=8, tau=0.1, input="zscore"), events=SAME),
    "fewer": ChallengerConfig(params=Params(d=2, D=8, tau=0.1, budget=5.0), events=FEWER),
    "tiers": ChallengerConfig(params=Params(d=D, D=12, tiers=TIERS, budget=5.0), events=SAME),
    "alarms": ChallengerConfig(params=Params(d=D, D=8, tau=0.1, control="alarm_rate", budget=5.0), events=SAME),
}


def challenged(rival: str = "larger", **changes: object) -> PartitionConfig:
    """The champion of the builders, and one of these challengers."""
    return replace(config(**changes), challenger=RIVALS[rival])


def alone(rival: str, **changes: object) -> PartitionConfig:
    """The challenger as the only model."""
    return challenged(rival, **changes).promoted


def stream(n: int, labels: LabelConfig = EXPIRED) -> list[Record]:
    """A stream of everything that all of them read alike: a mapping knows no kinds, and finds fewer events bad."""
    made = overruled(n) if labels.corrections else mixed(n)
    found = [(item, orjson.loads(item.value or b"")) for item in made if item.value != b"not json"]
    return [item for item, value in found if "kind" not in value and value.get("x") != [1, 2]]


def run(machine: PartitionProcessor, records: Sequence[Record], size: int = 97) -> list[Output]:
    """All outputs, in batches."""
    return [output for part in split(list(records), size) for output in machine.process(part).outputs]


def again(machine: PartitionProcessor) -> PartitionProcessor:
    """As a worker that starts finds it."""
    return PartitionProcessor.from_snapshot(decode_snapshot(encode_snapshot(machine.snapshot())))


def all_of(machine: PartitionProcessor) -> bytes:
    """Everything that the partition knows."""
    return encode_snapshot(machine.snapshot())


@pytest.mark.parametrize("labels", [config().labels, CORRECTED, EXPIRED], ids=["plain", "corrected", "expired"])
@pytest.mark.parametrize("rival", RIVALS)
def test_it_is_what_a_partition_of_its_own_would_be(rival: str, labels: LabelConfig) -> None:
    """The champion decides as without it, and the challenger learns as if it were alone: to the bit, rates included."""
    records = stream(1600, labels)
    both = processor(challenged(rival, labels=labels), partition=3)
    champion, other = processor(config(labels=labels), partition=3), processor(alone(rival, labels=labels), partition=3)
    expected = run(champion, records)
    run(other, records)

    assert run(both, records) == expected
    assert both.challenger is not None
    assert both.model.to_bytes() == champion.model.to_bytes()
    assert both.challenger.model.to_bytes() == other.model.to_bytes()
    assert both.challenger.rates()[3:6] == other.rates()[:3]
    assert all(rate.lifetime.trials for rate in both.challenger.rates()[3:6])


@pytest.mark.parametrize("rival", ["larger", "fewer", "tiers"])
def test_batches_and_restarts_leave_no_trace(rival: str) -> None:
    """Any split, and a restart in between, gives the same state and proof; the proof covers the challenger."""
    records = overruled(1000)
    whole = processor(challenged(rival, labels=CORRECTED))
    run(whole, records, 5000)
    for size in (1, 7, 333):
        machine = processor(challenged(rival, labels=CORRECTED))
        for at, part in enumerate(split(records, size)):
            machine = again(machine) if at % 40 == 2 else machine
            machine.process(part)
        assert all_of(machine) == all_of(whole)
        assert machine.proof() == whole.proof()

    other = processor(challenged("paper", labels=CORRECTED))
    run(other, records)
    assert other.proof() != whole.proof()


def test_it_begins_ends_and_begins_again_without_a_trace_in_decisions() -> None:
    """It may come late, change what a model can take, be another one, and go: the champion never notices."""
    parts = split(mixed(2500), 250)
    plain, machine = processor(), processor()
    rival = RIVALS["larger"]
    gentle = replace(rival, params=replace(rival.params, tau=0.05))
    steps = [None, rival, rival, gentle, gentle, RIVALS["fewer"], RIVALS["fewer"], RIVALS["alarms"], None, None]
    began = []
    for part, challenger in zip(parts, steps, strict=True):
        plain_config, wanted = config(), replace(config(), challenger=challenger)
        if machine.config != wanted:
            machine.reconfigure(wanted)
            machine = again(machine)
        assert machine.process(part).outputs == plain.process(part).outputs
        assert plain.config == plain_config
        began.append(None if machine.challenger is None else machine.challenger.began)

    first, third, fourth = (parts[at - 1][-1].offset + 1 for at in (1, 5, 7))
    assert began == [None, first, first, first, first, third, third, fourth, None, None]
    assert machine.model.to_bytes() == plain.model.to_bytes()
    assert len(machine.pending) == len(plain.pending)


def test_pairs_are_counted_by_hand() -> None:
    """Of every labelled event: who gave an alarm, after the warm-up of both. A corrected label changes sides."""
    records = [record(i, {"id": i, "x": x, "y": y}) for i, (x, y) in enumerate(_labelled(600))]
    both = processor(challenged(labels=CORRECTED))
    champion, other = processor(config(labels=CORRECTED)), processor(alone("larger", labels=CORRECTED))
    counted = {-1: [0, 0, 0, 0], 1: [0, 0, 0, 0]}
    decided = {}
    for item in records:
        both.process([item])
        warm = champion.model.warming_up or other.model.warming_up
        alarms = [orjson.loads(p.process([item]).outputs[0].value or b"")["decision"] > 0 for p in (champion, other)]
        y = orjson.loads(item.value or b"")["y"]
        decided[item.offset] = None if warm else 2 * alarms[0] + alarms[1]
        if not warm:
            counted[y][2 * alarms[0] + alarms[1]] += 1
    assert both.challenger is not None
    assert list(both.challenger.rates().non_targets) == counted[-1]
    assert list(both.challenger.rates().targets) == counted[1]
    last = records[-1]
    y, code = orjson.loads(last.value or b"")["y"], decided[last.offset]
    assert code is not None
    assert sum(counted[1]) > 100
    both.process([record(600, {"id": last.offset, "y": -y})])

    counted[y][code] -= 1
    counted[-y][code] += 1
    assert list(both.challenger.rates().non_targets) == counted[-1]
    assert list(both.challenger.rates().targets) == counted[1]


def _labelled(n: int) -> list[tuple[list[float], int]]:
    rng = np.random.default_rng(5)
    labels = np.where(rng.random(n) < 0.3, 1, -1)
    return [([round(float(v), 4) for v in rng.normal(0.8 if y > 0 else 0.0, 1.0, D)], int(y)) for y in labels]


@pytest.mark.parametrize("rival", RIVALS)
def test_promoted_it_decides_as_one_that_was_alone_until_then(rival: str) -> None:
    """From the promotion on decisions are those of the challenger's model, charged with what the champion published."""
    records = stream(2900)
    before, after = records[:1300], records[1300:]
    machine = processor(challenged(rival))
    champion, other = processor(), processor(alone(rival))
    run(machine, before)
    run(champion, before)
    run(other, before)
    waits = machine.pending.waiting
    expected = _oracle(champion, other)
    machine.promote(machine.config.promoted)
    machine = again(machine)

    assert machine.config == alone(rival)
    assert machine.challenger is None
    assert machine.pending.waiting == waits > 10
    assert machine.model.arrays()["level"][BUCKET] == champion.model.arrays()["level"][BUCKET]
    for column in (NEGATIVES, OUTSTANDING):
        assert machine.model.arrays()["tally"][column] == champion.model.arrays()["tally"][column] > 0
    assert machine.model.arrays()["tally"][TRACKED] == other.model.arrays()["tally"][TRACKED]
    assert machine.tally == champion.tally
    assert run(machine, after) == run(expected, after)
    assert machine.model.to_bytes() == expected.model.to_bytes()


def _oracle(champion: PartitionProcessor, other: PartitionProcessor) -> PartitionProcessor:
    """Two partitions that were processed apart, made one by hand: what was learned, and what was published."""
    other.model = succeeded(champion.model, other.model)
    tiers = len(other.config.params.rates)
    theirs, ours = other.pending.buffer.entries, champion.pending.buffer.entries
    published = dict(zip(map(tuple, ours.key.tolist()), champion.pending.decided.tolist(), strict=True))
    for slot, key in enumerate(map(tuple, theirs.key.tolist())):
        if key != (0, 0):
            found = published[key]
            other.pending.decided[slot] = min(found, tiers) if 0 < found < 9 else found
    other.tally = champion.tally
    other._chain = champion._chain
    return other


def test_what_it_could_not_read_is_released_and_never_learned() -> None:
    """An observation without its features waits on after a promotion, and its label frees the alarm: nothing more."""
    needs = ChallengerConfig(
        params=Params(d=1, D=8, tau=0.1, budget=5.0),
        events=EventConfig(d=1, mapping=(Feature(name="extra", kind="number", path="extra"),)),
    )
    machine = processor(replace(config(), challenger=needs))
    rng = np.random.default_rng(1)
    for i in range(300):
        y = 1 if rng.random() < 0.3 else -1
        machine.process([record(i, {"id": i, "x": rng.normal(y, 1.0, D).tolist(), "extra": float(y), "y": y})])
    machine.process([record(300, {"id": "blind", "x": [9.0, 9.0, 9.0]})])
    machine.process([record(301, {"id": "seen", "x": [9.0, 9.0, 9.0], "extra": 1.0})])
    assert machine.model.outstanding == 2
    machine.promote(machine.config.promoted)
    machine = again(machine)
    learned, charged = machine.model.t, machine.model.negatives
    machine.process([record(302, {"id": "blind", "y": -1})])

    assert (machine.model.t, machine.model.negatives, machine.model.outstanding) == (learned, charged, 1)
    machine.process([record(303, {"id": "seen", "y": -1})])
    assert (machine.model.t, machine.model.negatives, machine.model.outstanding) == (learned + 1, charged + 1, 0)


def test_segments_are_written_again_when_their_columns_change() -> None:
    """What waits survives a challenger with other features, its promotion, and a restart from segments."""
    labels = LabelConfig(buffer_max=5000)
    waiting = [record(i, {"id": i, "x": [i / 1000, 0.5, -i / 1000]}) for i in range(2500)]
    machine = processor(config(labels=labels))
    store: dict[int, bytes] = {}
    machine.process(waiting[:1200])
    machine = _stored(machine, store)
    machine.reconfigure(replace(machine.config, challenger=RIVALS["fewer"]))
    machine = _stored(machine, store)
    machine.process(waiting[1200:])
    machine = _stored(machine, store)
    numbers = set(store)
    machine.promote(machine.config.promoted)
    machine = _stored(machine, store)

    assert machine.pending.waiting == 2500
    assert set(store) > numbers
    x = machine.pending.buffer.x[np.argsort(machine.pending.buffer.parked_at[:2500])]
    assert np.isinf(x[:1200, 0]).all()
    assert np.array_equal(x[1200:2500], np.array([[i / 1000, -i / 1000] for i in range(1200, 2500)], np.float32))


def test_what_another_challenger_has_decided_is_not_its_own() -> None:
    """Segments that were written for one challenger say nothing of the next, which has decided only what came since."""
    first = RIVALS["larger"]
    other = replace(first, params=replace(first.params, seed=5))
    store: dict[int, bytes] = {}
    machine = processor(replace(config(labels=LabelConfig(buffer_max=5000)), challenger=first))
    machine.process([record(i, {"id": i, "x": [i / 1000, 0.5, -i / 1000]}) for i in range(1500)])
    machine = _stored(machine, store)
    machine.reconfigure(replace(machine.config, challenger=other))
    machine.process([record(i, {"id": i, "x": [0.0, 0.5, 0.0]}) for i in range(1500, 1600)])
    machine = _stored(machine, store)
    parked = machine.pending.buffer.parked_at[:1600]

    assert (machine.pending.shadow[:1600][parked <= 1500] == NEVER).all()
    assert (machine.pending.shadow[:1600][parked > 1500] != NEVER).all()


def test_what_another_challenger_has_read_is_not_its_own() -> None:
    """Nor are its columns, though they are as many: what waited before is unread, after a restart as well."""
    first = RIVALS["fewer"]
    other = replace(first, events=EventConfig(d=2, mapping=features("x[0]", "x[1]")))
    store: dict[int, bytes] = {}
    machine = processor(replace(config(labels=LabelConfig(buffer_max=5000)), challenger=first))
    machine.process([record(i, {"id": i, "x": [i / 1000, 0.5, -i / 1000]}) for i in range(1500)])
    machine = _stored(machine, store)
    machine.reconfigure(replace(machine.config, challenger=other))
    machine.process([record(i, {"id": i, "x": [0.0, 0.5, 0.0]}) for i in range(1500, 1600)])
    machine = _stored(machine, store)
    parked = machine.pending.buffer.parked_at[:1600]

    assert np.isinf(machine.pending.buffer.x[:1600, D][parked <= 1500]).all()
    assert (machine.pending.buffer.x[:1600, D + 1][parked > 1500] == 0.5).all()


def _stored(machine: PartitionProcessor, store: dict[int, bytes]) -> PartitionProcessor:
    """Through a checkpoint with segments, of which the last four are kept."""
    snapshot, segments = machine.checkpoint(0, 0, 4)
    for number, value in segments:
        if value is None:
            store.pop(number, None)
        else:
            assert number not in store
            store[number] = value
    found = decode_snapshot(encode_snapshot(snapshot))
    return PartitionProcessor.from_snapshot(replace(found, segments=store))


def test_nothing_else_is_promoted() -> None:
    """Without a challenger, or with other settings than its own, nothing happens; a state that lacks it is bad."""
    with pytest.raises(SettingsError, match="no challenger"):
        processor().promote(config())
    machine = processor(challenged())
    with pytest.raises(SettingsError, match="no challenger"):
        machine.promote(alone("paper"))
    snapshot = machine.snapshot()
    with pytest.raises(StateCorrupt, match="challenger"):
        PartitionProcessor.from_snapshot(replace(snapshot, meta={**snapshot.meta, "challenger": None}))


def test_what_it_decided_of_the_very_first_observation_is_kept() -> None:
    """It was there from the beginning: a restart makes nothing unknown to it."""
    made = processor(challenged())
    made.process([record(0, {"id": "a", "x": [0.1, 0.2, 0.3]})])

    assert all_of(again(made)) == all_of(made)
