"""`make registry`: compile the tests' registry server, if it is not there yet."""

import sys

from tests.fetching import exit_code
from tests.registry.build import ensure_server


def main() -> int:
    """Build it."""
    ensure_server()
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
