"""`npstream` as a process: its settings file, its signals, its log, its HTTP side."""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.stage.child import ROOT, WAIT_S, Child

_HTTP_S = 20.0


def npstream(*arguments: str, timeout_s: float = WAIT_S) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; the caller looks at how it ended."""
    command = [sys.executable, "-m", "npstream", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)


class WorkerCommand(Child):
    """`npstream run` with its own settings file."""

    def __init__(self, folder: Path, name: str, settings: Mapping[str, Any]) -> None:
        super().__init__(name, folder / f"{name}.out", folder / f"{name}.err")
        self.config = folder / f"{name}.yaml"
        self.config.write_text(yaml.safe_dump({**settings, "log": {"format": "json"}}))

    def start(self) -> "WorkerCommand":
        """A new life."""
        self.launch(*self.command())
        return self

    def command(self) -> list[str]:
        """What to run: a module and its arguments."""
        return ["npstream", "run", "--config", str(self.config)]

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
