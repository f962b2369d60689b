"""Which processor to compile for: the best of those whose machine code is there already, as in the image.

Code that was made before is worth more than code that fits exactly: it is there
at once, and all replicas run the same instructions. The results are the same bits
for any of them.
"""

import os
import platform
from collections.abc import MutableMapping
from pathlib import Path

BAKED = "NPSTREAM_BAKED_CPUS"
"""The variable that names them, the best first; the image sets it."""

_NEEDS = {
    "x86-64-v3": frozenset(["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"]),
    "x86-64-v2": frozenset(["cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"]),
    "x86-64": frozenset[str](),
}
"""What the levels of x86-64 ask for, as Linux names it; each asks for those below it as well."""


def choose_processor(environment: MutableMapping[str, str], machine: str, cpuinfo: str) -> None:
    """Name the processor for the compiler in `environment`, unless that was done or nothing was made before."""
    baked = environment.get(BAKED, "").split()
    if baked and "NUMBA_CPU_NAME" not in environment:
        environment["NUMBA_CPU_NAME"] = best_of(baked, machine, cpuinfo)


def best_of(baked: list[str], machine: str, cpuinfo: str) -> str:
    """The first of these that this machine has; where it has none, the least that every machine of its kind is."""
    if machine != "x86_64":
        return "generic"
    flags = next(
        (set(line.partition(":")[2].split()) for line in cpuinfo.splitlines() if line.startswith("flags")), set()
    )
    levels = list(_NEEDS)
    for name in baked:
        if name in _NEEDS and all(_NEEDS[level] <= flags for level in levels[levels.index(name) :]):
            return name
    return "x86-64"


def choose_for_this_process() -> None:
    """The same for this process; before numba is imported, or it is too late."""
    path = Path("/proc/cpuinfo")
    choose_processor(os.environ, platform.machine(), path.read_text() if path.exists() else "")
