"""A start that has to compile: what its probes say meanwhile, and what is left of it when it is killed."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.operations.probes import Probe
from tests.stage.command import WorkerCommand, get

FUNCTIONS = 8
"""Compiled functions that are waited for: a small part of all, which takes seconds."""


class ColdWorker(WorkerCommand):
    """`npstream run` on a file, with a cache of compiled code that begins empty, and a port known before it starts."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self.cache = folder / "compiled"
        settings = {
            "embedded": {"path": str(folder / "log"), "partitions": 1},
            "topics": {"events": "events"},
            "model": {"d": 2, "D": 8, "tau": 0.1},
            "http": {"port": self.port},
        }
        super().__init__(folder, "worker", settings)

    def start(self) -> "ColdWorker":
        """A life with no compiled code but what earlier ones have kept."""
        self.launch(*self.command(), NUMBA_CACHE_DIR=str(self.cache))
        return self

    def get(self, path: str) -> tuple[int, str]:
        """A response, by the port: the address is logged only when everything is compiled."""
        return get(f"http://127.0.0.1:{self.port}/{path}")

    def kept(self) -> dict[str, int]:
        """The compiled functions on disk; a number changes when its function is compiled again."""
        return {str(path): path.stat().st_ino for path in self.cache.rglob("*.nbc")}


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[ColdWorker]:
    """A worker that has to compile everything; it ends with the test."""
    made = ColdWorker(tmp_path)
    yield made
    made.kill()


@pytest.mark.slow
def test_a_start_that_compiles_is_alive_and_not_ready(worker: ColdWorker) -> None:
    """While functions are compiled /livez returns 200 each time, /startz and /readyz say that work has not begun."""
    worker.start()
    worker.wait_for(lambda: len(worker.kept()) > 0, "the first compiled function")
    with Probe(lambda: worker.get("livez")) as probe:
        others = [worker.get(path) for path in ("startz", "readyz")]
        worker.wait_for(lambda: len(worker.kept()) > FUNCTIONS and len(probe.responses) > 1, "more of them")

    assert worker.lines("starting") == []
    assert probe.reds() == []
    assert [status for status, _ in others] == [503, 503]


@pytest.mark.slow
def test_a_killed_start_leaves_what_it_has_compiled(worker: ColdWorker) -> None:
    """The next start takes every function that an earlier one had finished, and goes on with the others."""
    worker.start()
    worker.wait_for(lambda: len(worker.kept()) > FUNCTIONS, "some compiled functions")
    worker.kill()
    first = worker.kept()

    worker.start()
    worker.wait_for(lambda: len(worker.kept()) > len(first) + FUNCTIONS, "further ones")
    worker.kill()

    assert {path: number for path, number in worker.kept().items() if path in first} == first
