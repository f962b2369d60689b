"""The registry server of the tests, compiled once and kept.

The module needs Go 1.23, and Debian 12 has 1.19. So where there is no `go`, or an
older one, a compiler comes from the package index by its hash, as everything else
that the tests install.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fetching import CACHE, put, run_tool

SOURCES = Path(__file__).parent / "server"

_REQUIREMENTS = Path(__file__).with_name("go-requirements.txt")
_FETCHED_GO = CACHE / "go" / "go" / "bin" / "go"
_GO_MIN = (1, 23)


def ensure_server() -> Path:
    """The compiled server, built again when its sources have changed. Raises `Missing`."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(SOURCES.iterdir()))).hexdigest()
    binary = CACHE / f"registry-{digest[:16]}"
    if not binary.is_file():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE, prefix="registry-build-") as scratch:
            fresh = Path(scratch) / "registry"
            # CGO off: no C compiler is needed, and the binary runs on any machine that shares the cache.
            environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}
            command = [str(_find_go()), "build", "-o", str(fresh), "."]
            run_tool(command, "build the registry server", SOURCES, environment)
            os.replace(fresh, binary)  # whole or not at all; several processes may build it at once
    return binary


def _find_go() -> Path:
    installed = shutil.which("go")
    if installed is not None and _version(installed) >= _GO_MIN:
        return Path(installed)
    if not _FETCHED_GO.is_file():
        with tempfile.TemporaryDirectory(dir=CACHE, prefix="go-fetch-") as scratch:
            fresh = Path(scratch) / "go"
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
            command += ["--require-hashes", "--target", str(fresh), "-r", str(_REQUIREMENTS)]
            run_tool(command, f"fetch Go, and {_described(installed)}", SOURCES)
            put(fresh, _FETCHED_GO.parents[2], _FETCHED_GO.is_file)
    return _FETCHED_GO


def _version(go: str) -> tuple[int, ...]:
    done = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, timeout=60, check=False)
    found = re.match(r"go(\d+)\.(\d+)", done.stdout)
    return (0,) if found is None else tuple(map(int, found.groups()))


def _described(installed: str | None) -> str:
    return "there is no `go` on the path" if installed is None else f"{installed} is older than 1.23"
