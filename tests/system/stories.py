"""Short stories with one fault each, with workers on a real broker. A mutant must not survive the one it is for.

Every story ends by comparing what was published with the oracle; `Different`
says that something was lost, doubled or altered.
"""

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tests.broker import Cluster
from tests.stage import patience
from tests.stage.process import WorkerProcess
from tests.stage.site import Site
from tests.system import verdict
from tests.system.feed import Feed
from tests.system.stream import interleaved, stream

_READ_S = 2.0
_SESSION_MS = 45_000
"""As by default. When a coordinator is away for longer than a session, a static member's second request to join may
overtake its first, and the brokers then take it for a twin of its own: the worker ends, for its supervisor to start."""
"""A worker that does not wait for an undecided transaction has read its place long before."""


def zombie(bootstrap: str, folder: Path, point: str, mutant: str | None = None) -> None:
    """A worker is stopped inside a transaction until another gets its partition, and then goes on.

    Two workers share two partitions. The first is stopped for longer than its
    session, and shorter than its transaction, then wakes up and tries to finish
    what it had begun.
    """
    site = Site(bootstrap, folder, partitions=2, mutant=mutant)
    sleeper, heir = site.worker("sleeper", batch_max=50), site.worker("heir", batch_max=50)
    try:
        sleeper.start(f"{point}:4:stop")
        heir.start()
        patience.wait_until(lambda: _shared([sleeper, heir], 2), "each worker to have one partition")
        partition = sleeper.owned().pop()
        before = _restores(heir, partition)
        site.append(partition, stream(600, 1, partition))
        patience.wait_until(lambda: sleeper.stopped, f"the stop at {point}")
        _inherit(heir, partition, before)
        sleeper.send(signal.SIGCONT)
        patience.wait_until(lambda: _has_decided(sleeper), "the sleeper to notice")
        site.append(partition, stream(900, 1, partition)[600:])
        site.wait_decided()
        verdict.compare(site)
        assert verdict.pauses(site) == []
    finally:
        site.close()


def _shared(workers: list[WorkerProcess], partitions: int) -> bool:
    """Whether each worker has something and nobody has the same."""
    owned = [worker.owned() for worker in workers]
    return all(owned) and set.union(*owned) == set(range(partitions)) and sum(map(len, owned)) == partitions


def _inherit(heir: WorkerProcess, partition: int, before: int) -> None:
    """Wait until the heir restores the partition: finished with it, or waiting for what the sleeper left open."""
    heir.wait_for(lambda: _restores(heir, partition) > before, "the heir to take it")
    with suppress(TimeoutError):
        heir.wait_for(lambda: partition in heir.owned(), "the partition", _READ_S)


def _restores(worker: WorkerProcess, partition: int) -> int:
    return sum(line["partition"] == partition for line in worker.lines("restoring"))


def _has_decided(sleeper: WorkerProcess) -> bool:
    return not sleeper.running or bool(sleeper.lines("lost") or sleeper.lines("session restart"))


def killed_while_replaying(bootstrap: str, folder: Path, mutant: str | None = None) -> list[int]:
    """A worker is killed after some transactions, killed again while it replays them, and then left alone.

    Its last life reads in large batches, so that the first reaches beyond the
    committed offset. Returns the lengths of the replays that ended on their proof.
    """
    site = Site(bootstrap, folder, partitions=1, mutant=mutant)
    worker = site.worker("w0", batch_max=50, every_events=10**9)
    try:
        site.append(0, stream(1000, 2, 0))
        for failpoint in ("after_commit:9:kill", "replay:3:kill"):
            worker.start(failpoint)
            assert worker.wait_dead() == -signal.SIGKILL, worker.tail()
        worker.start(spec=site.spec("w0", batch_max=5000, every_events=10**9))
        worker.wait_for(lambda: bool(worker.lines("live")), "the end of the replay")
        site.append(0, stream(1100, 2, 0)[1000:])
        site.wait_decided()
        verdict.compare(site)
        assert verdict.pauses(site) == []
        return verdict.replays(site)
    finally:
        site.close()


def outage(cluster: Cluster, folder: Path, away_s: float) -> int:
    """All brokers are killed in the middle of work and stay away; nobody restarts the workers.

    Returns how many records equal the oracle's.
    """

    def break_off(workers: list[WorkerProcess]) -> None:
        cluster.kill()
        time.sleep(away_s)  # the outage is the fault
        assert all(worker.running for worker in workers)
        cluster.start()

    return _through(cluster, folder, break_off)


def broker_restarts(cluster: Cluster, folder: Path, kills: Sequence[bool]) -> int:
    """Brokers go away and come back one after another, as in a rolling upgrade; nobody restarts the workers.

    `kills` says of each in turn whether it dies by kill -9, or stops in order.
    Returns how many records equal the oracle's.
    """

    def one_after_another(workers: list[WorkerProcess]) -> None:
        for index, kill in enumerate(kills):
            cluster.restart(index, kill=kill)

    return _through(cluster, folder, one_after_another, session_timeout_ms=_SESSION_MS)


def _through(cluster: Cluster, folder: Path, fault: Callable[[list[WorkerProcess]], None], **limits: int) -> int:
    """Two workers in the middle of work when something happens to the brokers, and to the end of it."""
    site = Site(cluster.bootstrap, folder, partitions=2, replication=cluster.size)
    workers = [site.worker("a", **limits), site.worker("b", **limits)]
    feed = Feed(cluster.bootstrap, site.topics.events, interleaved([stream(2500, 6, p) for p in range(2)]), 200)
    feed.allow(0.5)  # the rest only drips until the brokers are back
    try:
        for worker in workers:
            worker.start()
        patience.wait_until(lambda: _shared(workers, 2), "each worker to have one partition")
        pids = [worker.pid for worker in workers]
        feed.start()
        patience.wait_until(lambda: feed.fraction > 0.3, "events under way")
        fault(workers)
        feed.finish()
        feed.join(120)
        assert not feed.failures, feed.failures[0]
        site.wait_decided()
        equal = verdict.compare(site)
        assert verdict.pauses(site) == []
        assert [worker.pid for worker in workers] == pids
        return equal
    finally:
        site.close()
