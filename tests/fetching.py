"""What is fetched or built once for all tests and kept in `.cache`: the broker's jars, the registry's server."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

CACHE = Path(__file__).parents[1] / ".cache"
_TIMEOUT_S = 600


class Missing(Exception):
    """Something that tests need is not here, and could not be fetched. The message says what to install or set."""


def run_tool(command: list[str], what: str, folder: Path, environment: Mapping[str, str] | None = None) -> None:
    """Run a program that fetches or builds. Raises `Missing`, saying that it cannot `what`."""
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"cannot {what}: not done within {_TIMEOUT_S} s; check the network") from None
    if done.returncode != 0:
        raise Missing(f"cannot {what}; check the network\n{(done.stdout + done.stderr)[-2000:]}")


def put(fresh: Path, target: Path, is_there: Callable[[], bool]) -> None:
    """Move a folder to its place, whole or not at all."""
    try:
        os.rename(fresh, target)
    except OSError:
        # Somebody else fetched at the same time: theirs is as good as ours.
        if not is_there():
            raise


def exit_code(main: Callable[[], int]) -> int:
    """Run a program; when what it needs is missing, say so."""
    try:
        return main()
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 1
