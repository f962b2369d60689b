"""`make mutants RANDOM=200 SEED=1`: bugs of one token, drawn at random, against the tests that need no broker.

A comparison, a sign, a constant, `and` or `or` is changed in a copy of the
program, and the tests that reach its line are run there until one fails. What
they all pass is a survivor: a hole in the tests, or the same program in other
words. What was tried is remembered, so that an interrupted run goes on.
"""

import argparse
import hashlib
import io
import json
import pickle
import shutil
import signal
import sys
import tempfile
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from multiprocessing import connection, get_context
from pathlib import Path
from random import Random

import grimp

from tests.fetching import exit_code
from tests.system import forked

ROOT = Path(__file__).parents[2]
_ROOMS = ("partition", "worker", "codec", "embedded")
_OTHERS = {
    "<": ("<=", ">"),
    "<=": ("<", ">="),
    ">": (">=", "<"),
    ">=": (">", "<="),
    "==": ("!=",),
    "!=": ("==",),
    "+": ("-",),
    "-": ("+",),
    "+=": ("-=",),
    "-=": ("+=",),
    "and": ("or",),
    "or": ("and",),
    "True": ("False",),
    "False": ("True",),
}


@dataclass(frozen=True, slots=True)
class Change:
    """One token of one file, and what takes its place; line and column count from 1 and 0."""

    file: str
    line: int
    column: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column} {self.old} -> {self.new}"

    def applied(self, source: str) -> str:
        """The source with the change."""
        lines = source.splitlines(keepends=True)
        text = lines[self.line - 1]
        lines[self.line - 1] = text[: self.column] + self.new + text[self.column + len(self.old) :]
        return "".join(lines)


def changes(file: str, source: str) -> Iterator[Change]:
    """Every change of one token that the file has room for."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        instead: Sequence[str] = ()
        if token.type in (tokenize.OP, tokenize.NAME):
            instead = _OTHERS.get(token.string, ())
        elif token.type == tokenize.NUMBER and token.string.isdecimal():
            instead = [str(int(token.string) + 1), *([str(int(token.string) - 1)] if token.string != "0" else [])]
        for new in instead:
            yield Change(file, *token.start, token.string, new)


def draw(seed: int, count: int) -> list[Change]:
    """So many different changes, the same for the same seed and program."""
    files = [path for room in _ROOMS for path in sorted((ROOT / "npstream" / room).glob("*.py"))]
    found = [
        change
        for path in [*files, ROOT / "npstream" / "state.py"]
        for change in changes(str(path.relative_to(ROOT)), path.read_text())
    ]
    return Random(seed).sample(found, min(count, len(found)))


def main() -> int:
    """1 when more than one in twenty survives."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="python -m tests.system.random_mutants")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    drawn = draw(options.seed, options.count)
    with tempfile.TemporaryDirectory(prefix="npstream-mutants-") as scratch:
        copy = _copy(Path(scratch) / "program")
        found = try_all(drawn, copy, Memory(ROOT / ".cache", copy), options.jobs)
    survivors = [change for change in drawn if found[change] is None]
    print(f"{len(drawn) - len(survivors)} of {len(drawn)} killed; survivors:")
    for change in survivors:
        print(f"  {change}: {(ROOT / change.file).read_text().splitlines()[change.line - 1].strip()}")
    return 1 if len(survivors) * 20 > len(drawn) else 0


class Memory:
    """What is known of this program: what its tests reach, and which changes were tried.

    A killed one stays killed while the file of the test that failed is what it was, a survivor while all tests are.
    """

    def __init__(self, folder: Path, copy: Path) -> None:
        folder.mkdir(exist_ok=True)
        program = _digest(copy / "npstream")
        self._copy = copy
        self._tried = folder / f"mutants-{program}.jsonl"
        self._reach = folder / f"mutants-{program}-{_digest(copy / 'tests')}.reach"

    def known(self) -> dict[Change, str | None]:
        """The test that has killed each change; None for survivors."""
        lines = self._tried.read_text().splitlines() if self._tried.exists() else []
        return {
            Change(**entry["change"]): entry["killer"]
            for entry in map(json.loads, lines)
            if entry["tests"] == self._tests(entry["killer"])
        }

    def add(self, change: Change, killer: str | None) -> None:
        """Remember it at once."""
        with self._tried.open("a") as lines:
            entry = {"change": asdict(change), "killer": killer, "tests": self._tests(killer)}
            lines.write(json.dumps(entry) + "\n")

    def reach(self) -> forked.Reach:
        """What the tests reach; found out when it is not known."""
        if not self._reach.exists():
            child = _Child(forked.record, self._copy)
            killer = child.killer()
            assert killer is None, f"the tests fail without a change: {killer}\n{child.report()}"
            shutil.copyfile(child.folder / forked.REACH, self._reach)
        return forked.Reach(*pickle.loads(self._reach.read_bytes()))

    def _tests(self, killer: str | None) -> str:
        path = self._copy / (killer or "").partition("::")[0]
        return _digest(path if killer and path.is_file() else self._copy / "tests")


def try_all(drawn: Sequence[Change], copy: Path, memory: Memory, jobs: int) -> dict[Change, str | None]:
    """The test that kills each change, or None; so many processes at a time."""
    known = memory.known()
    found = {change: known[change] for change in drawn if change in known}
    waiting = [change for change in drawn if change not in known]
    imports, reach = grimp.build_graph("npstream", cache_dir=None), memory.reach()
    running: dict[object, tuple[Change, _Child]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            change = waiting.pop(0)
            child = _Child(forked.plant, copy, _planted(change, copy, imports), reach)
            running[child.process.sentinel] = change, child
        for sentinel in connection.wait([child.process.sentinel for _, child in running.values()]):
            change, child = running.pop(sentinel)
            found[change] = child.killer()
            memory.add(change, found[change])
            shutil.rmtree(child.folder)
            print(f"{len(found)} of {len(drawn)}: {change}: {found[change] or 'SURVIVED'}", flush=True)
    return found


def _copy(folder: Path) -> Path:
    """The program and its tests, with what is compiled already."""
    for name in ("npstream", "tests", "config"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("pyproject.toml", "README.md", "Makefile"):
        shutil.copy2(ROOT / name, folder / name)
    return folder


def _planted(change: Change, copy: Path, imports: grimp.ImportGraph) -> forked.Planted:
    name = ".".join(Path(change.file).with_suffix("").parts)
    source = change.applied((copy / change.file).read_text())
    return forked.Planted(change.file, change.line, source, {name, *imports.find_downstream_modules(name)})


class _Child:
    """A process forked from this one, with a folder of its own beside the copy."""

    def __init__(self, target: Callable[..., None], copy: Path, *arguments: object) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=copy.parent))
        self.process = get_context("fork").Process(target=target, args=(copy, self.folder, *arguments), daemon=True)
        self.process.start()

    def killer(self) -> str | None:
        """The test that failed, or did not end; None when all passed."""
        self.process.join()
        code = self.process.exitcode
        assert code is not None
        assert code in forked.ENDS or code < 0, self.report()  # else pytest itself was used wrongly
        return (
            None
            if code == 0
            else forked.last_test(self.folder) + (f" ({signal.Signals(-code).name})" if code < 0 else "")
        )

    def report(self) -> str:
        """The end of what pytest has printed."""
        return (self.folder / forked.REPORT).read_text()[-3000:]


def _digest(path: Path) -> str:
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return hashlib.blake2b(b"".join(each.read_bytes() for each in files), digest_size=8).hexdigest()


if __name__ == "__main__":
    sys.exit(exit_code(main))
