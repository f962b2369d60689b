"""The README tells the truth: generated parts are in step, and what it shows runs."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.docs.generated import README, SECTIONS, rendered

ROOT = README.parent
TEXT = README.read_text()


def blocks(language: str) -> list[str]:
    """The README's code blocks in one language."""
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def commands() -> list[str]:
    """Every npstream command line of the README's shell blocks."""
    lines = "\n".join(blocks("sh")).replace("\\\n", " ").splitlines()
    return [line.split("  #")[0].strip() for line in lines if line.startswith("npstream ")]


def test_generated_parts_are_in_step() -> None:
    """`make docs` would change nothing, and every part has its place."""
    assert rendered(TEXT) == TEXT
    assert all(f"<!-- begin {name} -->" in TEXT for name in SECTIONS)


@pytest.mark.parametrize("block", blocks("python"), ids=lambda block: block.splitlines()[0])
def test_python_examples_run(block: str) -> None:
    """Each Python example runs as it stands."""
    exec(compile(block, "README.md", "exec"), {})


def test_shell_examples_run(tmp_path: Path) -> None:
    """The npstream commands run in order, in an empty folder with a small data set."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(600) < 0.3, 1, -1).astype(np.int8)
    x = (rng.normal(size=(600, 2)) + y[:, None]).astype(np.float32)
    np.savez(tmp_path / "data.npz", X=x, y=y)
    (tmp_path / "config").symlink_to(ROOT / "config")
    assert commands()
    for line in commands():
        done = subprocess.run(
            [sys.executable, "-m", *line.split()],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, (line, done.stderr)


def test_links_lead_somewhere() -> None:
    """Every relative link names a file of the repository."""
    targets = re.findall(r"\]\((?!http|#)([^)#]+)", TEXT)
    assert targets
    missing = [target for target in targets if not (ROOT / target).exists()]
    assert missing == []
