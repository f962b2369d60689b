"""`--workers-are-gone`: a group's positions are moved at once, and a worker that is not gone comes to no harm."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from npstream.cli import exits
from npstream.records import Channel
from tests.broker import Kafka
from tests.monitor.builders import events
from tests.stage.child import WAIT_S
from tests.stage.command import WorkerCommand, npstream
from tests.stage.site import Site

pytestmark = pytest.mark.timeout(600)

SESSION_MS = 280_000
"""A dead static member is forgotten after this: longer than any command here may take."""


@pytest.fixture
def long_site(kafka: Kafka, tmp_path: Path) -> Iterator[Site]:
    """Two partitions."""
    made = Site(kafka.bootstrap, tmp_path / "site", partitions=2)
    yield made
    made.close()


def static(site: Site, worker_name: str, **sections: Any) -> WorkerCommand:
    """A worker whose place in the group outlives it by a long time."""
    section = {**site.settings(worker_name)["kafka"], "session_timeout_ms": SESSION_MS}
    return site.command(worker_name, kafka=section, **sections)


def rollback(worker: WorkerCommand, *flags: str) -> tuple[int, str, str]:
    """Every partition back to its beginning; exit code and what was said."""
    done = npstream("rollback", "--config", str(worker.config), "--to", "0", "--execute", "--json", *flags)
    return done.returncode, done.stdout, done.stderr


def owned(worker: WorkerCommand) -> int:
    """How many partitions it has, none before it has said where its page is."""
    return len(worker.status()["partitions"]) if worker.lines("starting") else 0


def decided(site: Site) -> list[int]:
    """Decisions of each partition."""
    return [sum(1 for _ in site.log.read(Channel.DECISIONS, p, 0, 2**40)) for p in range(site.partitions)]


def holds(worker: WorkerCommand) -> bool:
    """What `npstream audit` says."""
    done = npstream("audit", "--config", str(worker.config), "--json")
    assert done.stdout, done.stderr
    return bool(json.loads(done.stdout)["holds"])


def test_positions_are_moved_at_once_when_the_workers_were_killed(long_site: Site) -> None:
    """Without the flag the dead members are in the way and the flag is named; with it they are not."""
    workers = [static(long_site, worker_name).start() for worker_name in ("first", "second")]
    for partition in range(2):
        long_site.feed(events(300, seed=partition), partition)
    workers[0].wait_for(lambda: decided(long_site) == [300, 300], "everything to be decided")
    workers[0].wait_for(lambda: [owned(worker) for worker in workers] == [1, 1], "each to own one")
    for worker in workers:
        worker.kill()

    refused = rollback(workers[0])
    moved = rollback(workers[0], "--workers-are-gone")
    assert moved[0] == exits.OK, moved
    for worker in workers:
        worker.start()
    workers[0].wait_for(lambda: decided(long_site) == [600, 600], "everything to be decided again")

    assert refused[0] == exits.USAGE
    assert "--workers-are-gone" in refused[2]
    assert [move["to"] for move in json.loads(moved[1])["partitions"]] == [0, 0]
    assert [worker.terminate() for worker in workers] == [exits.OK, exits.OK]
    assert holds(workers[0])


def test_a_worker_that_is_not_gone_is_not_corrupted(long_site: Site) -> None:
    """The tool moves positions or refuses; the worker has lost its place by then and decides nothing from old state."""
    worker = static(long_site, "worker", worker={"batch_max": 20}).start()
    for partition in range(2):
        long_site.feed(events(20_000, seed=partition), partition)
    worker.wait_for(lambda: min(decided(long_site)) > 100, "the worker to be busy")

    code, _, said = rollback(worker, "--workers-are-gone")
    if not worker.running:
        worker.start()
    long_site.feed(events(10), 0)
    long_site.feed(events(10), 1)
    worker.wait_for(lambda: at_the_end(worker), "everything to be decided", 2 * WAIT_S)

    assert code in (exits.OK, exits.USAGE), said
    assert worker.terminate() == exits.OK, worker.said()
    assert holds(worker)


def at_the_end(worker: WorkerCommand) -> bool:
    """Whether nothing is left to decide."""
    found = json.loads(npstream("lag", "--config", str(worker.config), "--json").stdout)
    return bool(found["records"] == 0)
