"""The schema registry over HTTP: schemas by id, by subject and version, and registering one.

The REST interface is Confluent's; others (Redpanda, Karapace, Apicurio) have the
same. A request is rare, since schemas are kept, so every one opens a connection
of its own. No response, or one that may be another in a while, is `Retryable`.
"""

import base64
import ssl
import time
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from typing import Any, Literal
from urllib.error import HTTPError, URLError
from urllib.parse import quote

import orjson

from npstream.errors import Fatal, NpstreamError, Retryable

_TIMEOUT_S = 10.0
"""Longest time that one request may take, connecting included."""
_RESPONSE_MAX_BYTES = 4_000_000
_NOT_FOUND = range(40401, 40404)
"""The registry's own codes for: no such subject, version, schema."""

SchemaType = Literal["AVRO", "PROTOBUF", "JSON"]


class NotRegistered(NpstreamError):
    """The registry has no such schema."""


class UnusableSchema(NpstreamError):
    """A schema is registered, and nothing can be read with it."""


@dataclass(frozen=True, slots=True)
class RegistryConfig:
    """Where the registry is, and who asks."""

    url: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: str | None = None


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """Another schema that a schema imports, under this name."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as it was registered."""

    kind: SchemaType
    text: str
    references: tuple[SchemaReference, ...] = ()


class RegistryClient:
    """Asks one registry. Raises `NotRegistered`; `Retryable` when it is away; `Fatal` for what an operator must fix."""

    def __init__(self, config: RegistryConfig) -> None:
        self.url = config.url.rstrip("/")
        self._config = config
        self._opener: urllib.request.OpenerDirector | None = None

    def schema(self, identity: int) -> Schema:
        """The schema with this id. It never changes: an id is given once."""
        return self._schema_of(self._ask(f"/schemas/ids/{identity}"))

    def version(self, subject: str, version: int) -> Schema:
        """The schema of one version of a subject."""
        return self._schema_of(self._ask(f"/subjects/{quote(subject, safe='')}/versions/{version}"))

    def find(self, subject: str, text: str) -> int | None:
        """The id under which a subject has this Avro schema, whatever its white space; None when it has not."""
        path, wanted = f"/subjects/{quote(subject, safe='')}/versions", orjson.loads(text)
        try:
            versions = self._ask(path)
        except NotRegistered:
            return None
        for version in reversed(versions):
            found = self._ask(f"{path}/{version}")
            if orjson.loads(found["schema"]) == wanted:
                return int(found["id"])
        return None

    def register(self, subject: str, text: str) -> int:
        """Register an Avro schema under a subject, if it is not there yet; returns its id."""
        response = self._ask(f"/subjects/{quote(subject, safe='')}/versions", {"schema": text})
        return int(response["id"])

    def probe(self) -> None:
        """Ask for what no registry has. Returns when the response is that of a registry."""
        try:
            self._ask("/schemas/ids/0")
        except NotRegistered:
            return

    def _schema_of(self, response: Any) -> Schema:
        try:
            found = response.get("references") or ()
            references = tuple(SchemaReference(each["name"], each["subject"], each["version"]) for each in found)
            return Schema(response.get("schemaType") or "AVRO", response["schema"], references)
        except (KeyError, TypeError, AttributeError):
            raise self._stranger("its response is not a schema") from None

    def _ask(self, path: str, body: Any = None) -> Any:
        """The registry's response to a request, parsed."""
        deadline = time.monotonic() + _TIMEOUT_S
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if body is not None:
            headers["Content-Type"] = "application/vnd.schemaregistry.v1+json"
        if self._config.username is not None:
            login = f"{self._config.username}:{self._config.password or ''}"
            headers["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
        content = None if body is None else orjson.dumps(body)
        request = urllib.request.Request(self.url + path, content, headers)
        try:
            with self._open(request) as response:
                return orjson.loads(_read(response, deadline))
        except HTTPError as error:
            with error:
                raise self._refused(error) from None
        except orjson.JSONDecodeError:
            raise self._stranger("its response is not JSON") from None
        except (URLError, HTTPException, OSError) as error:
            raise self._unreachable(error) from None

    def _open(self, request: urllib.request.Request) -> HTTPResponse:
        if self._opener is None:
            self._opener = urllib.request.build_opener(
                urllib.request.HTTPSHandler(context=self._trust()), _NoRedirect()
            )
        response: HTTPResponse = self._opener.open(request, timeout=_TIMEOUT_S)
        return response

    def _trust(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self._config.ca_file)
        except OSError as error:
            raise Fatal(f"events.registry.ca_file {self._config.ca_file}: cannot be used ({error})") from None

    def _refused(self, error: HTTPError) -> NpstreamError:
        if error.code in (401, 403):
            who = "without a login" if self._config.username is None else f"as {self._config.username!r}"
            return Fatal(
                f"schema registry {self.url}: refuses to let us in {who} (HTTP {error.code}); "
                "correct events.registry.username and events.registry.password"
            )
        try:
            response = orjson.loads(_read(error, time.monotonic() + _TIMEOUT_S))
            code, message = int(response["error_code"]), str(response.get("message", ""))
        except (ValueError, KeyError, TypeError, OSError):
            code, message = error.code, "no reason given"
        if code in _NOT_FOUND:
            return NotRegistered(message)
        if error.code >= 500 or error.code in (408, 425, 429):
            return self._away(f"responds with HTTP {error.code} ({message})")
        if error.code in (404, 405) or 300 <= error.code < 400:
            return self._stranger(f"HTTP {error.code}")
        return Fatal(f"schema registry {self.url}: refuses the request with HTTP {error.code}: {message}")

    def _unreachable(self, error: Exception) -> NpstreamError:
        cause = error.reason if isinstance(error, URLError) else error
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Fatal(
                f"schema registry {self.url}: its certificate is not trusted ({cause.verify_message}); give the file "
                "of the authority that signed it as events.registry.ca_file"
            )
        return self._away(f"cannot be reached ({cause})")

    def _away(self, what: str) -> Retryable:
        error = Retryable(f"schema registry {self.url}: {what}; check events.registry.url and that the registry runs")
        error.cause = "schema_registry"
        return error

    def _stranger(self, what: str) -> Fatal:
        return Fatal(
            f"{self.url}: is not the address of a schema registry ({what}); correct events.registry.url, and give "
            "the path as well where the registry is below one"
        )


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would take the login to another server."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _read(response: HTTPResponse | HTTPError, deadline: float) -> bytes:
    """The whole response, within bounds: a server that sends a byte now and then must not hold us."""
    content = bytearray()
    while part := response.read1(65_536):
        content += part
        if len(content) > _RESPONSE_MAX_BYTES:
            raise OSError(f"its response is longer than {_RESPONSE_MAX_BYTES} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError(f"no whole response within {_TIMEOUT_S:g} s")
    return bytes(content)
