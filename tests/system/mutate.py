"""`make mutants`: every deliberate bug against the test that must catch it, `python -m tests.system.mutate [NAME...]`.

Also the pytest plugin that brings a bug into a test process.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.broker import Kafka, provide_kafka
from tests.broker.provider import ADDRESS_VARIABLE
from tests.system.mutants import MUTANTS, VARIABLE, apply_from_environment

ROOT = Path(__file__).parents[2]
_TIMEOUT_S = 600


def pytest_configure() -> None:
    """Before any test is imported."""
    apply_from_environment()


def main() -> int:
    """1 when a test fails without its mutant, or a mutant survives."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="python -m tests.system.mutate")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all of {', '.join(MUTANTS)}")
    names: Sequence[str] = parser.parse_args().names or tuple(MUTANTS)
    with tempfile.TemporaryDirectory(prefix="npstream-mutants-") as scratch, provide_kafka(Path(scratch)) as kafka:
        wrong = [name for name in names if not _caught(name, kafka)]
        sound = _passes({MUTANTS[name].caught_by for name in names}, kafka)
    print(
        f"{len(names) - len(wrong)} of {len(names)} mutants caught" + (f"; alive: {', '.join(wrong)}" if wrong else "")
    )
    return 0 if sound and not wrong else 1


def _caught(name: str, kafka: Kafka) -> bool:
    mutant = MUTANTS[name]
    done = _pytest([mutant.caught_by], {VARIABLE: name, ADDRESS_VARIABLE: kafka.bootstrap})
    caught = done.returncode == 1 and re.search(mutant.says, done.stdout) is not None
    print(f"{'caught  ' if caught else 'SURVIVED'} {name}: {mutant.bug} ({mutant.caught_by})", flush=True)
    if not caught:
        print(done.stdout[-3000:], done.stderr[-1000:])
    return caught


def _passes(tests: set[str], kafka: Kafka) -> bool:
    done = _pytest(sorted(tests), {ADDRESS_VARIABLE: kafka.bootstrap})
    print(
        "the tests pass without mutants" if done.returncode == 0 else f"FAILED without mutants\n{done.stdout[-3000:]}"
    )
    return done.returncode == 0


def _pytest(tests: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "tests.system.mutate", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, *tests],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main())
