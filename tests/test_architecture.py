"""What import contracts cannot say: who may name numba, what the worker may load, how long a file may be."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "npstream"
SOURCES = sorted(PACKAGE.rglob("*.py"))
LINES_MAX = 400

# What every room may import: values, errors, the ports, metrics, and what a process needs once.
BASE = (
    "npstream",
    "records",
    "arrays",
    "errors",
    "observe",
    "port",
    "failpoints",
    "jit",
    "parts",
    "processor",
    "jobs",
    "logs",
    "secrets",
)
# Commands may use every room; every other room names those it uses.
COMMANDS = ("cli", "__main__")
MAY_IMPORT = {
    "demo": "replay partition client model report",
    "testing": "app backend settings worker embedded client codec",
    "estimator": "settings data codec model",
    "app": "backend settings worker monitor partition model",
    "backend": "settings doctor kafka embedded schemas partition",
    "schemas": "settings registry partition codec",
    "settings": "worker kafka partition codec model",
    "bench": "state worker history monitor kafka embedded registry partition codec model",
    "worker": "state partition codec model",
    "replay": "data partition codec model report",
    "history": "state partition codec model report",
    "study": "data model partition report",
    "doctor": "state monitor kafka partition codec model",
    "monitor": "state partition codec model report",
    "kafka": "codec",
    "embedded": "codec",
    "registry": "codec",
    "data": "client codec",
    "state": "partition codec",
    "partition": "codec model",
    "client": "registry codec",
    "codec": "model",
    "model": "",
    "report": "",
}

# All that a running worker may load. Tools and experiments may load more, later, in their own process.
WORKER_ROOMS = (
    "app",
    "backend",
    "schemas",
    "settings",
    "worker",
    "monitor",
    "kafka",
    "embedded",
    "partition",
    "codec",
    "model",
)
# Of scipy the parts: numba loads its top for a version check where it is installed.
NOT_IN_A_WORKER = {
    *("sklearn", "scipy.special", "scipy.stats", "scipy.linalg", "pyarrow", "pandas", "matplotlib"),
    *("npstream.registry", "fastavro", "google.protobuf", "grpc_tools", "grpc"),
}

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


def imported_modules(source: Path) -> Iterator[str]:
    """Every module of the package that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(source.read_text(), str(source))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "npstream")
        elif isinstance(node, ast.ImportFrom) and node.module == "npstream":
            yield from (f"npstream.{alias.name}" for alias in node.names if alias.name != "__version__")
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("npstream."):
            yield node.module


def room_of(module: str) -> str:
    """The room a module lies in: the first name below the package."""
    return [*module.split("."), "npstream"][1]


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


def test_only_the_decorator_names_numba() -> None:
    """Every compiled function carries the one decorator, so that no option of the compiler is set elsewhere."""
    named = [str(path.relative_to(PACKAGE)) for path in SOURCES if "numba" in imported(path)]

    assert named == ["jit.py", "parts.py"]


def test_each_room_imports_what_it_names() -> None:
    """A room's imports are those of the table, no more and no fewer: a new edge is a decision, an unused one goes."""
    found: dict[str, set[str]] = {}
    for path in SOURCES:
        room = room_of(module_name(path))
        found.setdefault(room, set()).update({room_of(name) for name in imported_modules(path)} - {room, *BASE})

    assert {room: set(names.split()) for room, names in MAY_IMPORT.items()} == {
        room: names for room, names in found.items() if room not in (*BASE, *COMMANDS)
    }


def test_kafka_or_a_file_is_decided_once() -> None:
    """Only the backend asks which of the two sections is given; the settings themselves check that it is one."""
    asking = {
        str(path.relative_to(PACKAGE))
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("kafka", "embedded") and "settings" in ast.unparse(node)
    }

    assert asking == {"backend.py"}


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
    assert NOT_IN_A_WORKER & set(done.stdout.split()) == set()


def test_snapshots_come_in_through_one_door() -> None:
    """Only `state.py` makes snapshots of checkpoint records, and processors of snapshots; model files are their own."""
    users: dict[str, list[str]] = {
        name: [] for name in ("read_checkpoints", "read_history", "decode_snapshot", "from_snapshot")
    }
    for path in SOURCES:
        called = {
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call)
        }
        for name in users.keys() & called:
            users[name].append(str(path.relative_to(PACKAGE)))

    assert users == {
        "read_checkpoints": ["state.py", "testing.py"],  # the second hands the call on
        "read_history": ["state.py"],
        "decode_snapshot": ["codec/history.py", "codec/segments.py", "partition/model_file.py", "state.py"],
        "from_snapshot": ["partition/model_file.py", "state.py"],
    }


def test_a_file_is_one_noun() -> None:
    """No source file is longer than a reader can hold."""
    lengths = {str(path.relative_to(PACKAGE)): len(path.read_text().splitlines()) for path in SOURCES}

    assert {name: lines for name, lines in lengths.items() if lines > LINES_MAX} == {}


def test_a_type_has_a_name_of_its_own() -> None:
    """No two modules define a public type by the same name: whoever reads the name knows what is meant."""
    found: dict[str, list[str]] = {}
    for path in SOURCES:
        for name in defined_types(path):
            found.setdefault(name, []).append(str(path.relative_to(PACKAGE)))

    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def defined_types(source: Path) -> Iterator[str]:
    """Public classes, and aliases of types at the top of a module: names in capitals and lower case."""
    for node in ast.parse(source.read_text(), str(source)).body:
        if isinstance(node, ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
        else:
            continue
        yield from (name for name in names if re.match("[A-Z][A-Za-z0-9]*[a-z]", name))


def test_no_file_names_a_private_path() -> None:
    """Nothing in the project depends on, or names, the machine it was written on."""
    found = [f"{path.relative_to(ROOT)}: {hit.group()}" for path in shipped_texts() for hit in private_paths(path)]

    assert found == []


def test_every_folder_of_tests_is_listed() -> None:
    """The README of the tests says what each folder is for, and lists none that is gone."""
    text = (ROOT / "tests" / "README.md").read_text()
    folders = sorted({path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").glob("*/test_*.py")})

    assert re.findall(r"^\| `(\w+)` \|", text.partition("| folder |")[2], re.MULTILINE) == folders


def test_every_marker_is_explained() -> None:
    """The README of the tests has a row for each marker of the project."""
    text = (ROOT / "tests" / "README.md").read_text()
    markers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]

    assert re.findall(r"^\| `(\w+)` \|", text.partition("| folder |")[0], re.MULTILINE) == [
        *(marker.partition(":")[0] for marker in markers),
        "timeout",
    ]


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
