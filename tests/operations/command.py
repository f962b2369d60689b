"""`npstream` as a process: its settings file, its signals, its log, its HTTP side."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.system import patience

ROOT = Path(__file__).parents[2]
_HTTP_S = 20.0
WAIT_S = 120.0
"""For whatever a worker does in a second on a calm machine."""

# Become the module's process, and die with the test however that ends.
_TIED = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "
    "os.execv(sys.executable, [sys.executable, '-m', *sys.argv[1:]])"
)


def npstream(*arguments: str, timeout_s: float = WAIT_S) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; the caller looks at how it ended."""
    command = [sys.executable, "-m", "npstream", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)


class WorkerCommand:
    """`npstream run` with its own settings file; `out` and `err` keep everything it wrote, over all its lives."""

    def __init__(self, folder: Path, name: str, settings: Mapping[str, Any]) -> None:
        self.config = folder / f"{name}.yaml"
        self.out = folder / f"{name}.out"
        self.err = folder / f"{name}.err"
        self.name = name
        self.config.write_text(yaml.safe_dump({**settings, "log": {"format": "json"}}))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "WorkerCommand":
        """A new life."""
        assert self._process is None or self._process.poll() is not None, f"{self.name} is running already"
        with self.out.open("ab") as out, self.err.open("ab") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _TIED, *self.command()],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        return self

    def command(self) -> list[str]:
        """What to run: a module and its arguments."""
        return ["npstream", "run", "--config", str(self.config)]

    @property
    def pid(self) -> int:
        """Of the present or last life."""
        assert self._process is not None, "never started"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process is not None and self._process.poll() is None

    def wait(self, timeout_s: float = WAIT_S) -> int:
        """Its exit code when it ends by itself."""
        assert self._process is not None
        return self._process.wait(timeout_s)

    def terminate(self, timeout_s: float = WAIT_S) -> int:
        """Ask it to stop, return its exit code; `TimeoutExpired` when it does not end in time."""
        os.kill(self.pid, signal.SIGTERM)
        return self.wait(timeout_s)

    def kill(self) -> None:
        """End it, whatever it does."""
        if self._process is not None and self.running:
            self._process.kill()
            self._process.wait(30)

    def lines(self, event: str) -> list[dict[str, Any]]:
        """What was logged under this name."""
        documents = [json.loads(line) for line in self.out.read_text().splitlines() if line.endswith("}")]
        return [document for document in documents if document["event"] == event]

    @property
    def url(self) -> str:
        """Where the present life serves HTTP."""
        address: str = self.lines("starting")[-1]["page"]
        return address

    def get(self, path: str) -> tuple[int, str]:
        """Status code and body of a response."""
        return get(self.url + path)

    def status(self) -> dict[str, Any]:
        """What /status says."""
        document: dict[str, Any] = json.loads(self.get("status")[1])
        return document

    def events(self) -> int:
        """Events handled in all owned partitions."""
        return sum(partition.get("events", 0) for partition in self.status()["partitions"])

    def wait_for(self, condition: Callable[[], bool], what: str, timeout_s: float = WAIT_S) -> None:
        """Wait until something holds; a worker that dies in the meantime ends the wait."""

        def check_alive() -> None:
            assert self.running, f"{self.name} ended while waiting for {what}\n{self.said()}"

        try:
            patience.wait_until(condition, what, timeout_s, check_alive)
        except TimeoutError as error:
            error.add_note(self.said())
            raise

    def wait_started(self, lives: int = 1) -> None:
        """Wait until it serves HTTP, in its n-th life."""
        self.wait_for(lambda: len(self.lines("starting")) >= lives, "the worker to start")

    def said(self) -> str:
        """All it wrote."""
        return f"{self.out.read_text()}\n{self.err.read_text()}"


def get(url: str) -> tuple[int, str]:
    """Status code and body of a response."""
    try:
        with urllib.request.urlopen(url, timeout=_HTTP_S) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()
