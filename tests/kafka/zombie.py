"""A worker in a process of its own that stops itself at a failpoint, until the test continues it.

Sleeping would not do: the client's own threads would go on sending heartbeats.
`python -m tests.kafka.zombie JSON PLACE...` with changes of the configuration.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from npstream import failpoints
from npstream.errors import NpstreamError
from tests.contracts.builders import PATIENCE_S, chunks, decision, joined, share
from tests.stage.places import KafkaPlace, place_from

SHARES = [share(partition, 5, [decision(b"zombie")], chunks(1)) for partition in range(3)]


class Zombie:
    """The stopped process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def wait_stopped(self) -> None:
        """Return when it has stopped itself."""
        deadline = time.monotonic() + PATIENCE_S
        while not os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT):
            assert self._process.poll() is None, f"it ended instead: {self._process.communicate()}"
            assert time.monotonic() < deadline, "it did not stop"
            time.sleep(0.02)

    def last_words(self) -> str:
        """Continue it; returns how its commit ended."""
        self._process.send_signal(signal.SIGCONT)
        out, errors = self._process.communicate(timeout=PATIENCE_S)
        assert out, errors
        return out.strip()

    def kill(self) -> None:
        """SIGKILL while it is stopped."""
        self._process.kill()
        self._process.communicate(timeout=PATIENCE_S)


@contextmanager
def zombie(place: KafkaPlace, failpoint: str, **changes: object) -> Iterator[Zombie]:
    """A worker stopped at the failpoint: between polls, or with its transaction open."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.kafka.zombie", json.dumps(changes), *place.arguments()],
        env={**os.environ, "NPSTREAM_FAILPOINTS": f"{failpoint}:1:stop"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    made = Zombie(process)
    try:
        made.wait_stopped()
        yield made
    finally:
        if process.poll() is None:
            made.kill()


def main() -> None:
    """Join, come to the failpoint between polls or in a commit, say how it ended."""
    place = place_from(sys.argv[2:])
    assert isinstance(place, KafkaPlace)
    broker = place.kafka_broker(**json.loads(sys.argv[1]))
    owner = joined(broker)
    if "after_poll" in os.environ["NPSTREAM_FAILPOINTS"]:
        failpoints.hit("after_poll")
        owner.poll_until(lambda: len(owner.reported) > 1)
        print(*owner.reported[1])
        return
    try:
        broker.commit(SHARES)
        print("committed")
    except NpstreamError as error:
        print(f"{type(error).__name__}: {error}")
    broker.abandon()


if __name__ == "__main__":
    main()
