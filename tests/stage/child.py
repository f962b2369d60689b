"""A process of a test, over all its lives: start, signals, and what it wrote."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from tests.stage import patience

ROOT = Path(__file__).parents[2]
WAIT_S = 120.0
"""For whatever a worker does in a second on a calm machine."""

# Become the module's process, and die with the test however that ends.
_TIED = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "
    "os.execv(sys.executable, [sys.executable, '-m', *sys.argv[1:]])"
)


class Child:
    """`out` and `err`, which may be one file, grow through all its lives."""

    def __init__(self, name: str, out: Path, err: Path) -> None:
        self.name = name
        self.out = out
        self.err = err
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self, *command: str, **environment: str) -> None:
        """A new life: run a module with its arguments."""
        assert not self.running, f"{self.name} is running already"
        with self.out.open("ab") as out, self.err.open("ab") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _TIED, *command],
                cwd=ROOT,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

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

    def send(self, number: signal.Signals) -> None:
        """A signal to a running process."""
        os.kill(self.pid, number)

    def wait(self, timeout_s: float = WAIT_S) -> int:
        """Its exit code when it ends by itself; `TimeoutExpired` when it does not end in time."""
        assert self._process is not None, "never started"
        return self._process.wait(timeout_s)

    def terminate(self, timeout_s: float = WAIT_S) -> int:
        """Ask it to stop, return its exit code; `TimeoutExpired` when it does not end in time."""
        self.send(signal.SIGTERM)
        return self.wait(timeout_s)

    def kill(self) -> None:
        """End it, whatever it does. A stopped one dies too."""
        if self._process is not None and self.running:
            self._process.kill()
            self._process.wait(30)

    def logged(self) -> list[dict[str, Any]]:
        """What all lives so far have logged as JSON."""
        if not self.out.exists():
            return []
        found = self.out.read_bytes().splitlines()
        return [orjson.loads(line) for line in found if line[:1] == b"{" and line[-1:] == b"}"]

    def lines(self, event: str) -> list[dict[str, Any]]:
        """What was logged under this name."""
        return [line for line in self.logged() if line["event"] == event]

    def wait_for(self, condition: Callable[[], bool], what: str, timeout_s: float = WAIT_S) -> None:
        """Wait until something holds; a process that dies in the meantime ends the wait."""

        def check_alive() -> None:
            assert self.running, f"{self.name} ended with {self.returncode} while waiting for {what}\n{self.tail()}"

        try:
            patience.wait_until(condition, what, timeout_s, check_alive)
        except TimeoutError as error:
            error.add_note(self.tail(40))
            raise

    def tail(self, lines: int = 15) -> str:
        """The end of what it wrote."""
        ends = [
            "\n".join([f"the end of {path}:", *path.read_text(errors="replace").splitlines()[-lines:]])
            for path in dict.fromkeys((self.out, self.err))
            if path.exists()
        ]
        return "\n".join(ends)
