"""What import contracts cannot say: who may name numba, what the worker may load, how long a file may be."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "npstream"
SOURCES = sorted(PACKAGE.rglob("*.py"))
LINES_MAX = 400

# All that a running worker may load. Tools and experiments may load more, later, in their own process.
WORKER_ROOMS = ("app", "settings", "worker", "ops", "kafka", "embedded", "partition", "codec", "model")
# Of scipy the parts: numba loads its top for a version check where it is installed.
NOT_IN_A_WORKER = ("sklearn", "scipy.special", "scipy.stats", "scipy.linalg", "pyarrow", "pandas", "matplotlib")

# Folders of one person or one machine.
_PRIVATE_PATH = re.compile(r"(?<![\w.~$}-])/(?:work|root|home|opt/wheels)(?=[/\"'\s]|$)", re.MULTILINE)
_TEXT = {".py", ".toml", ".txt", ".md", ".yaml", ".yml", ".json", ".xml", ".properties", ".sh", ".cfg", ".tpl", ""}
_SHIPPED = ("npstream", "tests", "config", "deploy", ".ci")


def imported(source: Path) -> Iterator[str]:
    """The top-level name of everything a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(source.read_text(), str(source))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def shipped_texts() -> Iterator[Path]:
    """Every text file of the project, without what was built or fetched."""
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.suffix in _TEXT and path.name != ".git")
    for folder in _SHIPPED:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in _TEXT and "__pycache__" not in path.parts:
                yield path


def module_name(source: Path) -> str:
    """The dotted name a source file is imported by."""
    parts = source.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_only_the_model_names_numba() -> None:
    """Compiled code lives in one room, so that the others stay readable and quick to import."""
    elsewhere = [path for path in SOURCES if PACKAGE / "model" not in path.parents]

    assert [str(path.relative_to(ROOT)) for path in elsewhere if "numba" in imported(path)] == []


def test_the_worker_path_loads_no_tool_library() -> None:
    """Importing every module a worker can reach loads none of the libraries that only tools and tests need."""
    rooms = [PACKAGE / room for room in WORKER_ROOMS]
    inside = [path for path in SOURCES if path.with_suffix("") in rooms or any(room in path.parents for room in rooms)]
    names = [module_name(path) for path in inside if path.name != "__main__.py"]
    assert names, "no room of the worker found"
    program = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)\nprint(*sys.modules)"

    done = subprocess.run(
        [sys.executable, "-c", program, *names], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stderr
    assert set(NOT_IN_A_WORKER) & set(done.stdout.split()) == set()


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_is_one_noun(source: Path) -> None:
    """No source file is longer than a reader can hold."""
    assert len(source.read_text().splitlines()) <= LINES_MAX


def test_no_file_names_a_private_path() -> None:
    """Nothing in the project depends on, or tells of, the machine it was written on."""
    found = [f"{path.relative_to(ROOT)}: {hit.group()}" for path in shipped_texts() for hit in private_paths(path)]

    assert found == []


def private_paths(path: Path) -> Iterator[re.Match[str]]:
    """Each mention of a private path in one file."""
    return _PRIVATE_PATH.finditer(path.read_text(errors="replace"))


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt", "requirements-build.txt"])
def test_the_lock_has_hashes_and_no_addresses(name: str) -> None:
    """Every requirement is pinned with hashes, and no index, link or path of a machine is in the lock."""
    text = (ROOT / "deploy" / name).read_text()
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    options = [line for line in lines if line.startswith("-") or "://" in line or " @ " in line]
    requirements = re.split(r"\n(?=\S)", "\n".join(lines))

    assert options == []
    assert [block for block in requirements if "==" not in block or "--hash=sha256:" not in block] == []
