"""Installing from a checkout: the wheel has what the program needs, and nothing for contributors."""

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from npstream import __version__
from tests.docs.pages import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built as the README says, with the build backend that is there."""
    folder = tmp_path_factory.mktemp("dist")
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT))
    (built,) = folder.glob("npstream-*.whl")
    return built


def pip(*arguments: str) -> None:
    """Run pip, quietly."""
    words = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(words, check=True, timeout=120)


def test_the_wheel_starts(wheel: Path, tmp_path: Path) -> None:
    """Installed somewhere else, the program is there, with its page."""
    pip("install", "--no-deps", "--no-index", "--target", str(tmp_path), str(wheel))
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


def test_the_wheel_has_no_documents(wheel: Path) -> None:
    """Pages for readers of the source stay there: their links lead nowhere in an installed package."""
    with ZipFile(wheel) as archive:
        names = archive.namelist()

    assert [name for name in names if name.endswith(".md")] == []
    assert "npstream/monitor/page.html" in names
