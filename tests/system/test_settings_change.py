"""Settings that change between two lives of a worker, one of which was cut short."""

import signal
from dataclasses import replace
from pathlib import Path

from npstream.cli import exits
from npstream.codec.decoder import EventConfig
from npstream.partition import PartitionConfig
from tests.broker import Kafka
from tests.stage.site import Site
from tests.system import verdict
from tests.system.stream import D, stream, system_config


def test_a_change_counts_from_the_offset_it_is_recorded_at(kafka: Kafka, tmp_path: Path) -> None:
    """
    Killed, started with another tau, killed in the change and right after it,
    started frozen: decisions equal an oracle that changes at the recorded offsets.
    """
    site = Site(kafka.bootstrap, tmp_path, partitions=2)
    tau = _with(site.config, tau=0.3)
    frozen = _with(site.config, tau=0.3, learning=False)
    worker = site.worker("w0", batch_max=50, every_events=10**9)
    try:
        events = [stream(2000, 3, partition) for partition in range(2)]
        for partition, own in enumerate(events):
            site.append(partition, own[:1500])
        before = _killed_at(site, "after_commit:9:kill", site.config)
        _killed_at(site, "before_commit:1:kill", tau)
        _killed_at(site, "after_commit:1:kill", tau)
        changed = _killed_when_all_changed(site, tau)
        for partition, own in enumerate(events):
            site.append(partition, own[1500:])
        worker.start(spec=replace(worker.spec, config=frozen))
        site.wait_decided()
        changes = verdict.changes(site)

        assert verdict.compare(site, changes) > 0
        assert verdict.pauses(site) == []
        for partition in range(2):
            reported = [(0, site.config), (before[partition], tau), (changed[partition], frozen)]
            assert changes[partition] == reported
    finally:
        site.close()


def _with(config: PartitionConfig, **params: object) -> PartitionConfig:
    return config.with_params(replace(config.params, **params))  # type: ignore[arg-type]


def _killed_at(site: Site, failpoint: str, config: PartitionConfig) -> dict[int, int]:
    """One life of the only worker up to its death; returns what was committed then."""
    (worker,) = site.workers
    worker.start(failpoint, replace(worker.spec, config=config))
    assert worker.wait_dead() == -signal.SIGKILL, worker.tail()
    return site.offsets()


def _killed_when_all_changed(site: Site, config: PartitionConfig) -> dict[int, int]:
    """One life up to a moment in which these settings count for each partition; returns what was committed then.

    A partition takes them up when its replay ends, and the broker may serve another one first.
    """
    (worker,) = site.workers
    worker.start(spec=replace(worker.spec, config=config))
    worker.wait_for(
        lambda: all(reported[-1][1] == config for reported in verdict.changes(site).values()), "the change everywhere"
    )
    worker.kill()
    return site.offsets()


def test_another_number_of_features_is_refused_with_the_ways_out(kafka: Kafka, tmp_path: Path) -> None:
    """The worker exits with the code for settings, says how to go on, and leaves everything as it was."""
    site = Site(kafka.bootstrap, tmp_path, partitions=1)
    worker = site.worker("w0")
    try:
        site.append(0, stream(300, 4, 0))
        worker.start()
        site.wait_decided()
        assert worker.terminate() == exits.OK
        wider = system_config(params=replace(site.config.params, d=D + 1), events=EventConfig(d=D + 1))
        worker.start(spec=replace(worker.spec, config=wider))

        assert worker.wait_dead() == exits.SETTINGS
        assert "npstream promote" in worker.lines("ended")[-1]["cause"]
        assert verdict.compare(site) > 0
    finally:
        site.close()
