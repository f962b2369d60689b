"""What Prometheus sees of `npstream run` on a real broker, and what its rules make of a fault."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.broker import Kafka
from tests.deploy.test_faults import expect, judge
from tests.deploy.tools import promtool
from tests.monitor.builders import Sample, events, sample
from tests.operations.alive import NEVER_S, alive
from tests.stage.command import WorkerCommand
from tests.stage.site import Site

pytestmark = pytest.mark.timeout(600)
SICK_MINUTES, HUNG_MINUTES = 20, 15
"""One scrape each; the rules want a fault to last."""


@pytest.fixture
def two(kafka: Kafka, tmp_path: Path) -> Iterator[Site]:
    """A site of two partitions."""
    made = Site(kafka.bootstrap, tmp_path / "site", partitions=2)
    yield made
    made.close()


def scrape(worker: WorkerCommand) -> dict[Sample, float]:
    """Every sample, without the labels that all share."""
    families = text_string_to_metric_families(worker.get("metrics")[1])
    return {sample(s.name, **s.labels): s.value for family in families for s in family.samples}


def test_a_scrape_pleases_promtool(two: Site) -> None:
    """`promtool check metrics` has nothing to say about a worker that decides, refuses and lags on Kafka."""
    two.feed([*events(300), b"not an event"])
    two.feed(events(100), partition=1)
    worker = two.command().start()
    worker.wait_started()
    worker.wait_for(lambda: worker.events() == 401, "all events to be handled")
    key = sample("npstream_lag_records", partition="0")
    worker.wait_for(lambda: key in scrape(worker), "the lag to be known")

    text = worker.get("metrics")[1]
    done = subprocess.run(
        [promtool(), "check", "metrics"], input=text, capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_rules_fire_on_a_worker_that_hangs(site: Site, tmp_path: Path) -> None:
    """One event in ten is bad, then the loop hangs while events wait: the rule for dead letters fires first."""
    worker = alive(site, "worker", NEVER_S, NEVER_S)
    worker.start().wait_started()
    recording = []
    for minute in range(1, SICK_MINUTES + 1):
        site.feed([*events(18, seed=minute), b"not an event", b"not an event"])
        worker.wait_for(lambda handled=20 * minute: worker.events() == handled, "the events to be handled")  # type: ignore[misc]
        recording.append(scrape(worker))
    worker.hang()
    site.feed(events(30))
    lag = sample("npstream_lag_records", partition="0")
    worker.wait_for(lambda: scrape(worker).get(lag, 0.0) > 0, "the waiting events to be seen")
    recording += [scrape(worker) for _ in range(HUNG_MINUTES)]

    stalled = {"severity": "critical", "partition": "0"}
    judge(
        tmp_path,
        recording,
        [
            expect(SICK_MINUTES - 1, "NpstreamDeadLetters", {"severity": "warning"}),
            expect(SICK_MINUTES - 1, "NpstreamPartitionStalled"),
            expect(SICK_MINUTES + HUNG_MINUTES - 1, "NpstreamPartitionStalled", stalled),
            expect(SICK_MINUTES + HUNG_MINUTES - 1, "NpstreamPartitionUnowned"),
            expect(SICK_MINUTES + HUNG_MINUTES - 1, "NpstreamPartitionPaused"),
        ],
    )


def test_http_is_on_loopback_by_default(site: Site) -> None:
    """Only this machine reaches the worker's pages; nothing listens on its other addresses."""
    worker = site.command().start()
    worker.wait_started()
    port = urlsplit(worker.url).port
    assert port is not None

    assert worker.get("livez")[0] == 200
    assert listening(worker.pid, port) == {"127.0.0.1"}


def listening(pid: int, port: int) -> set[str]:
    """The addresses on which a process's port is open, as the kernel reports."""
    found = set()
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        local, state = line.split()[1], line.split()[3]
        address, local_port = local.split(":")
        if state == "0A" and int(local_port, 16) == port:
            found.add(socket.inet_ntoa(bytes.fromhex(address)[::-1]))
    for line in Path(f"/proc/{pid}/net/tcp6").read_text().splitlines()[1:]:
        local, state = line.split()[1], line.split()[3]
        if state == "0A" and int(local.split(":")[1], 16) == port:
            found.add("an IPv6 address")
    return found
