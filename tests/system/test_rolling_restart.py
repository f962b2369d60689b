"""A rolling deploy: every worker stopped and started again, one after another."""

from pathlib import Path

from tests.broker import Kafka
from tests.stage import patience
from tests.stage.process import WorkerProcess
from tests.stage.site import Site
from tests.system import verdict
from tests.system.feed import Feed
from tests.system.stream import interleaved, stream

PARTITIONS = 4


def test_a_rolling_restart_replays_nothing_and_moves_no_partition(kafka: Kafka, tmp_path: Path) -> None:
    """With static membership each worker comes back to its own partitions, at the event where it had stopped."""
    site = Site(kafka.bootstrap, tmp_path, PARTITIONS)
    workers = [site.worker(f"w{i}", session_timeout_ms=60_000) for i in range(3)]
    feed = Feed(kafka.bootstrap, site.topics.events, interleaved([stream(3000, 5, p) for p in range(PARTITIONS)]), 200)
    try:
        for worker in workers:
            worker.start()
        patience.wait_until(lambda: _shared(workers), "the partitions to be shared")
        owned = [worker.owned() for worker in workers]
        moves = [_moves(worker) for worker in workers]
        feed.allow(1.0)
        feed.start()
        for index, worker in enumerate(workers):
            patience.wait_until(lambda done=0.2 * (index + 1): feed.fraction > done, "events under way")  # type: ignore[misc]
            assert worker.terminate() == 0
            worker.start()
            worker.wait_for(lambda me=worker, own=owned[index]: me.owned() == own, "its partitions")  # type: ignore[misc]
        feed.finish()
        feed.join(60)
        site.wait_decided()

        assert verdict.compare(site) > 0
        assert verdict.replays(site) == []
        assert [worker.owned() for worker in workers] == owned
        # Each has let go of its own partitions once, when it was stopped, and was given them back.
        assert [_moves(worker) for worker in workers] == [
            before + len(own) + 1 for before, own in zip(moves, owned, strict=True)
        ]
    finally:
        site.close()


def _shared(workers: list[WorkerProcess]) -> bool:
    owned = [worker.owned() for worker in workers]
    return sorted(map(len, owned)) == [1, 1, 2] and set.union(*owned) == set(range(PARTITIONS))


def _moves(worker: WorkerProcess) -> int:
    """How often ownership has changed, by what the worker says."""
    return sum(line["event"] in ("assigned", "revoked", "lost") for line in worker.logged())
