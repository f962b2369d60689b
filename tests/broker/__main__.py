"""`make kafka`: the tests' broker in the foreground, until Ctrl-C."""

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.broker import JarKafka, NoKafka, local_jars
from tests.broker.jars import JarsMissing, ensure_jars


def main() -> int:
    """Run until interrupted. The data is kept only when `--data` names a folder for it."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.broker")
    parser.add_argument("--port", type=int, default=9092)
    parser.add_argument("--data", type=Path, help="keep the data in this folder (default: forget it at the end)")
    parser.add_argument("--fetch-only", action="store_true", help="fetch the jars where they are absent, run nothing")
    options = parser.parse_args()
    if options.fetch_only:
        return _fetch()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="npstream-kafka-") as scratch:
        try:
            return _serve(JarKafka(local_jars(), options.data or Path(scratch), port=options.port))
        except NoKafka as missing:
            print(missing, file=sys.stderr)
            return 1


def _fetch() -> int:
    try:
        ensure_jars()
    except JarsMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


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
    sys.exit(main())
