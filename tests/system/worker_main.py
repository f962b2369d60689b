"""One worker as a process of its own: `python -m tests.system.worker_main SPEC.json`.

Logs JSON lines to standard output. SIGTERM asks it to stop politely, SIGUSR1
to say where it is. With
`NPSTREAM_MUTANT` set it runs with that deliberate bug; production code knows
nothing of it.
"""

import ctypes
import faulthandler
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path

import structlog

from npstream.cli.exits import code_of
from npstream.codec import chunks
from npstream.errors import NpstreamError
from npstream.kafka import KafkaBroker, KafkaLog
from npstream.model import Model
from npstream.observe import Observer
from npstream.partition import segments
from npstream.port import Broker, Log
from npstream.worker import Cadence, Limits, Origin, Worker
from tests.stage.spec import WorkerSpec
from tests.system import mutants

_PR_SET_PDEATHSIG = 1
_SEGMENT_ENTRIES = 40
"""Some of the observations that wait: so that segments are written, named and removed throughout a run."""


def main(path: Path) -> int:
    """Run until SIGTERM or an error; returns the documented exit code."""
    _die_with_parent()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    mutants.apply_from_environment()
    _log_json()
    spec = WorkerSpec.from_json(path.read_bytes())
    chunks.CHUNK_MAX_BYTES = spec.chunk_bytes
    segments.ENTRIES_MAX = _SEGMENT_ENTRIES
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    log = structlog.get_logger("system")
    # Compiled before a partition is owned, as the command does it: a group waits for each of its members.
    Model.create(spec.config.params).learn_one([0.0] * spec.config.params.d, -1)
    log.info("started", pid=os.getpid())
    try:
        _worker(spec, stop).run()
    except NpstreamError as error:
        log.error("ended", kind=type(error).__name__, cause=str(error))
        return code_of(error)
    return 0


class _Narrator(Observer):
    """Says when a restore begins, which the worker itself logs only when it is done."""

    def restoring(self, partition: int) -> None:
        """The position is about to be read."""
        structlog.get_logger("system").info("restoring", partition=partition)


def _worker(spec: WorkerSpec, stop: threading.Event) -> Worker:
    cadence = Cadence(every_events=spec.every_events, every_seconds=spec.every_seconds)
    origin = Origin(spec.group, spec.topics.events, spec.config, cadence)
    limits = Limits(batch_max=spec.batch_max, recover_s=spec.recover_s)

    def connect() -> tuple[Broker, Log]:
        config = spec.kafka()
        return KafkaBroker(config, stopping=stop.is_set), KafkaLog(config)

    return Worker(connect, origin, limits, time.monotonic, stop, _Narrator())


def _die_with_parent() -> None:
    """A test that is killed must leave no worker behind."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


def _log_json() -> None:
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(name)s %(levelname)s %(message)s")
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.JSONRenderer(),
        ]
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
