"""One worker per file, whatever becomes of it."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from npstream.embedded import EmbeddedBroker, EmbeddedLog, create_topics
from npstream.errors import Fatal
from npstream.records import Channel, Topics

TOPICS = Topics("events", "decisions", "dead", "checkpoints")

_HOLDER = """
import sys
from pathlib import Path
from npstream.embedded import EmbeddedBroker
from npstream.records import Topics
broker = EmbeddedBroker(Path(sys.argv[1]), Topics("events", "decisions", "dead", "checkpoints"), "group")
print("holding", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log with two partitions."""
    create_topics(tmp_path / "log.db", TOPICS, 2)
    return tmp_path / "log.db"


def test_a_second_worker_in_the_same_process_is_refused(path: Path) -> None:
    """The message names the file and says what to do; closing the first lets the second in."""
    first = EmbeddedBroker(path, TOPICS, "group")
    with pytest.raises(Fatal, match=r"another worker \(process \d+\) runs on .*log\.db: stop it first"):
        EmbeddedBroker(path, TOPICS, "group")
    first.close(1.0)

    EmbeddedBroker(path, TOPICS, "group").abandon()


def test_a_second_process_is_refused_until_the_first_is_dead(path: Path) -> None:
    """A worker in another process keeps us out, wherever the file is moved; kill -9 frees it at once."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "holding\n"
        with pytest.raises(Fatal, match=rf"process {holder.pid}\)"):
            EmbeddedBroker(path, TOPICS, "group")
        moved = path.rename(path.with_name("moved.db"))
        with pytest.raises(Fatal, match=r"another worker runs on .*moved\.db, which it reached by another name"):
            EmbeddedBroker(moved, TOPICS, "group")
        moved.rename(path)
        holder.send_signal(signal.SIGKILL)
        holder.wait(timeout=10)

    EmbeddedBroker(path, TOPICS, "group").abandon()


def test_readers_and_writers_need_no_lock(path: Path) -> None:
    """A tool reads and appends beside the worker."""
    worker = EmbeddedBroker(path, TOPICS, "group")
    log = EmbeddedLog(path, TOPICS)

    log.append(Channel.EVENTS, 0, [(None, b"event", (), 5)])

    assert [record.value for record in log.read(Channel.EVENTS, 0, 0, 10)] == [b"event"]
    log.close()
    worker.abandon()
