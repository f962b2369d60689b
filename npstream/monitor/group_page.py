"""The page of a whole group: the same as a worker's, of what `GroupWatch` sees."""

from http import HTTPStatus
from typing import Any

import orjson

from npstream.model import Model
from npstream.monitor.boundary import boundary_response
from npstream.monitor.group import GroupWatch
from npstream.monitor.history import history_response
from npstream.monitor.http import JSON, HttpServer, Query, Response
from npstream.monitor.page import live_page, page_policy
from npstream.monitor.status import PartitionStatus
from npstream.secrets import Secrets

_STOP_S = 2.0


class GroupPage:
    """Serves the page, its status, histories and boundaries, and has the watch look while it does."""

    def __init__(self, host: str, port: int, watch: GroupWatch, secrets: Secrets) -> None:
        """Takes the port. Raises `Fatal` when it cannot be had."""
        self._watch = watch
        self._secrets = secrets
        routes = {
            "/": lambda query: Response(HTTPStatus.OK, "text/html; charset=utf-8", live_page(), page_policy()),
            "/status": lambda query: Response(HTTPStatus.OK, JSON, orjson.dumps(self.status())),
            "/history": lambda query: history_response(self._watch.statuses, query),
            "/boundary": self._boundary,
        }
        self._server = HttpServer(host, port, routes)

    @property
    def url(self) -> str:
        """Where the page is."""
        return self._server.url

    def start(self) -> None:
        """Begin to serve and to look."""
        self._server.start()
        self._watch.start()

    def stop(self) -> None:
        """End both, within a few seconds."""
        self._watch.stop(_STOP_S)
        self._server.stop(_STOP_S)

    def status(self) -> dict[str, Any]:
        """What `/status` shows."""
        masked: dict[str, Any] = self._secrets.mask(self._watch.document())
        return masked

    def _boundary(self, query: Query) -> Response:
        return boundary_response(self._watch.statuses, query, self._copy)

    def _copy(self, status: PartitionStatus) -> Model | None:
        """A model of its own for each request: none may be used by two threads."""
        model = self._watch.current.seen[status.partition].model
        return None if model is None else Model.from_bytes(model.params, model.to_bytes())
