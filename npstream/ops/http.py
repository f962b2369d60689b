"""The HTTP side of a worker: probes, metrics, status, boundary, page.

    /livez     200 while the loop has turned within `max_age_s`, and nothing else
    /readyz    200 once the first poll has returned and every owned partition is restored
    /metrics   Prometheus text
    /status    JSON
    /boundary  JSON, `?partition=0`: margins of a two-feature model over a grid
    /          the live page

A few threads of the standard library's server. It reads values the worker has
put up and never waits for the worker, `/boundary` excepted, for a bounded time.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6, socket
from urllib.parse import parse_qs, urlsplit

import structlog

from npstream.errors import Fatal

_SOCKET_S = 10.0
"""A client that is silent for this long is dropped."""
_REQUESTS_MAX = 16
"""Requests served at once; more are turned away."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What to send back."""

    status: HTTPStatus
    content_type: str
    body: bytes
    policy: str = "default-src 'none'; frame-ancestors 'none'"


Query = Mapping[str, str]
Route = Callable[[Query], Answer]


def text(status: HTTPStatus, message: str) -> Answer:
    """A plain one-line answer."""
    return Answer(status, "text/plain; charset=utf-8", f"{message}\n".encode())


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
        self._thread = threading.Thread(target=self._server.serve_forever, name="npstream-http", daemon=True)

    @property
    def url(self) -> str:
        """Where a browser on this machine finds it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/"

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Answer no more and give the port back."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(timeout_s)
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], routes: Mapping[str, Route]) -> None:
        self.routes = routes
        if ":" in address[0]:
            self.address_family = AF_INET6
        self._places = threading.BoundedSemaphore(_REQUESTS_MAX)
        super().__init__(address, _Handler)

    def process_request(self, request: socket | tuple[bytes, socket], client_address: object) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: socket | tuple[bytes, socket], client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away in the middle is none of our business."""
        structlog.get_logger("npstream.ops").debug("http client failed", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "npstream"
    sys_version = ""
    timeout = _SOCKET_S

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        route = self.server.routes.get(parts.path)
        if route is None:
            known = " ".join(self.server.routes)
            self._send(text(HTTPStatus.NOT_FOUND, f"nothing here; there is {known}"))
            return
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        try:
            self._send(route(query))
        except OSError:
            raise
        except Exception:
            structlog.get_logger("npstream.ops").exception("http request failed", path=parts.path)
            self._send(text(HTTPStatus.INTERNAL_SERVER_ERROR, "failed; the worker's log says why"))

    do_HEAD = do_GET

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Content-Security-Policy", answer.policy)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:
        """No access log: a probe every few seconds is no news."""
