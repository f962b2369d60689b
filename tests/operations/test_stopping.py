"""SIGTERM: a worker that is asked to stop saves everything and leaves nothing to replay."""

import pytest

from npstream.cli import exits
from npstream.records import Channel
from npstream.settings.sections import WorkerSection
from tests.monitor.builders import events
from tests.stage.site import Site

pytestmark = pytest.mark.timeout(600)

MANY = 40_000
DRAIN_S = WorkerSection().drain_seconds
GRACE_S = 60.0
"""What an orchestrator would wait before it kills; longer than the drain, as the settings advise."""


def test_a_busy_worker_that_is_asked_to_stop_leaves_nothing_to_replay(site: Site) -> None:
    """Exit code 0 within the grace period, a checkpoint at the committed offsets, and a next life without replay."""
    site.feed(events(MANY))
    never = {"every_events": 10 * MANY, "every_seconds": 3600}
    worker = site.command(worker={"batch_max": 20}, checkpoint=never).start()
    worker.wait_started()
    worker.wait_for(lambda: worker.events() > 200, "the worker to be busy")

    code = worker.terminate(GRACE_S)
    committed, saved = site.saved()
    worker.start()
    worker.wait_for(lambda: len(worker.lines("assigned")) == 2, "the next life to restore")
    worker.wait_for(lambda: worker.events() > committed, "the next life to go on")
    again = worker.terminate(GRACE_S)

    assert DRAIN_S < GRACE_S
    assert (code, again) == (exits.OK, exits.OK), worker.said()
    assert 200 < committed < MANY, "it was not busy when it was stopped"
    assert saved == committed
    assert [(line["checkpoint"], line["committed"]) for line in worker.lines("assigned")][1] == (committed, committed)
    assert [line["replayed"] for line in worker.lines("live")] == [0] * len(worker.lines("live"))
    decided = sum(1 for _ in site.log.read(Channel.DECISIONS, 0, 0, 2**40))
    assert decided == site.saved()[0]


def test_a_worker_that_is_killed_has_to_replay(site: Site) -> None:
    """Without the courtesy the checkpoint stays behind the offsets: what the test above sees is the work of SIGTERM."""
    site.feed(events(2000))
    never = {"every_events": 10 * MANY, "every_seconds": 3600}
    worker = site.command(worker={"batch_max": 20}, checkpoint=never).start()
    worker.wait_started()
    worker.wait_for(lambda: worker.events() > 200, "the worker to be busy")
    worker.kill()

    committed, saved = site.saved()

    assert saved == 0
    assert committed > 200
