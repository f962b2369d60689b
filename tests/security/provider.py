"""An identity provider on loopback: tokens for client credentials (OpenID Connect), and the key to check them with.

Tokens are signed with openssl, so that the tests need no library for them.
"""

import base64
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_TIMEOUT_S = 60


class Provider:
    """Gives a token to whoever has the secret. What is in tokens may be changed at any time."""

    def __init__(self, folder: Path) -> None:
        self._key = folder / "provider.key"
        _openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", str(self._key))
        _, _, modulus = _openssl("rsa", "-in", str(self._key), "-noout", "-modulus").decode().strip().partition("=")
        self._public = {"kty": "RSA", "kid": "one", "use": "sig", "alg": "RS256", "e": "AQAB"}
        self._public["n"] = _text(bytes.fromhex(modulus))
        self.audience = "kafka"
        self.lifetime_s = 3600
        self.subjects: dict[str, str] = {}
        """Clients that there are, and the secret of each."""
        self.issued: list[str] = []
        """Every token that was given away."""
        self.scopes: list[str] = []
        """What was asked for, each time."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def token_url(self) -> str:
        """Where clients ask for tokens."""
        return f"{self.url}/token"

    @property
    def keys_url(self) -> str:
        """Where brokers ask for the key."""
        return f"{self.url}/keys"

    def keys(self) -> dict[str, Any]:
        """What brokers are given."""
        return {"keys": [self._public]}

    def token(self, subject: str) -> str:
        """A signed token, as it would be given to this client now."""
        now = int(time.time())
        lasts = {"iat": now, "exp": now + self.lifetime_s}
        claims = {"iss": self.url, "sub": subject, "aud": self.audience, "scope": "kafka", **lasts}
        header = {"alg": "RS256", "typ": "JWT", "kid": "one"}
        signed = ".".join(_text(json.dumps(part).encode()) for part in (header, claims))
        signature = _openssl("dgst", "-sha256", "-sign", str(self._key), given=signed.encode())
        return f"{signed}.{_text(signature)}"

    def exchange(self, authorization: str, body: str) -> dict[str, Any] | None:
        """A token for credentials; None when they are wrong."""
        client, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if self.subjects.get(client) != secret:
            return None
        token = self.token(client)
        self.issued.append(token)
        self.scopes.append(body)
        return {"access_token": token, "token_type": "bearer", "expires_in": self.lifetime_s}

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._thread.join(timeout=10)
        self._server.server_close()


@contextmanager
def identity_provider(folder: Path) -> Iterator[Provider]:
    """One that is there for the length of the block."""
    made = Provider(folder)
    try:
        yield made
    finally:
        made.close()


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, provider.keys())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            token = provider.exchange(self.headers.get("Authorization", ""), body)
            self._send(*((401, {"error": "invalid_client"}) if token is None else (200, token)))

        def _send(self, status: int, document: dict[str, Any]) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    return Handler


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _openssl(*arguments: str, given: bytes = b"") -> bytes:
    done = subprocess.run(["openssl", *arguments], input=given, capture_output=True, timeout=_TIMEOUT_S, check=False)
    assert done.returncode == 0, f"openssl {' '.join(arguments)}\n{done.stderr.decode()}"
    return done.stdout
