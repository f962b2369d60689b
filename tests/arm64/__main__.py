"""`make arm64`: the golden digests on an emulated arm64, compiled for several processors."""

import argparse
import sys
import time

from tests.arm64.machine import ensure_machine, run_on
from tests.fetching import exit_code
from tests.model.test_determinism import GOLDEN

# Any arm64, as in the image; and what cloud providers have, without and with scalable vectors.
PROCESSORS = ("generic", "neoverse-n1", "neoverse-v1")
_TIMEOUT_S = 3600.0


def main() -> int:
    """0 when every digest is the golden one and no function holds a fused multiply-add."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.arm64")
    parser.add_argument("--processors", nargs="+", default=PROCESSORS, metavar="NAME", help="as LLVM names them")
    options = parser.parse_args()
    ensure_machine()
    held = [_holds(cpu) for cpu in options.processors]
    return 0 if all(held) else 1


def _holds(cpu: str) -> bool:
    started = time.monotonic()
    machine, digests, functions = _parse(run_on(cpu, "tests.arm64.guest", _TIMEOUT_S))
    assert machine == "aarch64", f"the emulator ran code for {machine}"
    for name, expected in GOLDEN.items():
        found = digests.get(name, "none")
        print(f"{cpu:12} {name:16} {found} {'as on x86-64' if found == expected else f'DIFFERS: {expected}'}")
    fusing = [f"{name}: {' '.join(found)}" for name, found in functions.items() if found]
    same = sum(digests.get(name) == expected for name, expected in GOLDEN.items())
    print(
        f"{cpu}: {same} of {len(GOLDEN)} digests are those of x86-64; {len(fusing)} of {len(functions)} compiled "
        f"functions hold a fused multiply-add; {time.monotonic() - started:.0f} s"
    )
    print(*fusing, sep="\n", end="")
    return same == len(GOLDEN) and not fusing and bool(functions)


def _parse(text: str) -> tuple[str, dict[str, str], dict[str, list[str]]]:
    """The machine, its digests by run, and the fused instructions of each compiled function."""
    machine, digests, functions = "none", dict[str, str](), dict[str, list[str]]()
    for kind, name, *rest in (line.split() for line in text.splitlines()):
        if kind == "machine":
            machine = name
        elif kind == "digest":
            digests[name] = rest[0]
        elif kind == "function":
            functions[name] = rest
    return machine, digests, functions


if __name__ == "__main__":
    sys.exit(exit_code(main))
