"""A small Debian for arm64, run by qemu's user emulation: its Python, and npstream's locked requirements."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.fetching import CACHE, Missing, put, run_tool

PROJECT = Path(__file__).parents[2]
LOCK = PROJECT / "deploy/requirements.txt"
HOME = CACHE / "arm64"
# No folder but this is written: compiled code and bytecode of both machines stay apart.
_KEPT = {"NUMBA_CACHE_DIR": str(HOME / "numba"), "PYTHONPYCACHEPREFIX": str(HOME / "bytecode")}

_EMULATOR = "qemu-aarch64-static"
_PACKAGES = {_EMULATOR: "qemu-user-static", "debootstrap": "debootstrap", "dpkg-deb": "dpkg", "tar": "tar"}
_RELEASE = "bookworm"
"""The one whose Python is the image's."""
_PYTHON = "usr/bin/python3.11"
_INCLUDE = "python3.11-minimal,libpython3.11-stdlib,libstdc++6"
_WHEELS = ["--python-platform", "aarch64-manylinux_2_28", "--python-version", "3.11", "--only-binary", ":all:"]
_ROOT = HOME / _RELEASE

Which = Callable[[str], str | None]


def ensure_machine() -> None:
    """Fetch what is not there yet. Each part appears whole or not at all, so what was interrupted is repeated.

    Raises `Missing`.
    """
    check_tools(shutil.which, os.geteuid(), have_root=_have_root())
    HOME.mkdir(parents=True, exist_ok=True)
    if not _have_root():
        _fetch_root()
    if not _site().exists():
        _fetch_requirements()


def check_tools(which: Which, user: int, *, have_root: bool) -> None:
    """Raises `Missing` that says which packages to install, or that only root can make the first start."""
    needed = [_EMULATOR] if have_root else list(_PACKAGES)
    absent = [_PACKAGES[tool] for tool in needed if which(tool) is None]
    if absent:
        raise Missing(f"arm64 is emulated by Debian's tools; as root: apt-get install {' '.join(absent)}")
    if not have_root and user != 0:
        raise Missing("debootstrap unpacks Debian for arm64 only as root; run this once as root, then as anybody")


def run_on(cpu: str, module: str, timeout_s: float) -> str:
    """What a module of the project writes, run there and compiled for a processor. Raises `CalledProcessError`."""
    environment = {
        **_KEPT,
        "PATH": os.environ["PATH"],
        "HOME": str(HOME),
        "PYTHONPATH": f"{PROJECT}:{_site()}",
        "NUMBA_CPU_NAME": cpu,
        "NUMBA_CPU_FEATURES": "",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [_EMULATOR, "-L", str(_ROOT), str(_ROOT / _PYTHON), "-m", module]
    done = subprocess.run(
        command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True, timeout=timeout_s, check=True
    )
    return done.stdout


def _have_root() -> bool:
    return (_ROOT / _PYTHON).exists()


def _fetch_root() -> None:
    """Unpacked, not configured: a Python needs no more, and configuring would start hundreds of emulated programs."""
    with tempfile.TemporaryDirectory(dir=HOME, prefix="debian-") as scratch:
        fresh = Path(scratch) / _RELEASE
        command = ["debootstrap", "--arch=arm64", "--foreign", "--variant=minbase", f"--include={_INCLUDE}"]
        run_tool([*command, _RELEASE, str(fresh)], "fetch Debian for arm64", HOME)
        unpack = f"dpkg-deb --fsys-tarfile \"$0\" | tar -x --keep-directory-symlink -C '{fresh}'"
        for package in sorted((fresh / "var/cache/apt/archives").glob("*.deb")):
            run_tool(["sh", "-c", unpack, str(package)], f"unpack {package.name}", HOME)
        put(fresh, _ROOT, _have_root)


def _site() -> Path:
    """The folder of the requirements as they are locked now."""
    return HOME / f"site-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]}"


def _fetch_requirements() -> None:
    with tempfile.TemporaryDirectory(dir=HOME, prefix="site-") as scratch:
        fresh = Path(scratch) / "site"
        command = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--target", str(fresh), *_WHEELS]
        run_tool([*command, "--require-hashes", "-r", str(LOCK)], "fetch the requirements for arm64", HOME)
        put(fresh, _site(), _site().exists)
