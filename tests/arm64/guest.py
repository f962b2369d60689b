"""What the emulated machine computes: the golden digests, and what of its compiled code fuses."""

import platform

from tests.model import fused
from tests.model.digest_of_run import RUNS, digest


def main() -> None:
    """One line for the machine, one for each run, one for each compiled function."""
    print("machine", platform.machine(), flush=True)
    for name in RUNS:
        print("digest", name, digest(name), flush=True)
    for name, instructions in fused.of_this_process():
        print("function", name, *instructions)


if __name__ == "__main__":
    main()
