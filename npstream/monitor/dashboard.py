"""Everything an operator sees of one worker, on one HTTP port."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson

from npstream.monitor.boundary import boundary_response
from npstream.monitor.document import status_document
from npstream.monitor.history import history_response
from npstream.monitor.http import JSON, HttpServer, Query, Response, text
from npstream.monitor.lag import Lag, LagWatch
from npstream.monitor.metrics import CONTENT_TYPE
from npstream.monitor.page import live_page, page_policy
from npstream.monitor.recorder import Recorder
from npstream.monitor.status import Identity, PartitionStatus
from npstream.monitor.stuck import StuckWatch
from npstream.monitor.watchdog import Watchdog
from npstream.observe import Observer
from npstream.port import Log
from npstream.records import Phase
from npstream.secrets import Secrets

_STOP_S = 2.0
_MODEL_S = 2.0
"""How long a request for a boundary waits for the worker."""


@dataclass(frozen=True, slots=True)
class HttpConfig:
    """Where to serve, and when something is wrong.

    start_s    a start may take this long: /livez is green and the watchdog waits. A cold compile takes 20 to 90 s on a
               calm machine, several times that on a throttled one; a kill in the middle keeps what is compiled by then
    max_age_s  after the start, /livez is red when the loop has not turned for this long
    grace_s    /readyz stays green this long while a rebalance settles
    stuck_s    after the start, the watchdog ends the process when the loop has not turned for this long
    """

    host: str
    port: int
    start_s: float = 600.0
    max_age_s: float = 60.0
    grace_s: float = 60.0
    stuck_s: float = 300.0


class Dashboard:
    """Metrics, probes, status, the live page and the watchdog of one worker.

    Give `observer` to the worker and its `turned` to the broker as heartbeat.
    `connect_log` opens a log to ask for lags (None: none are shown); `stuck` knows
    when one is held back for too long. `clock` is monotonic and the worker's own;
    `wall` is seconds since the epoch.
    """

    def __init__(
        self,
        config: HttpConfig,
        identity: Identity,
        clock: Callable[[], float],
        wall: Callable[[], float],
        connect_log: Callable[[], Log] | None = None,
        secrets: Secrets | None = None,
        stuck: StuckWatch | None = None,
    ) -> None:
        """Takes the port. Raises `Fatal` when it cannot be had."""
        self._config = config
        self._identity = identity
        self._clock = clock
        self._secrets = secrets or Secrets()
        self._recorder = Recorder(identity, clock)
        self._watchdog = Watchdog(self._recorder.pulse, config.stuck_s, config.start_s, sys.stderr, clock)
        self._lag: LagWatch | None = None
        if connect_log is not None:
            self._lag = LagWatch(connect_log, self._owned, clock, wall, stuck)
        routes = {
            "/": self._page,
            "/startz": self._startz,
            "/livez": self._livez,
            "/readyz": self._readyz,
            "/metrics": self._metrics,
            "/status": self._status,
            "/history": lambda query: history_response(self._owned(), query),
            "/boundary": self._boundary,
        }
        self._server = HttpServer(config.host, config.port, routes)

    @property
    def observer(self) -> Observer:
        """What the worker calls."""
        return self._recorder

    @property
    def url(self) -> str:
        """Where the live page is."""
        return self._server.url

    def start(self) -> None:
        """Begin to serve, to ask for lags and to watch the loop."""
        self._server.start()
        self._watchdog.start()
        if self._lag is not None:
            self._lag.start()

    def stop(self) -> None:
        """End all of it, within a few seconds, and give the port back."""
        self._watchdog.stop(_STOP_S)
        if self._lag is not None:
            self._lag.stop(_STOP_S)
        self._server.stop(_STOP_S)

    def status(self) -> dict[str, Any]:
        """The status as `/status` shows it; for any thread."""
        pulse, board = self._recorder.pulse, self._recorder.board.current
        document = {"source": "worker", "started": pulse.started, "loop_age_s": round(pulse.age_s(), 3)}
        document |= status_document(self._identity, board, self._lags(), self._clock(), self._ready())
        masked: dict[str, Any] = self._secrets.mask(document)
        return masked

    def _owned(self) -> Mapping[int, PartitionStatus]:
        return self._recorder.board.current.partitions

    def _lags(self) -> Mapping[int, Lag]:
        return {} if self._lag is None else self._lag.lags()

    def _ready(self) -> bool:
        return self._recorder.board.current.ready(self._clock(), self._config.grace_s)

    def _page(self, query: Query) -> Response:
        return Response(HTTPStatus.OK, "text/html; charset=utf-8", live_page(), page_policy())

    def _startz(self, query: Query) -> Response:
        pulse = self._recorder.pulse
        if pulse.started:
            return text(HTTPStatus.OK, "started")
        wait = f"starting for {pulse.start_s():.0f} s: the loop has not turned yet"
        return text(HTTPStatus.SERVICE_UNAVAILABLE, wait)

    def _livez(self, query: Query) -> Response:
        pulse = self._recorder.pulse
        age_s = pulse.age_s()
        if age_s < self._config.max_age_s or (not pulse.started and pulse.start_s() < self._config.start_s):
            return text(HTTPStatus.OK, "alive")
        return text(HTTPStatus.SERVICE_UNAVAILABLE, f"the loop has not turned for {age_s:.0f} s")

    def _readyz(self, query: Query) -> Response:
        if self._ready():
            return text(HTTPStatus.OK, "ready")
        unsettled = [
            f"partition {known.partition} is {known.phase}"
            for known in self._owned().values()
            if known.phase not in (Phase.LIVE, Phase.PAUSED)
        ]
        return text(HTTPStatus.SERVICE_UNAVAILABLE, "; ".join(unsettled) or "not yet assigned any partition")

    def _metrics(self, query: Query) -> Response:
        age_s = self._recorder.pulse.age_s()
        status = self._recorder.board.current
        body = self._recorder.metrics.render(status, self._lags(), self._clock(), age_s, self._ready())
        return Response(HTTPStatus.OK, CONTENT_TYPE, body)

    def _status(self, query: Query) -> Response:
        return Response(HTTPStatus.OK, JSON, orjson.dumps(self.status()))

    def _boundary(self, query: Query) -> Response:
        return boundary_response(self._owned(), query, lambda known: self._recorder.desk.ask(known.partition, _MODEL_S))
