"""What `make dist` makes: the wheel has what the program needs, and nothing for contributors."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

from npstream import __version__
from tests.docs.pages import ROOT


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive of this checkout, as `make dist` makes them."""
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder, "sdist", "wheel")
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    """The wheel of this checkout."""
    (found,) = built.glob("npstream-*.whl")
    return found


def build(source: Path, folder: Path, *targets: str) -> None:
    """Build with the backend that is there."""
    words = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    wanted = [word for target in targets for word in ("-t", target)]
    subprocess.run([*words, *wanted], cwd=source, check=True, capture_output=True, timeout=120)


def test_the_wheel_starts(wheel: Path, tmp_path: Path) -> None:
    """Unpacked somewhere else, the program is there, with its page."""
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    program = "from npstream.cli import main; from npstream.monitor import page; page.live_page(); print(page.__file__)"

    done = subprocess.run(
        [sys.executable, "-c", f"{program}; main()", "--version"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert done.stdout.splitlines() == [
        str(tmp_path / "npstream" / "monitor" / "page.py"),
        f"npstream, version {__version__}",
    ]


def test_the_source_archive_gives_the_same_wheel(built: Path, wheel: Path, tmp_path: Path) -> None:
    """Nothing that the wheel is made of is missing in it."""
    (archive,) = built.glob("npstream-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")

    build(tmp_path / archive.name.removesuffix(".tar.gz"), tmp_path, "wheel")

    with ZipFile(wheel) as expected, ZipFile(tmp_path / wheel.name) as found:
        contents = [{name: each.read(name) for name in each.namelist()} for each in (expected, found)]
    assert contents[0] == contents[1]


def test_the_wheel_has_no_documents(wheel: Path) -> None:
    """Pages for readers of the source stay there: their links lead nowhere in an installed package."""
    with ZipFile(wheel) as archive:
        names = archive.namelist()

    assert [name for name in names if name.endswith(".md")] == []
    assert "npstream/monitor/web/index.html" in names
