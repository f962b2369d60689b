"""`make starts`: how long a worker takes to its first decision, with compiled code and without.

    cold    nothing is compiled
    cached  what the cold start has kept is there
    baked   the same in a folder that cannot be written to, as in the image
    killed  cold, and killed whenever it has used so much processor time, until one start gets through

Each with the worker of this checkout and, with BEFORE=REVISION, with that of an
earlier one in the same sitting. Time depends on what else the machine does;
processor time is what revisions are compared by.
"""

import argparse
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.stage.child import ROOT
from tests.stage.command import get

_PROCESSOR = {"NUMBA_CPU_NAME": "x86-64-v3" if os.uname().machine == "x86_64" else "generic", "NUMBA_CPU_FEATURES": ""}
_DECIDED = "npstream_decisions_total{"
_TURN_S = 0.05
_START_S = 1800.0
_LIVES_MAX = 40
EVENTS = 100


@dataclass(frozen=True, slots=True)
class Start:
    """A start that got through: seconds to /livez and to the first decision, processor seconds, starts it took."""

    alive_s: float
    decided_s: float
    processor_s: float
    lives: int = 1


@dataclass(frozen=True, slots=True)
class Program:
    """npstream of one revision, with a settings file, events to decide, and a home to write to."""

    tree: Path
    folder: Path

    def prepare(self) -> None:
        """Events in an embedded log of its own. What is compiled on the way is kept beside the program, not here."""
        self.folder.mkdir()
        lines = [{"id": f"e{i}", "x": [i % 7 * 0.1] * 8, "y": 1 if i % 5 == 0 else 0} for i in range(EVENTS)]
        (self.folder / "events.jsonl").write_text("\n".join(map(json.dumps, lines)))
        self.settings(0)
        for words in (["init"], ["produce", "events.jsonl"]):
            command = [sys.executable, "-m", "npstream", *words, "--config", "worker.yaml"]
            subprocess.run(command, cwd=self.folder, env=self.environment({}), check=True, timeout=_START_S)

    def settings(self, port: int) -> None:
        """A settings file with this port; JSON is YAML."""
        sections = {
            "embedded": {"path": "log.db", "partitions": 1},
            "topics": {"events": "events"},
            "model": {"d": 8, "tau": 0.01},
            "http": {"port": port},
        }
        (self.folder / "worker.yaml").write_text(json.dumps(sections))

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Nothing of the caller's that could lead to another program or another cache."""
        own = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "PYTHONPATH": str(self.tree)}
        return own | {"OPENBLAS_NUM_THREADS": "1", **_PROCESSOR, **variables}

    def start(self, cache: Path, *, read_only: bool = False, kill_after_s: float | None = None) -> Start | None:
        """One start to its first decision, from the events' beginning; None when it was killed before."""
        with tempfile.TemporaryDirectory(dir=self.folder) as fresh, socket.create_server(("127.0.0.1", 0)) as free:
            shutil.copy(self.folder / "log.db", fresh)
            port: int = free.getsockname()[1]
            self.settings(port)
            shutil.move(self.folder / "worker.yaml", fresh)
            free.close()
            environment = self.environment({"NUMBA_CACHE_DIR": str(cache)})
            command = [*(_obedient() if read_only else []), sys.executable, "-B", "-m", "npstream", "run"]
            worker = subprocess.Popen(
                [*command, "--config", "worker.yaml"], cwd=fresh, env=environment, stdout=subprocess.DEVNULL
            )
            try:
                return _watch(worker, port, kill_after_s)
            finally:
                worker.kill()
                worker.wait(30)


def _watch(worker: "subprocess.Popen[bytes]", port: int, kill_after_s: float | None) -> Start | None:
    began, alive_s = time.monotonic(), 0.0
    while (passed := time.monotonic() - began) < _START_S:
        if worker.poll() is not None:
            raise SystemExit(f"the worker ended with {worker.returncode} before its first decision")
        if kill_after_s is not None and processor_s(worker.pid) > kill_after_s:
            return None
        if not alive_s and _ask(port, "livez"):
            alive_s = passed
        lines = [line for line in _ask(port, "metrics").splitlines() if line.startswith(_DECIDED)]
        if any(float(line.split()[-1]) > 0 for line in lines):
            return Start(alive_s, time.monotonic() - began, processor_s(worker.pid))
        time.sleep(_TURN_S)
    raise SystemExit(f"no decision within {_START_S:g} s")


def _ask(port: int, path: str) -> str:
    """The body of a good response; nothing while nobody listens."""
    try:
        status, body = get(f"http://127.0.0.1:{port}/{path}")
    except OSError:
        return ""
    return body if status == 200 else ""


def processor_s(pid: int) -> float:
    """What a running process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _obedient() -> list[str]:
    """Even root may then not write where permissions forbid it."""
    return ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []


def measure(program: Program, kill_after_s: float) -> dict[str, Start]:
    """All four starts of one revision."""
    program.prepare()
    cache = program.folder / "compiled"
    found = {name: _whole(program.start(cache)) for name in ("cold", "cached")}
    for path in (cache, *cache.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    found["baked"] = _whole(program.start(cache, read_only=True))
    found["killed"] = killed(program, program.folder / "compiled-in-pieces", kill_after_s)
    return found


def killed(program: Program, cache: Path, kill_after_s: float) -> Start:
    """Starts that are killed after so much processor time, until one is through; the sum of them."""
    began, used = time.monotonic(), 0.0
    for life in range(1, _LIVES_MAX + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = program.start(cache, kill_after_s=kill_after_s)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if start is not None:
            return Start(start.alive_s, time.monotonic() - began, used, life)
    raise SystemExit(f"{_LIVES_MAX} starts of {kill_after_s:g} s of processor time did not suffice")


def _whole(start: Start | None) -> Start:
    assert start is not None, "nobody kills this one"
    return start


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.operations.starts")
    parser.add_argument("--before", metavar="REVISION", help="measure this revision too")
    parser.add_argument("--kill-after", type=float, default=20.0, metavar="SECONDS", help="of processor time")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="npstream-starts-") as scratch:
        trees = {options.before: _tree_of(options.before, Path(scratch) / "before")} if options.before else {}
        found = {}
        for name, tree in {**trees, "now": ROOT}.items():
            found[name] = measure(Program(tree, Path(scratch) / f"starts-{name}"), options.kill_after)
            _show(name, found[name])
    if options.before:
        _compare(options.before, found[options.before], found["now"])
    return 0


def _tree_of(revision: str, folder: Path) -> Path:
    folder.mkdir()
    packed = subprocess.run(["git", "archive", revision, "npstream"], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
    return folder


def _show(name: str, starts: Mapping[str, Start]) -> None:
    print(f"{name:10} {'start':8} {'alive s':>8} {'decided s':>10} {'processor s':>12} {'starts':>7}")
    for kind, start in starts.items():
        seconds = f"{start.alive_s:8.1f} {start.decided_s:10.1f} {start.processor_s:12.1f}"
        print(f"{name:10} {kind:8} {seconds} {start.lives:7}", flush=True)


def _compare(before: str, earlier: Mapping[str, Start], now: Mapping[str, Start]) -> None:
    for kind, start in now.items():
        ratio = start.processor_s / earlier[kind].processor_s
        print(f"{kind}: the first decision takes {ratio:.2f} of the processor time that {before} takes")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
