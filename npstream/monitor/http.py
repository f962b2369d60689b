"""The HTTP side of a worker: probes, metrics, status, boundary, page.

    /startz    200 from the first turn of the loop on
    /livez     200 while the loop has turned within `max_age_s`, and before its first turn within `start_s`
    /readyz    200 once the first poll has returned and every owned partition is restored
    /metrics   Prometheus text
    /status    JSON
    /history   JSON, `?span=day` or `month`, `&partition=0`: counts over time
    /boundary  JSON, `?partition=0`: margins of a two-feature model over a grid
    /          the live page

It reads values that the worker has put up. Only `/boundary` waits for the worker,
for a bounded time. Slow clients keep nobody waiting but themselves.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BytesIO
from selectors import EVENT_READ, DefaultSelector
from socket import AF_INET6, socket
from typing import Literal
from urllib.parse import parse_qs, urlsplit

import structlog

from npstream.errors import Fatal
from npstream.monitor.connections import Connections

_EXCHANGE_S = 10.0
"""A client has this long for everything: to connect, send its request and take the response."""
_CONNECTIONS_MAX = 256
"""Connections at once: a probe is served unless this many others come in the milliseconds that it takes."""
_HEAD_MAX = 65_536
"""Bytes of a request: far more than any browser sends."""
_TICK_S = 0.5


@dataclass(frozen=True, slots=True)
class Response:
    """What to send back."""

    status: HTTPStatus
    content_type: str
    body: bytes
    policy: str = "default-src 'none'; frame-ancestors 'none'"


JSON = "application/json"

Query = Mapping[str, str]
Route = Callable[[Query], Response]


def text(status: HTTPStatus, message: str) -> Response:
    """A plain one-line response."""
    return Response(status, "text/plain; charset=utf-8", f"{message}\n".encode())


class HttpServer:
    """Serves `routes` (path to handler) on a daemon thread.

    Port 0 takes any free one; `port` is the one in use. Raises `Fatal` when the
    address cannot be had.
    """

    def __init__(self, host: str, port: int, routes: Mapping[str, Route]) -> None:
        try:
            self._server = _Server((host, port), routes)
        except OSError as error:
            raise Fatal(
                f"cannot serve HTTP on {host}:{port} ({error.strerror or error}): give another http.port (0 takes any "
                "free one) or http.host, or stop the process that has it"
            ) from error
        self.host = host
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve, name="npstream-http", daemon=True)

    @property
    def url(self) -> str:
        """Where a browser on this machine finds it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/"

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Stop serving and give the port back."""
        if self._thread.is_alive():
            self._server.stop()
            self._thread.join(timeout_s)
        self._server.server_close()


@dataclass(slots=True)
class _Request:
    """A connection and as much of its request as has come."""

    connection: socket
    address: object
    head: bytearray = field(default_factory=bytearray)

    def read(self) -> Literal["incomplete", "complete", "useless"]:
        """Take what is there without waiting; a client that went away or sends too much is of no use."""
        try:
            data = self.connection.recv(_HEAD_MAX)
        except BlockingIOError:
            return "incomplete"
        except OSError:
            return "useless"
        start = max(0, len(self.head) - 3)
        self.head += data
        if not data or len(self.head) > _HEAD_MAX:
            return "useless"
        ended = self.head.find(b"\r\n\r\n", start) >= 0 or self.head.find(b"\n\n", start) >= 0
        return "complete" if ended else "incomplete"


class _Server(HTTPServer):
    """One thread accepts and reads requests; a request that has come in full gets a thread of its own.

    So a client that takes its time costs a socket and no thread.
    """

    request_queue_size = 64

    def __init__(self, address: tuple[str, int], routes: Mapping[str, Route]) -> None:
        self.routes = routes
        if ":" in address[0]:
            self.address_family = AF_INET6
        self.connections = Connections(_CONNECTIONS_MAX, _EXCHANGE_S, time.monotonic)
        self._stopping = threading.Event()
        self._selector = DefaultSelector()
        super().__init__(address, BaseHTTPRequestHandler)  # unused: `_exchange` builds its own

    def serve(self) -> None:
        """Until `stop` is called."""
        self._selector.register(self.socket, EVENT_READ, None)
        while not self._stopping.is_set():
            for key, _ in self._selector.select(_TICK_S):
                if key.data is None:
                    self._handle_request_noblock()  # type: ignore[attr-defined]  # accepts, calls process_request
                else:
                    self._read(key.data)
            self.connections.drop_overdue()
        self.connections.drop_all()

    def stop(self) -> None:
        """End `serve` within a tick."""
        self._stopping.set()

    def process_request(self, request: socket | tuple[bytes, socket], client_address: object) -> None:
        """A client has connected: its request is read as it comes."""
        assert isinstance(request, socket)  # the other kind is for datagrams
        if self.connections.admit(request):
            request.setblocking(False)
            self._selector.register(request, EVENT_READ, _Request(request, client_address))
        else:
            self.shutdown_request(request)

    def _read(self, request: _Request) -> None:
        state = request.read()
        if state == "incomplete":
            return
        self._selector.unregister(request.connection)
        if state == "complete":
            threading.Thread(target=self._exchange, args=(request,), name="npstream-http-client", daemon=True).start()
        else:
            self._end(request)

    def _exchange(self, request: _Request) -> None:
        try:
            request.connection.settimeout(_EXCHANGE_S)
            _Handler(bytes(request.head), request.connection, request.address, self)
        except OSError:
            # A client that goes away in the middle is not an error of ours.
            structlog.get_logger("npstream.monitor").debug("http client failed", exc_info=True)
        finally:
            self._end(request)

    def _end(self, request: _Request) -> None:
        self.connections.leave(request.connection)
        self.shutdown_request(request.connection)

    def server_close(self) -> None:
        """Give the port back."""
        super().server_close()
        self._selector.close()


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "npstream"
    sys_version = ""

    def __init__(self, head: bytes, connection: socket, address: object, server: _Server) -> None:
        self._head = head
        super().__init__(connection, address, server)

    def setup(self) -> None:
        """The request is here already."""
        super().setup()
        self.rfile.close()
        self.rfile = BytesIO(self._head)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        route = self.server.routes.get(parts.path)
        if route is None:
            known = " ".join(self.server.routes)
            self._send(text(HTTPStatus.NOT_FOUND, f"nothing here; there is {known}"))
            return
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        try:
            with self.server.connections.at_work(self.connection):
                response = route(query)
        except Exception:
            structlog.get_logger("npstream.monitor").exception("http request failed", path=parts.path)
            response = text(HTTPStatus.INTERNAL_SERVER_ERROR, "failed; the worker's log says why")
        self._send(response)

    do_HEAD = do_GET

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Content-Security-Policy", response.policy)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def log_message(self, format: str, *args: object) -> None:
        """No access log: a probe comes every few seconds."""
