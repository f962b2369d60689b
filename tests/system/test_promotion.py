"""A challenger that is promoted while everything is killed: before, in and after the promotion."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import yaml

from npstream.cli import exits
from npstream.codec.decoder import EventConfig
from npstream.codec.features import Feature
from npstream.model import Params
from npstream.partition.config import ChallengerConfig
from tests.broker import Kafka
from tests.stage import patience
from tests.stage.child import ROOT, WAIT_S
from tests.stage.site import Site
from tests.system import verdict
from tests.system.stream import stream, system_config

MODEL = {"D": 24, "tau": 0.2, "seed": 7}
FEATURES = {"first": {"number": "x[0]"}, "last": {"number": "x[3]", "missing": "allow"}}
CHALLENGER = ChallengerConfig(
    params=Params.from_dict({"d": 2, **MODEL}),
    events=EventConfig(
        d=2,
        mapping=(
            Feature(name="first", kind="number", path="x[0]"),
            Feature(name="last", kind="number", path="x[3]", missing="allow"),
        ),
        key=7,
    ),
)


def test_a_promotion_counts_from_the_offset_it_is_recorded_at(kafka: Kafka, tmp_path: Path) -> None:
    """
    Worker killed, promotion killed before it is committed and right after it, worker killed again: decisions
    equal an oracle that promotes at the recorded offset, audit reproduces them, and old settings are refused.
    """
    site = Site(kafka.bootstrap, tmp_path, partitions=2, config=system_config(challenger=CHALLENGER))
    promoted = site.config.promoted
    worker = site.worker("w0", batch_max=50, every_events=300)
    try:
        events = [stream(2000, 3, partition) for partition in range(2)]
        for partition, own in enumerate(events):
            site.append(partition, own[:1500])
        worker.start("after_commit:40:kill")
        assert worker.wait_dead() == -signal.SIGKILL, worker.tail()
        before = site.offsets()
        assert _promote(site, "before_commit:1:kill").returncode == -signal.SIGKILL
        assert verdict.changes(site) == {p: [(0, site.config)] for p in range(2)}
        assert _promote(site, "after_commit:1:kill").returncode == -signal.SIGKILL
        again = _promote(site)
        assert (again.returncode, "nothing to do" in again.stdout) == (exits.OK, True), again
        changes = verdict.changes(site)
        assert changes == {p: [(0, site.config), (before[p], promoted)] for p in range(2)}
        worker.start()
        assert worker.wait_dead() == exits.SETTINGS
        assert "npstream promote" in worker.lines("ended")[-1]["cause"]

        worker.start("after_commit:5:kill", replace(worker.spec, config=promoted))
        assert worker.wait_dead() == -signal.SIGKILL, worker.tail()
        for partition, own in enumerate(events):
            site.append(partition, own[1500:])
        worker.start(spec=replace(worker.spec, config=promoted))
        site.wait_decided()

        assert all(0 < before[p] <= 1500 for p in range(2)), before
        assert verdict.compare(site, changes) > 0
        assert verdict.audit(site) > 0
        assert verdict.pauses(site) == []
        assert verdict.changes(site) == changes
    finally:
        site.close()


def _promote(site: Site, failpoint: str = "") -> subprocess.CompletedProcess[str]:
    """`npstream promote --execute` with the challenger's settings in the place of the model's, in an empty group."""
    patience.wait_until(lambda: not site.members(), "the group to forget who was killed", WAIT_S)
    path = site.folder / "promoted.yaml"
    path.write_text(yaml.safe_dump({**site.settings("tool"), "model": MODEL, "events": {"features": FEATURES}}))
    command = [sys.executable, "-m", "npstream", "promote", "--config", str(path), "--execute"]
    environment = {**os.environ, "NPSTREAM_FAILPOINTS": failpoint}
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=2 * WAIT_S, check=False, env=environment
    )
