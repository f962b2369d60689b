"""Settings that change between two lives of a worker, one of which was cut short."""

import signal
from dataclasses import replace
from pathlib import Path

from npstream.cli import exits
from npstream.codec.decoder import EventConfig
from npstream.partition import PartitionConfig
from tests.broker import Kafka
from tests.system.scene import Scene
from tests.system.stream import D, stream, system_config


def test_a_change_counts_from_the_offset_it_is_recorded_at(kafka: Kafka, tmp_path: Path) -> None:
    """
    Killed, started with another tau, killed in the change and right after it,
    started frozen: decisions equal an oracle that changes at the recorded offsets.
    """
    scene = Scene(kafka.bootstrap, tmp_path, partitions=2)
    tau = _with(scene.config, tau=0.3)
    frozen = _with(scene.config, tau=0.3, learning=False)
    worker = scene.worker("w0", batch_max=50, every_events=10**9)
    try:
        events = [stream(2000, 3, partition) for partition in range(2)]
        for partition, own in enumerate(events):
            scene.append(partition, own[:1500])
        before = _killed_at(scene, "after_commit:9:kill", scene.config)
        _killed_at(scene, "before_commit:1:kill", tau)
        _killed_at(scene, "after_commit:1:kill", tau)
        changed = _killed_when_all_changed(scene, tau)
        for partition, own in enumerate(events):
            scene.append(partition, own[1500:])
        worker.start(spec=replace(worker.spec, config=frozen))
        scene.wait_decided()
        changes = scene.changes()

        assert scene.compare(changes) > 0
        assert scene.pauses() == []
        for partition in range(2):
            reported = [(0, scene.config), (before[partition], tau), (changed[partition], frozen)]
            assert changes[partition] == reported
    finally:
        scene.close()


def _with(config: PartitionConfig, **params: object) -> PartitionConfig:
    return config.with_params(replace(config.params, **params))  # type: ignore[arg-type]


def _killed_at(scene: Scene, failpoint: str, config: PartitionConfig) -> dict[int, int]:
    """One life of the only worker up to its death; returns what was committed then."""
    (worker,) = scene.workers
    worker.start(failpoint, replace(worker.spec, config=config))
    assert worker.wait_dead() == -signal.SIGKILL, worker.tail()
    return scene.offsets()


def _killed_when_all_changed(scene: Scene, config: PartitionConfig) -> dict[int, int]:
    """One life up to a moment in which these settings count for each partition; returns what was committed then.

    A partition takes them up when its replay ends, and the broker may serve another one first.
    """
    (worker,) = scene.workers
    worker.start(spec=replace(worker.spec, config=config))
    worker.wait_for(
        lambda: all(reported[-1][1] == config for reported in scene.changes().values()), "the change everywhere"
    )
    worker.kill()
    return scene.offsets()


def test_another_number_of_features_is_refused_with_the_ways_out(kafka: Kafka, tmp_path: Path) -> None:
    """The worker exits with the code for settings, says how to go on, and leaves everything as it was."""
    scene = Scene(kafka.bootstrap, tmp_path, partitions=1)
    worker = scene.worker("w0")
    try:
        scene.append(0, stream(300, 4, 0))
        worker.start()
        scene.wait_decided()
        assert worker.terminate() == exits.OK
        wider = system_config(params=replace(scene.config.params, d=D + 1), events=EventConfig(d=D + 1))
        worker.start(spec=replace(worker.spec, config=wider))

        assert worker.wait_dead() == exits.SETTINGS
        assert "new consumer group" in worker.lines("ended")[-1]["cause"]
        assert scene.compare() > 0
    finally:
        scene.close()
