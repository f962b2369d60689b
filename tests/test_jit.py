"""The compiled code's cache: never stale, never in the way."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from npstream import jit

HELPER = """
from room.jit import jit
@jit
def helper(x: float) -> float:
    return 2.0 * x
"""
CALLER = """
from room.helper import helper
from room.jit import jit
@jit
def caller(x: float) -> float:
    return helper(x) + 1.0
if __name__ == "__main__":
    print(caller(10.0), sum(caller.stats.cache_hits.values()))
"""


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A package with a copy of the decorator, a compiled helper and its compiled caller in another file."""
    package = tmp_path / "room"
    package.mkdir()
    (package / "__init__.py").touch()
    shutil.copy(jit.__file__, package / "jit.py")
    (package / "helper.py").write_text(HELPER)
    (package / "caller.py").write_text(CALLER)
    return tmp_path


def run(room: Path, **environment: str) -> tuple[float, int]:
    """What the caller returns in a new process, and how many of its functions came from the cache."""
    done = subprocess.run(
        [sys.executable, "-m", "room.caller"],
        env=os.environ | {"PYTHONPATH": f"{room}{os.pathsep}{Path(jit.__file__).parents[1]}"} | environment,
        cwd=room,
        capture_output=True,
        text=True,
        timeout=150,
        check=True,
    )
    value, hits = done.stdout.split()
    return float(value), int(hits)


@pytest.mark.slow
def test_a_changed_helper_leaves_no_stale_code(room: Path) -> None:
    """Editing a function in another file reaches its cached callers, even with an unchanged time stamp."""
    first, second = run(room), run(room)
    helper = room / "room" / "helper.py"
    stamp = helper.stat()
    helper.write_text(HELPER.replace("2.0", "7.0"))
    os.utime(helper, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    third = run(room)

    assert first == (21.0, 0)
    assert second == (21.0, 1)
    assert third == (71.0, 0)


@pytest.mark.slow
def test_a_file_beside_the_package_leaves_the_cache_alone(room: Path) -> None:
    """What lies next to the package, in a checkout or among installed packages, is none of its sources."""
    first = run(room)
    (room / "beside.py").write_text(HELPER)

    assert (first, run(room)) == ((21.0, 0), (21.0, 1))


@pytest.mark.slow
def test_no_writable_directory_is_no_error(room: Path) -> None:
    """Where no cache can be kept the functions are compiled in memory."""
    nowhere = room / "nowhere"
    nowhere.write_text("a file, so that no directory can be made below it")
    (room / "room" / "__pycache__").write_text("likewise")
    blocked = {"HOME": str(nowhere), "XDG_CACHE_HOME": str(nowhere), "PYTHONDONTWRITEBYTECODE": "1"}

    assert run(room, **blocked) == (21.0, 0)
    assert run(room, **blocked) == (21.0, 0)


CONSTANTS = """
from pathlib import Path
from room.jit import jit
@jit
def chosen(kind: int, doubled: bool) -> int:
    return 2 * kind if doubled else kind
@jit
def both(kind: int, doubled: bool) -> int:
    return chosen(kind, doubled) + chosen(7, True)
if __name__ == "__main__":
    print(both(3, False), len([*Path(chosen.stats.cache_path).glob("*chosen*.nbc")]))
"""


@pytest.mark.slow
def test_a_constant_and_a_variable_share_one_compilation(room: Path) -> None:
    """A function that is called with a constant here and with a variable there is compiled once."""
    (room / "room" / "caller.py").write_text(CONSTANTS)

    assert run(room) == (17.0, 1)


ANOTHER_NUMBA = """
import numba
numba.__version__ = "0.1"
"""


@pytest.mark.slow
def test_another_numba_compiles_every_function_in_full(room: Path) -> None:
    """Where the compiler's inner parts may be others the results are the same, and the cache serves them."""
    (room / "room" / "__init__.py").write_text(ANOTHER_NUMBA)

    assert [run(room), run(room)] == [(21.0, 0), (21.0, 1)]


@pytest.mark.slow
def test_a_part_may_be_called_from_python_too(room: Path) -> None:
    """Before and after the compiled function that takes it in, in the same process."""
    caller = CALLER.replace("print(caller(10.0),", "print(helper(10.0) + caller(10.0) - helper(10.0),")
    (room / "room" / "caller.py").write_text(caller)

    assert run(room) == (21.0, 0)
