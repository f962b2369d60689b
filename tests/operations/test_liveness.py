"""Liveness: green while the loop turns, whatever brokers and groups do; red when it hangs, and then the end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from npstream.cli import exits
from tests.broker import JarKafka
from tests.monitor.builders import events
from tests.operations.alive import NEVER_S, alive, held
from tests.operations.probes import Probe
from tests.stage.command import WorkerCommand
from tests.stage.site import Site

pytestmark = pytest.mark.timeout(900)
AWAY_S = 25.0
"""The outage. Liveness is set to turn red when the loop does not turn for as long."""


@pytest.fixture
def private_site(private_kafka: JarKafka, tmp_path: Path) -> Iterator[Site]:
    """Two partitions on a broker that the test may kill."""
    made = Site(private_kafka.bootstrap, tmp_path / "site", partitions=2)
    yield made
    made.close()


@pytest.mark.slow
def test_liveness_is_green_through_rebalances_and_an_outage(private_kafka: JarKafka, private_site: Site) -> None:
    """Workers come and go, the broker is away for longer than the limit; every probe gets 200."""
    host, guest = alive(private_site, "host", AWAY_S, NEVER_S), alive(private_site, "guest", AWAY_S, NEVER_S)
    host.start().wait_started()
    with Probe(lambda: host.get("livez")) as probe:
        host.wait_for(lambda: partitions(host) == 2, "the host to own both")
        guest.start().wait_started()
        host.wait_for(lambda: (partitions(host), partitions(guest)) == (1, 1), "the guest to own one")
        assert guest.terminate() == exits.OK, guest.said()
        host.wait_for(lambda: partitions(host) == 2, "the host to own both again")
        during_rebalances = len(probe.responses)
        private_kafka.kill()
        probes = len(probe.responses) + int(AWAY_S / 0.25)
        host.wait_for(lambda: len(probe.responses) > probes, "the outage to last")
        private_kafka.start()
        private_site.feed(events(50), partition=0)
        private_site.feed(events(50), partition=1)
        host.wait_for(lambda: host.events() == 100, "the host to go on after the outage")

    assert during_rebalances > 0
    assert probe.reds() == []
    assert host.terminate() == exits.OK, host.said()


def partitions(worker: WorkerCommand) -> int:
    """How many partitions it owns and has restored."""
    return sum(partition["phase"] == "live" for partition in worker.status()["partitions"])


def test_a_hanging_loop_turns_liveness_red_and_ends_the_worker(site: Site) -> None:
    """While HTTP still works /livez says since when; then the watchdog writes every stack and ends with its code."""
    worker = alive(site, "worker", 2.0, 20.0)
    worker.start().wait_started()
    site.feed(events(50))
    worker.wait_for(lambda: worker.events() == 50, "the events to be handled")
    before = worker.get("livez")

    worker.hang()
    worker.wait_for(lambda: worker.get("livez")[0] == 503, "liveness to turn red")
    red = worker.get("livez")
    code = worker.wait()

    assert before == (200, "alive\n")
    assert red[1].startswith("the loop has not turned for ")
    assert code == exits.STUCK, worker.said()
    assert worker.lines("loop stuck")[0]["exit_code"] == exits.STUCK
    assert "in a_call_that_never_returns" in worker.err.read_text()


def test_a_slow_start_is_neither_red_nor_ended(site: Site) -> None:
    """A start that takes longer than a turn may take later is let alone, and the worker then works."""
    # Long enough for the first turn on a busy machine: one that took longer would rightly be ended.
    worker = held(site, "worker", NEVER_S, max_age_s=15.0, stuck_s=20.0)
    worker.start().wait_started()
    with Probe(lambda: worker.get("livez")) as probe:
        worker.wait_for(lambda: worker.status()["loop_age_s"] > 21.0, "the start to outlast every other limit")
        starting = worker.get("startz")
    worker.go_on()
    worker.wait_for(lambda: worker.get("startz")[0] == 200, "the loop to turn")
    site.feed(events(50))
    worker.wait_for(lambda: worker.events() == 50, "the events to be handled")

    assert starting[0] == 503
    assert probe.responses
    assert probe.reds() == []
    assert worker.terminate() == exits.OK, worker.said()


def test_a_start_that_never_ends_ends_the_worker(site: Site) -> None:
    """Ten minutes in life, seconds here: then the watchdog ends the process with its code."""
    worker = held(site, "worker", 12.0, max_age_s=1.0, stuck_s=1.0)
    worker.start().wait_started()
    green = worker.get("livez")
    code = worker.wait()

    assert green == (200, "alive\n")
    assert code == exits.STUCK, worker.said()
