"""The HTTP side of a running worker."""

import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from npstream.errors import Fatal
from npstream.monitor.boundary import boundary
from npstream.monitor.dashboard import Dashboard, HttpConfig
from npstream.partition import PartitionProcessor
from npstream.port import Broker, FinishCommit, Listener
from npstream.records import Batch, LabelsWanted, Pointer, Record, Share
from npstream.secrets import Secrets
from tests.monitor.builders import IDENTITY, config, events, handled
from tests.monitor.test_status import Clock
from tests.stage.command import get
from tests.stage.watched import Watched

PATHS = ("", "startz", "livez", "readyz", "metrics", "status")


class Gate:
    """Passes everything on to a broker whose polls can be held."""

    def __init__(self, broker: Broker, opened: threading.Event) -> None:
        self._broker = broker
        self._opened = opened
        self.state = broker.state

    def subscribe(self, listener: Listener) -> None:
        self._broker.subscribe(listener)

    def poll(self, max_records: int, timeout_s: float) -> list[Batch]:
        self._opened.wait(30)
        return self._broker.poll(max_records, timeout_s)

    def commit(self, shares: Sequence[Share]) -> dict[int, Pointer]:
        return self._broker.commit(shares)

    def start_commit(self, shares: Sequence[Share]) -> FinishCommit:
        return self._broker.start_commit(shares)

    def read_labels(self, wanted: Sequence[LabelsWanted]) -> dict[int, Sequence[Record]]:
        return self._broker.read_labels(wanted)

    def close(self, timeout_s: float) -> None:
        self._broker.close(timeout_s)

    def abandon(self) -> None:
        self._broker.abandon()


def dashboard(port: int = 0) -> Dashboard:
    """A dashboard without a worker."""
    return Dashboard(HttpConfig("127.0.0.1", port), IDENTITY, time.monotonic, time.time)


Ask = Callable[[str], tuple[int, str]]
T = TypeVar("T")


def while_serving(shown: Dashboard, look: Callable[[Ask], T]) -> T:
    """What `look` finds while the dashboard serves."""
    shown.start()
    try:
        return look(lambda path: get(shown.url + path))
    finally:
        shown.stop()


def test_everything_responds_while_the_worker_runs(tmp_path: Path) -> None:
    """Probes are green, the page, the metrics and the status are there."""
    with Watched(tmp_path / "log", 2) as stage:
        stage.send(events(10))
        stage.wait_for(lambda status: handled(10, 0)(status) and status["ready"])
        responses = {path: stage.get(path) for path in PATHS}
        wrong = stage.get("nothing")

    assert {path: status for path, (status, _) in responses.items()} == dict.fromkeys(PATHS, 200)
    assert responses["livez"][1] == "alive\n"
    assert responses["readyz"][1] == "ready\n"
    assert responses[""][1].startswith("<!doctype html>")
    assert wrong == (404, "nothing here; there is / /startz /livez /readyz /metrics /status /history /boundary\n")


@pytest.mark.slow
def test_status_has_the_whole_story_of_a_partition(tmp_path: Path) -> None:
    """Position, lag, rates with intervals, threshold, budget and counters are in it, as plain JSON."""
    with Watched(tmp_path / "log") as stage:
        stage.send([*events(500), b"rubbish"])
        stage.wait_for(handled(501))
        # The log's end is asked for every few seconds, and may have been seen last before it was fed.
        partition = stage.wait_for(lambda status: status["partitions"][0]["end_offset"] == 501)["partitions"][0]

    assert (partition["phase"], partition["next_offset"], partition["lag_records"]) == ("live", 501, 0)
    assert (partition["dead_letters"], partition["learned"], partition["tau"]) == (1, 500, 0.1)
    for rate in ("fpr", "tpr"):
        window = partition[rate]["window"]
        assert window["lower"] <= window["value"] == window["hits"] / window["of"] <= window["upper"]
    of = {span: sum(partition[rate][span]["of"] for rate in ("fpr", "tpr")) for span in ("window", "lifetime")}
    assert 0 < of["window"] == of["lifetime"] < 500  # without the warm-up
    assert 0 < partition["budget_left"] <= 40
    assert partition["restore_s"] >= 0


@pytest.mark.slow
def test_a_hanging_loop_turns_liveness_red_and_nothing_else(tmp_path: Path) -> None:
    """/livez looks at the loop alone: red while a poll hangs, green when it goes on; readiness does not care."""
    opened = threading.Event()
    opened.set()
    stage = Watched(
        tmp_path / "log", http=HttpConfig("127.0.0.1", 0, max_age_s=2.0), wrap=lambda broker: Gate(broker, opened)
    )
    with stage:
        stage.wait_for(lambda status: status["ready"])
        green = stage.get("livez")
        opened.clear()
        stage.wait_for(lambda status: status["loop_age_s"] > 2.0)
        (red, words), ready = stage.get("livez"), stage.get("readyz")
        opened.set()
        stage.wait_for(lambda status: status["loop_age_s"] < 0.2)
        again = stage.get("livez")

    assert green == again == (200, "alive\n")
    assert red == 503
    assert re.fullmatch(r"the loop has not turned for \d+ s\n", words)
    assert ready == (200, "ready\n")


def test_liveness_is_green_before_anything_is_owned() -> None:
    """A worker that waits for brokers or for the group is alive, and has neither started nor is it ready."""
    found = while_serving(dashboard(), lambda ask: [ask(path) for path in ("startz", "livez", "readyz")])

    assert found == [
        (503, "starting for 0 s: the loop has not turned yet\n"),
        (200, "alive\n"),
        (503, "not yet assigned any partition\n"),
    ]


def test_a_slow_start_is_alive_for_ten_minutes() -> None:
    """Compiling may take longer than the loop may take later; a start that never ends is dead all the same."""
    clock = Clock()
    shown = Dashboard(HttpConfig("127.0.0.1", 0), IDENTITY, clock, time.time)

    def look(ask: Ask) -> list[tuple[int, int]]:
        found = []
        for seconds in (70, 520, 20):
            clock.wait(seconds)
            found.append((ask("startz")[0], ask("livez")[0]))
        return found

    assert while_serving(shown, look) == [(503, 200), (503, 200), (503, 503)]


def test_after_the_first_turn_a_minute_is_the_limit() -> None:
    """Started once is started for good; from then on the loop alone decides whether the worker is alive."""
    clock = Clock()
    shown = Dashboard(HttpConfig("127.0.0.1", 0), IDENTITY, clock, time.time)

    def look(ask: Ask) -> list[tuple[int, int]]:
        found = []
        for seconds, reported in ((100, shown.observer.turned), (50, shown.observer.polled), (59, None), (2, None)):
            clock.wait(seconds)
            if reported is not None:
                reported()
            found.append((ask("startz")[0], ask("livez")[0]))
        return found

    assert while_serving(shown, look) == [(503, 200), (200, 200), (200, 200), (200, 503)]


def test_a_taken_port_is_a_clear_error() -> None:
    """The message names the address and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Fatal, match=rf"cannot serve HTTP on 127\.0\.0\.1:{port} .*give another http\.port"):
            dashboard(port)


def test_the_default_is_loopback() -> None:
    """Nobody outside this machine sees anything unless the settings say so."""
    shown = dashboard()
    shown.stop()

    assert shown.url.startswith("http://127.0.0.1:")


def test_no_secret_in_the_status(tmp_path: Path) -> None:
    """A secret that got into a message is masked."""
    with Watched(tmp_path / "log", 2, secrets=Secrets(["hunter22"])) as stage:
        stage.wait_for(handled(0, 0))
    stage.dashboard.observer.paused(0, "login with hunter22 failed")
    text = json.dumps(stage.dashboard.status())

    assert "login with *** failed" in text
    assert "hunter22" not in text


def test_a_page_may_load_nothing_from_elsewhere(tmp_path: Path) -> None:
    """The policy allows the page's own script and style by their digests and requests to this server only."""
    with Watched(tmp_path / "log") as stage:
        connection = http.client.HTTPConnection("127.0.0.1", int(stage.dashboard.url.split(":")[-1].strip("/")))
        connection.request("HEAD", "/")
        response = connection.getresponse()
        body = response.read()
        connection.close()

    policy = response.getheader("Content-Security-Policy") or ""
    assert body == b""
    assert int(response.getheader("Content-Length") or 0) > 1000
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "connect-src 'self'" in policy
    assert response.getheader("Cache-Control") == "no-store"


def test_a_boundary_is_drawn_from_a_copy_of_the_model(tmp_path: Path) -> None:
    """The worker goes on and publishes the same while somebody looks; the margins are the model's own."""
    with Watched(tmp_path / "log") as stage:
        stage.send(events(400))
        stage.wait_for(handled(400))
        code, body = stage.get("boundary?partition=0")
        stage.send(events(10, seed=1))
        after = stage.wait_for(handled(410))
        wrong = stage.get("boundary?partition=7")

    alone = PartitionProcessor.cold(config(), "g", "events", 0, 0, None)
    alone.process([Record(offset, 1, None, value) for offset, value in enumerate(events(400))])
    drawn = json.loads(body)
    assert (code, drawn["t"], len(drawn["margins"])) == (200, 400, drawn["grid"] ** 2)
    assert drawn == boundary(alone.model)
    assert any(margin > 0 for margin in drawn["margins"])
    assert any(margin < 0 for margin in drawn["margins"])
    assert after["partitions"][0]["learned"] == 410
    assert wrong == (404, "?partition= must name a partition of these: 0\n")


def test_a_boundary_needs_two_features(tmp_path: Path) -> None:
    """Other models are distinguished with a sentence."""
    with Watched(tmp_path / "log", using=config(d=3)) as stage:
        stage.wait_for(handled(0))
        response = stage.get("boundary?partition=0")

    assert response == (404, "a boundary is drawn for 2 features; this model has 3\n")


def test_a_paused_partition_has_no_boundary(tmp_path: Path) -> None:
    """Its model is not loaded: said at once, instead of waiting for it."""
    with Watched(tmp_path / "log", 2) as stage:
        stage.send([b"rubbish"] * 1200)
        stage.wait_for(lambda status: [p["phase"] for p in status["partitions"]] == ["paused", "live"])
        response = stage.get("boundary?partition=0")

    assert response == (404, "partition 0 is paused: its model is not at hand\n")


@pytest.mark.slow
def test_a_busy_worker_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    """When the loop does not turn, the request ends with a sentence, and the worker is none the worse."""
    opened = threading.Event()
    opened.set()
    with Watched(tmp_path / "log", wrap=lambda broker: Gate(broker, opened)) as stage:
        stage.send(events(10))
        stage.wait_for(handled(10))
        opened.clear()
        stage.wait_for(lambda status: status["loop_age_s"] > 0.2)
        response = stage.get("boundary?partition=0")
        opened.set()

    assert response == (503, "the worker is busy; ask again\n")
