"""A labels topic that is deleted and created again under its name: noticed, and nothing of the new one is skipped."""

import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from confluent_kafka.admin import AdminClient

from npstream.cli import exits
from npstream.codec.envelope import LABELS_HEADER
from npstream.records import Channel
from tests.broker import Kafka, create_topics
from tests.contracts.builders import eventually
from tests.stage.command import WorkerCommand, npstream
from tests.stage.site import Site
from tests.system.stream import labelled_apart

pytestmark = pytest.mark.timeout(600)

EVENTS, OLD, NEW = 400, 150, 300
SAID = "the labels topic was deleted and created again"


@pytest.fixture
def site(kafka: Kafka, tmp_path: Path) -> Iterator[Site]:
    """One partition with a labels topic of its own."""
    made = Site(kafka.bootstrap, tmp_path / "site", config=labelled_apart())
    yield made
    made.close()


def observe(site: Site, first: int, count: int) -> None:
    """Observations that wait for their labels."""
    site.feed([orjson.dumps({"id": f"e{i}", "x": [i % 7 / 7, i % 5 / 5]}) for i in range(first, first + count)])


def label(site: Site, first: int, count: int) -> None:
    """Labels of so many observations."""
    at_ms = int(time.time() * 1000)
    values = [orjson.dumps({"id": f"e{i}", "y": int(i % 7 > 4)}) for i in range(first, first + count)]
    site.append(0, [(None, value, (), at_ms) for value in values], Channel.LABELS)


def recreate(site: Site) -> None:
    """Delete the labels topic and create it again, with more labels than it had."""
    assert site.topics.labels is not None
    admin = AdminClient({"bootstrap.servers": site.bootstrap})
    for deleted in admin.delete_topics([site.topics.labels], operation_timeout=30).values():
        deleted.result(timeout=60)
    eventually(lambda: site.topics.labels not in admin.list_topics(timeout=10).topics)
    create_topics(site.bootstrap, {site.topics.labels: 1}, {"retention.ms": "-1"})
    label(site, EVENTS // 2, NEW)


def marks(site: Site) -> list[int]:
    """The label offset that each decision names."""
    found = site.log.read(Channel.DECISIONS, 0, 0, 2**40)
    return [int(dict(record.headers)[LABELS_HEADER] or b"") for record in found]


def learn_old(site: Site) -> WorkerCommand:
    """A worker that has learned all labels of the old topic."""
    observe(site, 0, EVENTS // 2)
    worker = site.command().start()
    worker.wait_started()
    eventually(lambda: len(marks(site)) == EVENTS // 2)
    label(site, 0, OLD)
    wait_learned(site, EVENTS // 2, OLD)
    return worker


def wait_learned(site: Site, first: int, labels: int) -> None:
    """Send observations, with which labels are learned, until a decision knows of so many labels."""
    sent = [first]

    def learned() -> bool:
        observe(site, sent[0], 1)
        sent[0] += 1
        eventually(lambda: len(marks(site)) == site.ends()[0])
        return marks(site)[-1] == labels

    eventually(learned)


def go_on(site: Site, worker: WorkerCommand) -> int:
    """Take the step that the message names, then let a worker learn the new topic; returns the committed offset."""
    position = site.positions()[0]
    assert position is not None
    place = ("--config", str(worker.config), "--partition", "0", "--to", str(position.next_offset))
    steps = []

    def taken() -> bool:
        """The brokers know the worker, which keeps its place, until its session is over."""
        steps.append(npstream("reset", *place, "--keep-model", "--execute"))
        return "active members" not in steps[-1].stderr

    eventually(taken)
    assert steps[-1].returncode == exits.OK, steps[-1].stderr
    worker.start()
    wait_learned(site, site.ends()[0], NEW)
    assert worker.terminate() == exits.OK, worker.said()
    return position.next_offset


def test_a_stopped_worker_refuses_the_new_topic_and_every_tool_names_the_way_on(site: Site) -> None:
    """Worker and doctor say the same, audit says what it cannot cover; after that step all new labels are learned."""
    worker = learn_old(site)
    assert worker.terminate() == exits.OK, worker.said()
    recreate(site)

    worker.start()
    code = worker.wait()
    doctor = npstream("doctor", "--config", str(worker.config), "--json")
    audit = npstream("audit", "--config", str(worker.config))
    merged_at = str(marks(site).index(OLD))
    explain = npstream("explain", "--config", str(worker.config), "--partition", "0", "--offset", merged_at)

    assert code != exits.OK
    assert SAID in worker.lines("partition paused")[-1]["reason"]
    assert any(SAID in finding["problem"] for finding in orjson.loads(doctor.stdout)["findings"]), doctor.stdout
    assert "not covered" in audit.stdout, audit.stdout + audit.stderr
    assert SAID in audit.stdout
    assert (explain.returncode, SAID in explain.stderr) == (exits.USAGE, True), explain.stderr
    begin = go_on(site, worker)
    audit = npstream("audit", "--config", str(worker.config), "--from", str(begin))
    assert audit.returncode == exits.OK, audit.stdout + audit.stderr


def test_a_running_worker_notices_and_stops_deciding(site: Site) -> None:
    """Whatever it learned by old offsets in the meantime, the step that it names goes on with all new labels."""
    worker = learn_old(site)

    recreate(site)
    code = worker.wait()
    if "does not exist" in worker.said():  # it looked between deletion and creation
        code = worker.start().wait()

    assert code != exits.OK
    assert SAID in worker.lines("partition paused")[-1]["reason"], worker.said()
    begin = go_on(site, worker)
    audit = npstream("audit", "--config", str(worker.config), "--from", str(begin))
    assert audit.returncode == exits.OK, audit.stdout + audit.stderr
