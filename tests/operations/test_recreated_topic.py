"""An events topic that is deleted and created again under its name: noticed, and nothing of the new one is skipped."""

import orjson
import pytest
from confluent_kafka.admin import AdminClient

from npstream.cli import exits
from npstream.codec.envelope import OFFSET_HEADER
from npstream.records import Channel
from tests.broker import create_topics
from tests.contracts.builders import eventually
from tests.monitor.builders import events
from tests.stage.command import WorkerCommand, npstream
from tests.stage.site import Site

pytestmark = pytest.mark.timeout(600)

OLD, NEW = 500, 900
SAID = "the events topic was deleted and created again"


def recreate(site: Site) -> None:
    """Delete the events topic and create it again, with more events than it had."""
    admin = AdminClient({"bootstrap.servers": site.bootstrap})
    for deleted in admin.delete_topics([site.topics.events], operation_timeout=30).values():
        deleted.result(timeout=60)
    eventually(lambda: site.topics.events not in admin.list_topics(timeout=10).topics)
    create_topics(site.bootstrap, {site.topics.events: 1}, {"retention.ms": "-1"})
    site.feed(events(NEW, seed=1))


def decided_offsets(site: Site) -> list[int]:
    """The events that decisions were published for, in order."""
    found = site.log.read(Channel.DECISIONS, 0, 0, 2**40)
    return [int(content or b"") for record in found for name, content in record.headers if name == OFFSET_HEADER]


def decide_old(site: Site) -> WorkerCommand:
    """A worker that has decided all of the old topic."""
    site.feed(events(OLD))
    worker = site.command().start()
    worker.wait_started()
    worker.wait_for(lambda: worker.events() == OLD, "the old events to be handled")
    eventually(lambda: len(decided_offsets(site)) == OLD)
    return worker


def go_on(site: Site, worker: WorkerCommand, *options: str) -> None:
    """Take the step that the message names, then let a worker decide the new topic."""
    before = len(decided_offsets(site))
    step = npstream("reset", "--config", str(worker.config), "--partition", "0", "--to", "earliest", *options)
    assert step.returncode == exits.OK, step.stderr
    worker.start()
    eventually(lambda: decided_offsets(site)[before:] == list(range(NEW)))
    assert worker.terminate() == exits.OK, worker.said()


def gone(site: Site, worker: WorkerCommand) -> None:
    """Wait until the brokers have forgotten the worker, which keeps its place for a session."""
    eventually(
        lambda: (
            "active members"
            not in npstream("rollback", "--config", str(worker.config), "--to", "0", "--execute").stderr
        )
    )


@pytest.mark.parametrize("options", [("--keep-model", "--execute"), ("--execute",)], ids=["kept", "fresh"])
def test_a_stopped_worker_refuses_the_new_topic_and_every_tool_names_the_way_on(
    site: Site, options: tuple[str, ...]
) -> None:
    """Worker, doctor and recover say the same; after that step all new events are decided."""
    worker = decide_old(site)
    assert worker.terminate() == exits.OK, worker.said()
    recreate(site)

    worker.start()
    code = worker.wait()
    doctor = npstream("doctor", "--config", str(worker.config), "--json")
    recover = npstream("recover", "--config", str(worker.config))

    assert code != exits.OK
    assert SAID in worker.lines("partition paused")[-1]["reason"]
    assert any(SAID in finding["problem"] for finding in orjson.loads(doctor.stdout)["findings"]), doctor.stdout
    assert (recover.returncode, SAID in recover.stderr) == (exits.STATE, True), recover.stderr
    gone(site, worker)
    go_on(site, worker, *options)


def test_a_running_worker_notices_and_stops_deciding(site: Site) -> None:
    """Whatever it decided by old offsets in the meantime, the step that it names decides all new events."""
    worker = decide_old(site)

    recreate(site)
    code = worker.wait()
    if "does not exist" in worker.said():  # it looked between deletion and creation
        code = worker.start().wait()

    assert code != exits.OK
    assert SAID in worker.lines("partition paused")[-1]["reason"], worker.said()
    gone(site, worker)
    go_on(site, worker, "--keep-model", "--execute")
    audit = npstream("audit", "--config", str(worker.config))
    assert audit.returncode == exits.OK, audit.stdout + audit.stderr
