"""`make registry`: compile the tests' registry server, if it is not there yet."""

import sys

from tests.registry.build import ServerMissing, ensure_server


def main() -> int:
    """Build, or say why not."""
    try:
        ensure_server()
    except ServerMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
