"""Clients that send a byte now and then, or nothing at all, never keep a probe waiting."""

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from npstream.monitor.connections import Connections
from npstream.monitor.dashboard import Dashboard, HttpConfig
from npstream.monitor.http import _CONNECTIONS_MAX
from tests.monitor.builders import IDENTITY
from tests.monitor.test_status import Clock

SLOW_CLIENTS = 64
PATHS = ("/startz", "/livez", "/readyz", "/metrics")
REQUEST = b"GET /livez HTTP/1.1\r\nHost: worker\r\nX-Padding: " + b"x" * 10_000


@pytest.fixture
def port() -> Iterator[int]:
    """Where a dashboard without a worker serves."""
    shown = Dashboard(HttpConfig("127.0.0.1", 0), IDENTITY, time.monotonic, time.time)
    shown.start()
    yield int(shown.url.split(":")[-1].strip("/"))
    shown.stop()


@contextmanager
def slow_clients(port: int, count: int) -> Iterator[None]:
    """Send byte after byte of a request that never ends; whoever is dropped connects again."""
    stop = threading.Event()
    begun = [threading.Event() for _ in range(count)]
    threads = [threading.Thread(target=_drip, args=(port, stop, event), daemon=True) for event in begun]
    for thread in threads:
        thread.start()
    assert all(event.wait(30) for event in begun)
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)


def _drip(port: int, stop: threading.Event, begun: threading.Event) -> None:
    while not stop.is_set():
        try:
            with socket.create_connection(("127.0.0.1", port), 10) as client:
                for byte in REQUEST:
                    client.send(bytes([byte]))
                    begun.set()
                    if stop.wait(0.2):
                        break
        except OSError:
            continue  # dropped, as it should be


def ask(port: int, path: str) -> int:
    """The status of a response that comes within the time a probe has."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def test_probes_are_served_beside_many_slow_clients(port: int) -> None:
    """However many clients send a byte now and then, every probe gets its response at the first try."""
    alone = {path: ask(port, path) for path in PATHS}
    with slow_clients(port, SLOW_CLIENTS):
        beside = [{path: ask(port, path) for path in PATHS} for _ in range(10)]

    assert beside == [alone] * 10


@pytest.mark.slow
def test_the_oldest_of_too_many_silent_clients_is_dropped(port: int) -> None:
    """The number of connections is bounded; the one that has been open longest gives way."""
    with ExitStack() as stack:
        first = stack.enter_context(socket.create_connection(("127.0.0.1", port), 10))
        for _ in range(_CONNECTIONS_MAX):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), 10))

        assert first.recv(1) == b""
        assert ask(port, "/livez") == 200


@pytest.fixture
def pairs() -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    """Three connections: the server's side and the client's."""
    made = [socket.socketpair() for _ in range(3)]
    for _, client in made:
        client.settimeout(10)
    yield made
    for pair in made:
        for side in pair:
            side.close()


def dropped(client: socket.socket) -> bool:
    """Whether the server has ended the connection."""
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False


def test_the_deadline_is_for_the_whole_exchange(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    """A client that goes on sending is dropped as a silent one is, when its time is over."""
    clock = Clock()
    connections = Connections(3, 10.0, clock)
    (early, early_client), (late, late_client), _ = pairs
    connections.admit(early)
    clock.wait(6)
    connections.admit(late)
    early_client.send(b"G")
    clock.wait(5)
    connections.drop_overdue()

    assert (dropped(early_client), dropped(late_client)) == (True, False)


def test_a_client_whose_response_is_made_keeps_its_place(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    """The oldest that waits for its client gives way; when all are being served the new one is turned away."""
    connections = Connections(1, 10.0, Clock())
    (first, first_client), (second, second_client), (third, _) = pairs
    connections.admit(first)
    with connections.at_work(first):
        assert not connections.admit(second)
    admitted = connections.admit(third)
    connections.leave(third)

    assert (admitted, dropped(first_client), dropped(second_client)) == (True, True, False)
    assert connections.admit(second)


def test_a_request_in_pieces_is_served(port: int) -> None:
    """A request may come in any number of pieces; one that is too long is not waited for."""
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        for piece in (b"GET /li", b"vez HTTP/1.0\r", b"\n\r", b"\n"):
            client.sendall(piece)
        served = client.recv(12)
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        client.sendall(b"GET /livez HTTP/1.0\r\nX: " + b"x" * 70_000)
        try:
            refused = client.recv(12)
        except ConnectionResetError:
            refused = b""

    assert (served, refused) == (b"HTTP/1.0 200", b"")
