"""The worker on an embedded log: whatever fails, the decisions are those of an undisturbed run."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from npstream.codec.changes import decode_change
from npstream.codec.chunks import ChangeKey, ChunkKey, join, parse_key, split
from npstream.codec.snapshot import decode_snapshot, encode_snapshot
from npstream.embedded import EmbeddedLog
from npstream.errors import Fatal, SettingsError
from npstream.model import Model, Params
from npstream.partition import PartitionProcessor
from npstream.records import Channel, KeyValue, Record
from npstream.testing import MortalBroker
from npstream.worker import Cadence
from tests.partition.builders import config, labelled, mixed, processor, record
from tests.stage.stage import Plan, PowerCut, Published, Stage, on_file


def oracle(records: list[Record]) -> Published:
    """What one undisturbed processor publishes for these events at offsets 0, 1, 2, ..."""
    placed = [item._replace(offset=offset) for offset, item in enumerate(records)]
    outputs = processor().process(placed).outputs
    return [
        (output.key, output.value, tuple(output.headers), output.timestamp_ms)
        for output in outputs
        if output.channel == Channel.DECISIONS
    ]


def decisions(bench: Stage, partition: int = 0) -> Published:
    """What the worker published, headers as a tuple."""
    return [
        (key, value, tuple(headers), ts) for key, value, headers, ts in bench.published(Channel.DECISIONS, partition)
    ]


def test_an_undisturbed_run_publishes_what_the_processor_says(tmp_path: Path) -> None:
    """Each event is decided once, in order, with key, value, headers and timestamp of the pure run."""
    records = mixed(600)
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, records)
    bench.decide(config())

    assert decisions(bench) == oracle(records)


def disturbed(path: Path, fail_at: Sequence[int]) -> int:
    """Run with failures at these calls, compare with the undisturbed run, and return how many were met."""
    records = mixed(600)
    bench = on_file(path)
    bench.feed(0, records)
    plan = Plan(fail_at)
    seen = bench.decide(config(), wrap=lambda broker: MortalBroker(broker, plan.step))

    assert decisions(bench) == oracle(records), fail_at
    assert seen.restarts == sum(n <= plan.calls for n in fail_at), fail_at
    return seen.restarts


def test_a_failure_at_any_call_leaves_no_trace(tmp_path: Path) -> None:
    """Whichever broker call fails, before or after it took effect, the decisions are the undisturbed ones."""
    calls = next(n for n in count(1) if disturbed(tmp_path / f"{n}.db", [n]) == 0) - 1

    assert calls > 10  # joins, reads its state, polls for each batch, and twice for each commit


@pytest.mark.parametrize("fail_at", [[5, 9, 13, 21], [2, 3, 4, 5, 6]], ids=str)
def test_failures_again_and_again_leave_no_trace(tmp_path: Path, fail_at: list[int]) -> None:
    """A session that fails while it recovers from a failure is one more of them."""
    assert disturbed(tmp_path / "log.db", fail_at) == len(fail_at)


def test_a_graceful_stop_leaves_nothing_to_replay(tmp_path: Path) -> None:
    """The last checkpoint of a stopped worker is at its last event."""
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, mixed(300))
    bench.decide(config())
    bench.feed(0, mixed(50, seed=9))
    seen = bench.decide(config())

    assert seen.replays == []
    assert decisions(bench) == oracle([*mixed(300), *mixed(50, seed=9)])


def test_a_crash_is_replayed_to_the_recorded_proof(tmp_path: Path) -> None:
    """After a crash the events since the snapshot are replayed in silence before anything is published."""
    records = mixed(600)
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, records)
    plan = Plan([22])
    seen = bench.decide(config(), wrap=lambda broker: MortalBroker(broker, plan.step), cadence=Cadence(10**9, 1e9))

    assert len(seen.replays) == 1
    assert seen.replays[0] > 0
    assert decisions(bench) == oracle(records)


def test_settings_change_at_a_checkpoint_and_leave_a_record(tmp_path: Path) -> None:
    """A new tau counts from the first event after the restart, also when the run before it crashed."""
    records = labelled(400)
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, records[:200])
    with pytest.raises(RuntimeError, match="power cut"):
        bench.decide(config(), wrap=lambda broker: PowerCut(broker, 2), cadence=Cadence(10**9, 1e9))
    at = _committed(bench)
    bench.feed(0, records[200:])
    changed = config(params=replace(config().params, tau=0.3))
    bench.decide(changed)

    expected = PartitionProcessor.cold(config(), "g", "events", 0, 0, None)
    outputs = list(expected.process(records[:at]).outputs)
    expected.reconfigure(changed)
    outputs += expected.process(records[at:]).outputs
    assert [value for _, value, _, _ in decisions(bench)] == [output.value for output in outputs]
    assert _changes(bench) == [(at, 0.1, 0.3)]


def _committed(bench: Stage) -> int:
    return len(bench.published(Channel.DECISIONS))


def _changes(bench: Stage) -> list[tuple[int, float, float]]:
    log = EmbeddedLog(bench.path, bench.place.topics)
    records = [KeyValue(r.offset, r.key or b"", r.value) for r in log.read(Channel.CHECKPOINTS, 0, 0, 10**9)]
    log.close()
    changes = [decode_change(item) for item in records if isinstance(parse_key(item.key), ChangeKey)]
    changes = [change for change in changes if not change.is_birth]
    return [(change.offset, change.old["params"]["tau"], change.new["params"]["tau"]) for change in changes]


def test_a_change_that_cannot_be_made_is_refused_with_the_ways_out(tmp_path: Path) -> None:
    """Another D ends the worker with a message, and the state stays as it was."""
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, labelled(20))
    bench.decide(config())
    bench.feed(0, labelled(5, seed=1))

    with pytest.raises(SettingsError, match="npstream promote"):
        bench.decide(config(params=Params(d=3, D=16, tau=0.1, budget=5.0)))
    bench.decide(config())
    assert decisions(bench) == oracle([*labelled(20), *labelled(5, seed=1)])


def test_a_frozen_model_decides_and_does_not_learn(tmp_path: Path) -> None:
    """With learning off the weights stay what they were when it was switched off."""
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, labelled(100))
    bench.decide(config())
    bench.feed(0, labelled(100, seed=1))
    bench.decide(config(params=replace(config().params, learning=False)))

    values = [value or b"" for _, value, _, _ in decisions(bench)]
    assert len(values) == 200
    assert all(b'"t":100,' in value for value in values[100:])


def test_too_many_dead_letters_pause_one_partition_and_the_others_go_on(tmp_path: Path) -> None:
    """The partition with the rubbish is paused at the event; its neighbour decides to the end."""
    bench = on_file(tmp_path / "log.db", partitions=2)
    bench.feed(0, [record(i, b"rubbish") for i in range(20)])
    bench.feed(1, labelled(100))
    seen = bench.decide(config(dead_letter_cap=0.005))

    assert "dead_letter_cap" in seen.pauses[0]
    assert len(bench.published(Channel.DEAD_LETTERS, 0)) == 5
    assert len(bench.published(Channel.DECISIONS, 1)) == 100


def test_a_worker_with_nothing_but_paused_partitions_gives_up(tmp_path: Path) -> None:
    """When no partition is left to work on the worker ends with the reason."""
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, [record(i, b"rubbish") for i in range(20)])

    with pytest.raises(Fatal, match="dead_letter_cap"):
        bench.decide(config(dead_letter_cap=0.005))


def test_a_damaged_snapshot_falls_back_to_an_older_one(tmp_path: Path) -> None:
    """When the newest snapshot cannot be read, an older kept one and a longer replay give the same state."""
    records = mixed(600)
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, records)
    bench.decide(config())
    _damage_newest_snapshot(bench)
    bench.feed(0, mixed(50, seed=3))
    seen = bench.decide(config())

    assert seen.replays[0] > 0
    assert decisions(bench) == oracle([*records, *mixed(50, seed=3)])


def test_a_snapshot_with_other_weights_is_not_taken_for_the_committed_one(tmp_path: Path) -> None:
    """Whole, in its place, with the right offset and the counters of the real one: its content is another."""
    records = mixed(600)
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, records)
    bench.decide(config())
    _change_newest_snapshot(bench, _with_other_weights)
    bench.feed(0, mixed(50, seed=3))
    seen = bench.decide(config())

    assert seen.replays[0] > 0
    assert decisions(bench) == oracle([*records, *mixed(50, seed=3)])


def _with_other_weights(chunk: KeyValue) -> bytes:
    key = parse_key(chunk.key)
    assert isinstance(key, ChunkKey)
    snapshot = decode_snapshot(join([chunk]))
    model = snapshot.blobs["model"]
    forged = replace(snapshot, blobs={**snapshot.blobs, "model": model[:-8] + bytes(8)})
    assert forged != snapshot
    return split(encode_snapshot(forged), *key[:4])[0][1]


def _damage_newest_snapshot(bench: Stage) -> None:
    def flipped(chunk: KeyValue) -> bytes:
        assert chunk.value is not None
        return chunk.value[:-9] + bytes([chunk.value[-9] ^ 1]) + chunk.value[-8:]

    _change_newest_snapshot(bench, flipped)


def _change_newest_snapshot(bench: Stage, change: Callable[[KeyValue], bytes]) -> None:
    log = EmbeddedLog(bench.path, bench.place.topics)
    records = [r for r in log.read(Channel.CHECKPOINTS, 0, 0, 10**9) if r.key and b"/change/" not in r.key]
    newest = records[-1]
    changed = change(KeyValue(newest.offset, newest.key or b"", newest.value))
    log._store._db.execute(
        "UPDATE records SET value = ? WHERE offset = ? AND value = ?", (changed, newest.offset, newest.value)
    )
    log._store._db.commit()
    log.close()


def test_lost_group_offsets_are_not_taken_for_a_first_start(tmp_path: Path) -> None:
    """Decisions without a committed offset stop the partition and name the way to recover."""
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, labelled(20))
    bench.decide(config())
    log = EmbeddedLog(bench.path, bench.place.topics)
    log._store._db.execute("DELETE FROM positions")
    log._store._db.commit()
    log.close()

    with pytest.raises(Fatal, match="npstream recover"):
        bench.decide(config())


def test_a_seed_model_gives_every_new_partition_its_first_state(tmp_path: Path) -> None:
    """With a seed the first decision comes from what the seed has learned."""
    seed = Model.create(config().params, stream=99)
    seed.learn_many([[0.1, 0.2, 0.3]] * 50, [-1] * 50)
    bench = on_file(tmp_path / "log.db", partitions=2)
    for partition in range(2):
        bench.feed(partition, labelled(5))
    bench.decide(config(), origin=lambda origin: replace(origin, seed=lambda: seed))

    assert all(b'"t":50,' in (bench.published(Channel.DECISIONS, p)[0][1] or b"") for p in range(2))


def test_latest_starts_at_the_end_and_stays_there_over_a_crash(tmp_path: Path) -> None:
    """The starting point is committed before the first event, so a restart does not move it."""
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, labelled(20))
    plan = Plan([7])
    seen = bench.decide(
        config(),
        wrap=lambda broker: MortalBroker(broker, plan.step),
        origin=lambda origin: replace(origin, start="latest"),
    )
    bench.feed(0, labelled(10, seed=4))
    bench.decide(config(), origin=lambda origin: replace(origin, start="latest"))

    assert seen.pauses == {}
    assert len(bench.published(Channel.DECISIONS)) == 10
