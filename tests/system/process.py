"""A worker process seen from outside: start, signals, state, and what its log says."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from npstream.failpoints import NAMES
from tests.system import mutants, patience
from tests.system.spec import WorkerSpec

ROOT = Path(__file__).parents[2]


class WorkerProcess:
    """One worker of a group over all its lives; its log grows through restarts."""

    def __init__(self, spec: WorkerSpec, folder: Path, mutant: str | None = None) -> None:
        self.spec = spec
        self.log = folder / f"{spec.worker_name}.log"
        self._file = folder / f"{spec.worker_name}.json"
        self._mutant = mutant
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, failpoints: str = "", spec: WorkerSpec | None = None) -> None:
        """A new life, with these failpoints armed (`name:hit:action,...`) and perhaps other settings."""
        assert not self.running, f"{self.spec.worker_name} is running already"
        assert all(item.split(":")[0] in NAMES for item in failpoints.split(",") if item), failpoints
        self.spec = spec or self.spec
        self._file.write_bytes(self.spec.to_json())
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.system.worker_main", str(self._file)],
                cwd=ROOT,
                env=self._environment(failpoints),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _environment(self, failpoints: str) -> Mapping[str, str]:
        own = {"NPSTREAM_FAILPOINTS": failpoints}
        if self._mutant is not None:
            own[mutants.VARIABLE] = self._mutant
        return {**os.environ, **own}

    @property
    def pid(self) -> int:
        """Of the present or last life."""
        assert self._process is not None, "never started"
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs; -9 after a kill."""
        return None if self._process is None else self._process.poll()

    @property
    def running(self) -> bool:
        """Whether the process exists, stopped or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def stopped(self) -> bool:
        """Whether SIGSTOP holds it."""
        if not self.running:
            return False
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except FileNotFoundError:
            return False
        return stat.rsplit(")", 1)[1].split()[0] == "T"

    def send(self, number: signal.Signals) -> None:
        """A signal to a running process."""
        os.kill(self.pid, number)

    def terminate(self, timeout_s: float = 60.0) -> int:
        """Ask it to stop, return its exit code."""
        assert self._process is not None
        self.send(signal.SIGTERM)
        return self._process.wait(timeout_s)

    def kill(self) -> None:
        """End it, whatever it does. A stopped one dies too."""
        if self._process is not None and self.running:
            self._process.kill()
            self._process.wait(30)

    def events(self) -> list[dict[str, Any]]:
        """What all lives so far have logged, librdkafka's lines left out."""
        if not self.log.exists():
            return []
        return [
            orjson.loads(line) for line in self.log.read_bytes().splitlines() if line[:1] == b"{" and line[-1:] == b"}"
        ]

    def lines(self, event: str) -> list[dict[str, Any]]:
        """What was logged under this name."""
        return [line for line in self.events() if line["event"] == event]

    def owned(self) -> set[int]:
        """The partitions it has at the moment, by what it says."""
        own: set[int] = set()
        for line in self.events():
            if line["event"] == "assigned":
                own.add(line["partition"])
            elif line["event"] in ("revoked", "lost"):
                own -= set(line["partitions"])
            elif line["event"] in ("started", "session restart"):
                own.clear()
        return own

    def wait_for(self, condition: Callable[[], bool], what: str, timeout_s: float = 120.0) -> None:
        """Wait until something holds; a worker that dies in the meantime ends the wait with its log."""

        def check_alive() -> None:
            assert self.running, (
                f"{self.spec.worker_name} ended with {self.returncode} while waiting for {what}\n{self.tail()}"
            )

        patience.wait_until(condition, what, timeout_s, check_alive)

    def wait_dead(self, timeout_s: float = 120.0) -> int:
        """Wait until it has ended, by a failpoint or by itself."""
        patience.wait_until(lambda: not self.running, f"the end of {self.spec.worker_name}\n{self.tail()}", timeout_s)
        assert self.returncode is not None
        return self.returncode

    def where(self) -> str:
        """The stack of a running worker, for a person who must find out why it does not go on."""
        if not self.running or self.stopped:
            how = "stopped" if self.running else f"ended with {self.returncode}"
            return f"{self.spec.worker_name}: {how}\n{self.tail(5)}"
        before = self.log.stat().st_size
        self.send(signal.SIGUSR1)
        with suppress(TimeoutError):
            patience.wait_until(lambda: self.log.stat().st_size > before, "its stack", 5.0)
        return self.tail(40)

    def tail(self, lines: int = 15) -> str:
        """The end of its log."""
        kept = self.log.read_text(errors="replace").splitlines()[-lines:] if self.log.exists() else []
        return "\n".join([f"the end of {self.log}:", *kept])
