"""One registry server in a process of its own, which a test may stop, freeze and start again."""

import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from urllib.error import HTTPError
from urllib.request import urlopen

_TIMEOUT_S = 30.0
_MARK = "no-more-lines"


class RegistryServer:
    """A server on a loopback port. In memory: what is started again has forgotten every schema."""

    def __init__(self, binary: Path, *, login: tuple[str, str] | None = None, keystore: Path | None = None) -> None:
        self._binary = binary
        self._login = login
        self._keystore = keystore
        self._address = "127.0.0.1:0"
        self._process: subprocess.Popen[str] | None = None
        self._lines = Queue[str]()
        self._requests: list[str] = []

    @property
    def url(self) -> str:
        """The address it responds at."""
        return f"{'https' if self._keystore else 'http'}://{self._address}"

    def start(self) -> None:
        """Start, on the port of the last time if there was one; returns when it listens."""
        tls = [] if self._keystore is None else ["-keystore", str(self._keystore)]
        self._process = subprocess.Popen(
            [str(self._binary), "-listen", self._address, *tls],
            env=self._environment(),
            stdin=subprocess.PIPE,  # it ends with us, however we end
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._lines, self._requests = Queue(), []
        threading.Thread(target=_listen, args=(self._process, self._lines), daemon=True).start()
        try:
            self._address = self._lines.get(timeout=_TIMEOUT_S)
        except Empty:
            self.stop()
            raise TimeoutError(f"the registry did not listen within {_TIMEOUT_S} s") from None

    def _environment(self) -> Mapping[str, str]:
        username, password = self._login or ("", "")
        return {**os.environ, "REGISTRY_USERNAME": username, "REGISTRY_PASSWORD": password}

    def requests(self) -> list[str]:
        """Method and path of every request since the start; one of our own shows that no line is on its way."""
        with suppress(HTTPError):
            urlopen(f"{self.url}/{_MARK}", timeout=_TIMEOUT_S)
        while (line := self._lines.get(timeout=_TIMEOUT_S)) != f"GET /{_MARK}":
            self._requests.append(line)
        return [*self._requests]

    def freeze(self) -> None:
        """Let it accept connections and say nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def stop(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _listen(process: "subprocess.Popen[str]", lines: "Queue[str]") -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line.strip())
