"""`make mutants RANDOM=200 SEED=1`: bugs of one token, drawn at random, against the tests that need no broker.

A comparison, a sign, a constant, `and` or `or` is changed in a copy of the
program, and the tests of its room are run there, then the others. What they all
pass is a survivor: a hole in the tests, or the same program in other words.
What was tried is remembered, so that a run that was interrupted goes on.
"""

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from tests.fetching import exit_code

ROOT = Path(__file__).parents[2]
_ROOMS = ("partition", "worker", "codec", "embedded")
_REST = ("tests/partition", "tests/worker", "tests/codec", "tests/embedded", "tests/simulation", "tests/contracts")
_TIMEOUT_S = 900
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
    options = parser.parse_args()
    drawn = draw(options.seed, options.count)
    memory = ROOT / ".cache" / f"mutants-{options.seed}.jsonl"
    memory.parent.mkdir(exist_ok=True)
    known = {}
    if memory.exists():
        known = {
            json.dumps(entry["change"]): entry["killed"] for entry in map(json.loads, memory.read_text().splitlines())
        }
    with tempfile.TemporaryDirectory(prefix="npstream-mutants-") as folder:
        copy = _copy(Path(folder))
        assert not _fails(_REST, copy, {}), f"the tests fail without a change: run {' '.join(_REST)}"
        for number, change in enumerate(drawn, 1):
            key = json.dumps(asdict(change))
            if key not in known:
                known[key] = _killed(change, copy)
                with memory.open("a") as lines:
                    lines.write(json.dumps({"change": asdict(change), "killed": known[key]}) + "\n")
            print(f"{number} of {len(drawn)}: {'killed  ' if known[key] else 'SURVIVED'} {change}", flush=True)
    survivors = [change for change in drawn if not known[json.dumps(asdict(change))]]
    print(f"{len(drawn) - len(survivors)} of {len(drawn)} killed; survivors:")
    for change in survivors:
        print(f"  {change}: {(ROOT / change.file).read_text().splitlines()[change.line - 1].strip()}")
    return 1 if len(survivors) * 20 > len(drawn) else 0


def _copy(folder: Path) -> Path:
    """The program and its tests, with what is compiled already."""
    for name in ("npstream", "tests", "config"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("pyproject.toml", "README.md", "Makefile"):
        shutil.copy2(ROOT / name, folder / name)
    return folder


def _killed(change: Change, copy: Path) -> bool:
    path, room = copy / change.file, Path(change.file).parts[1]
    honest, stamp = path.read_text(), path.stat()
    first = [f"tests/{room}"] if room in _ROOMS else ["tests/history"]
    path.write_text(change.applied(honest))
    # Compiling what was changed takes longer than these tests take interpreted.
    slow = {"NUMBA_DISABLE_JIT": "1"} if "npstream.jit" in honest else {}
    try:
        return _fails(first, copy, slow) or _fails([each for each in _REST if each not in first], copy, slow)
    finally:
        path.write_text(honest)
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # what was compiled from it counts again


def _fails(tests: Sequence[str], copy: Path, variables: dict[str, str]) -> bool:
    command = [sys.executable, "-m", "pytest", "--quick", "-q", "-x", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env={**os.environ, **variables},
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True  # it never ends: whoever waits for the tests notices
    assert done.returncode in (0, 1, 2), done.stdout[-3000:]  # else pytest itself was used wrongly
    return done.returncode != 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
