"""The tests without a broker in a forked process: with a record of what each of them reaches, or with a change planted.

A child inherits the libraries that take long to import, and imports the program itself. What compiled code would have
of a changed line, in its own module or in one that imports it, runs as plain Python; so does what is traced.
"""

import importlib
import os
import pickle
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from hypothesis import Phase, settings

import npstream.jit  # noqa: F401  (imports numba, so that no child has to)

TESTS = ("partition", "worker", "codec", "embedded", "simulation", "contracts", "data", "history")
"""Folders of tests."""

ENDS = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED, pytest.ExitCode.USAGE_ERROR)
"""Of a child: the last two when a file of tests, or the fixtures of a folder, cannot be imported."""

OUTSIDE = ""
"""In place of a test: while modules are imported and tests collected."""

REPORT, REACH, _LAST = "report", "reach", "last"
# Processor time of one test, since the machine may be busy: ten times what it took, and a while for what took nothing.
_TIMES, _WHILE_S = 10, 10


@dataclass(frozen=True, slots=True)
class Reach:
    """What the program as it is has shown: processor seconds of each test, and the tests that reach each line."""

    seconds: dict[str, float]
    lines: dict[str, dict[int, set[str]]]
    """Of each line that holds code; none when it was not reached."""

    def turns(self, file: str, line: int) -> Iterator[tuple[str, set[str]]]:
        """Tests that could notice a change of this line, by file: the changed file's own first, then the shortest.

        What an import runs, or holds no code of its own, may matter to any test; those that reach the file come first.
        """
        lines = self.lines.get(file, {})
        groups = [lines.get(line, {OUTSIDE})]
        if OUTSIDE in groups[0]:
            groups += [set[str]().union(*lines.values()), set(self.seconds)]
        own, room, done = f"test_{Path(file).stem}.py", Path(file).parts[1], {OUTSIDE}

        def place(turn: tuple[str, set[str]]) -> tuple[int, float]:
            kin = (Path(turn[0]).parts[1] == room) + (Path(turn[0]).name == own)
            return -kin, sum(self.seconds[test] for test in turn[1])

        for group in groups:
            found = defaultdict[str, set[str]](set)
            for test in group - done:
                found[test.partition("::")[0]].add(test)
            yield from sorted(found.items(), key=place)
            done |= group


class Planted:
    """Finds the changed module; all others are found as usual."""

    def __init__(self, file: str, line: int, source: str, interpreted: Collection[str]) -> None:
        self.file, self.line, self.interpreted = file, line, interpreted
        self._name, self._source = ".".join(Path(file).with_suffix("").parts), source

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """As an import asks for it."""
        if name != self._name:
            return None
        spec = PathFinder.find_spec(name, path, target)
        assert spec is not None, name
        assert spec.origin is not None, name
        spec.loader = _Loader(name, spec.origin, self._source)
        return spec


def record(copy: Path, folder: Path) -> None:
    """In a child: run all tests and leave in `folder` what they reach; exits 0 when they pass."""
    _enter(copy, folder)
    _compile_only(lambda module: module.startswith("npstream.model."))
    recorder = _Recorder(copy)
    threading.settrace(recorder.trace)
    sys.settrace(recorder.trace)
    code = _pytest(folder, recorder, *(f"tests/{each}" for each in TESTS))
    sys.settrace(None)
    (folder / REACH).write_bytes(pickle.dumps(recorder.reach()))
    sys.exit(code)


def plant(copy: Path, folder: Path, change: Planted, reach: Reach) -> None:
    """In a child: run the tests with the change until one fails; exits 0 when all pass that could notice."""
    _enter(copy, folder)
    sys.meta_path.insert(0, change)
    _compile_only(lambda module: module not in change.interpreted)
    for file, tests in reach.turns(change.file, change.line):
        code = _pytest(folder, _Chosen(folder, reach.seconds, tests), "-x", file)
        if code:
            sys.exit(code)


def last_test(folder: Path) -> str:
    """The test that a child was at when it ended; where there is none, it failed before."""
    path = folder / _LAST
    return path.read_text() if path.exists() else "collecting the tests"


def _enter(copy: Path, folder: Path) -> None:
    """Nothing of the program or its tests is imported after this, and all that will be is the copy's."""
    with (folder / REPORT).open("wb") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy)
    sys.path.insert(0, str(copy))
    for name in [name for name in sys.modules if name.partition(".")[0] in ("npstream", "tests")]:
        del sys.modules[name]


def _pytest(folder: Path, plugin: object, *options: str) -> int:
    steady = ["--hypothesis-seed=1", "-p", "no:cacheprovider", f"--basetemp={folder}/tmp"]
    return int(pytest.main(["--quick", "-q", *steady, *options], [plugin, _Profile()]))


def _compile_only(wanted: Callable[[str], bool]) -> None:
    jit: Any = importlib.import_module("npstream.jit")
    compiled = jit._compile
    jit._compile = lambda function, *, inline: (
        compiled(function, inline=inline) if wanted(function.__module__) else function
    )


class _Profile:
    """Property tests without what only helps a reader: the smallest example, and what failed before."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        quick = settings.get_profile("quick")
        settings.register_profile("mutants", quick, phases=(Phase.explicit, Phase.generate), database=None)
        settings.load_profile("mutants")


class _Chosen:
    """Takes some tests, the shortest first, says which is at work, and ends the process when one does not end."""

    def __init__(self, folder: Path, seconds: dict[str, float], tests: set[str]) -> None:
        self._last, self._seconds, self._tests = folder / _LAST, seconds, tests

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        yield
        items[:] = [item for item in items if item.nodeid in self._tests]
        items.sort(key=lambda item: self._seconds[item.nodeid])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._last.write_text(item.nodeid)
        signal.setitimer(signal.ITIMER_PROF, _WHILE_S + _TIMES * self._seconds[item.nodeid])


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec")


class _Recorder:
    """Traces the program's files, test by test; a function whose lines a test has all seen is traced no further."""

    def __init__(self, copy: Path) -> None:
        self._root = f"{copy}/npstream/"
        self._cut = len(str(copy)) + 1
        self._seconds: dict[str, float] = {}
        self._lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._code: dict[CodeType, frozenset[int]] = {}
        self._missing: dict[int, tuple[CodeType, set[int]]] = {}

    def trace(self, frame: FrameType, _event: str, _arg: object) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(self._root):
            return None
        known = self._missing.get(id(code))
        if known is None:
            known = self._missing[id(code)] = code, set(self._lines_of(code))
        return self._line if known[1] else None

    def _line(self, frame: FrameType, event: str, _arg: object) -> Any:
        if event == "line":
            known = self._missing.get(id(frame.f_code))
            if known is not None:
                known[1].discard(frame.f_lineno)
        return self._line

    def _lines_of(self, code: CodeType) -> frozenset[int]:
        if code not in self._code:
            self._code[code] = frozenset(line for *_, line in code.co_lines() if line) - {code.co_firstlineno}
        return self._code[code]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._take(OUTSIDE)
        begin = time.process_time()
        result = yield
        self._seconds[item.nodeid] = time.process_time() - begin
        self._take(item.nodeid)
        return result

    def _take(self, test: str) -> None:
        seen, self._missing = self._missing, {}
        for code, missing in seen.values():
            lines = self._lines[code.co_filename[self._cut :]]
            for line in self._lines_of(code) - missing | {code.co_firstlineno}:
                lines[line].add(test)

    def reach(self) -> tuple[object, ...]:
        """The fields of a `Reach`, which the parent knows by another class of that name."""
        self._take(OUTSIDE)
        return self._seconds, {
            file: {line: lines[line] for line in _code_lines(Path(self._root[: self._cut], file))}
            for file, lines in self._lines.items()
        }


def _code_lines(path: Path) -> set[int]:
    found, waiting = set(), [compile(path.read_text(), str(path), "exec")]
    while waiting:
        code = waiting.pop()
        found |= {line for *_, line in code.co_lines() if line}
        waiting += [each for each in code.co_consts if isinstance(each, CodeType)]
    return found
