"""What a worker does between the checkpoint it starts from and the offset that is committed."""

import threading
from pathlib import Path

import pytest

from npstream.embedded import EmbeddedLog
from npstream.errors import Fatal
from npstream.observe import Observer
from npstream.records import Channel, Position, Reading
from npstream.worker import Cadence, Limits
from tests.broker import Kafka
from tests.partition.builders import config, mixed
from tests.stage.stage import PowerCut, Stage, on_file
from tests.system import stories

_NEVER = Cadence(10**9, 1e9)


def test_a_worker_killed_while_it_replays_starts_over(kafka: Kafka, tmp_path: Path) -> None:
    """A replay publishes and commits nothing, ends at the committed offset exactly, and on the recorded proof."""
    replays = stories.killed_while_replaying(kafka.bootstrap, tmp_path)

    assert len(replays) == 1
    assert replays[0] >= 100


class StopInReplay(Observer):
    """Asks the worker to stop as soon as it replays."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def replaying(self, reading: Reading) -> None:
        """After each replayed batch."""
        self._stop.set()


def test_a_worker_stopped_while_it_replays_commits_nothing(tmp_path: Path) -> None:
    """A polite stop in the middle of a replay leaves the committed position, its offset and its proof, alone."""
    bench = _crashed(tmp_path / "log.db")
    before = _position(bench)
    stop = threading.Event()
    limits = Limits(batch_max=20, poll_s=0.01)

    bench.worker(config(), stop, StopInReplay(stop), limits, cadence=_NEVER).run()

    assert before.next_offset > 20
    assert _position(bench) == before


def test_a_replay_over_altered_events_stops_the_partition(tmp_path: Path) -> None:
    """Events that are no longer what was decided on are noticed before anything is published."""
    bench = _crashed(tmp_path / "log.db")
    log = EmbeddedLog(bench.path, bench.place.topics)
    victim = next(record for record in log.read(Channel.EVENTS, 0, 0, 100) if b'"y"' in (record.value or b""))
    other = b'{"id":"other","x":[9,9,9],"y":1}'
    log._store._db.execute("UPDATE records SET value = ? WHERE value = ?", (other, victim.value))
    log._store._db.commit()
    log.close()

    with pytest.raises(Fatal, match="replay to offset"):
        bench.decide(config(), cadence=_NEVER)


def _crashed(path: Path) -> Stage:
    """A log whose worker died some transactions after its only snapshot."""
    bench = on_file(path)
    bench.feed(0, mixed(600))
    with pytest.raises(RuntimeError, match="power cut"):
        bench.decide(config(), wrap=lambda broker: PowerCut(broker, 5), cadence=_NEVER)
    return bench


def _position(bench: Stage) -> Position:
    position = bench.positions()[0]
    assert position is not None
    return position
