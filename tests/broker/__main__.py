"""`make kafka`: the tests' broker in the foreground, until Ctrl-C."""

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.broker import JarKafka, local_jars
from tests.broker.jars import ensure_jars
from tests.fetching import exit_code


def main() -> int:
    """Run until interrupted. The data is kept only when `--data` names a folder for it."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.broker")
    parser.add_argument("--port", type=int, default=9092)
    parser.add_argument("--data", type=Path, help="keep the data in this folder (default: forget it at the end)")
    parser.add_argument("--fetch-only", action="store_true", help="fetch the jars where they are absent, run nothing")
    options = parser.parse_args()
    if options.fetch_only:
        ensure_jars()
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="npstream-kafka-") as scratch:
        return _serve(JarKafka(local_jars(), options.data or Path(scratch), port=options.port))


def _serve(broker: JarKafka) -> int:
    try:
        broker.start()
        print(f"Kafka is ready at {broker.bootstrap} after {broker.start_s:.1f} s; log {broker.log}; Ctrl-C stops it")
        return broker.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        broker.stop()


if __name__ == "__main__":
    sys.exit(exit_code(main))
