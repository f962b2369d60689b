"""Looking at the group: what is read from an answer, and that looking never costs the process."""

import subprocess
import sys

import pytest

from npstream.kafka.orphans import assigned_partitions
from tests.broker import JarKafka, create_topics
from tests.operations.command import ROOT

_TWO_TOPICS = (
    b"\x00\x00"
    + b"\x00\x00\x00\x02"
    + b"\x00\x02ev"
    + b"\x00\x00\x00\x03"
    + bytes(4)
    + b"\x00\x00\x00\x01\x00\x00\x01\x00"
    b"\x00\x05other" + b"\x00\x00\x00\x01" + b"\x00\x00\x00\x07" + b"\x00\x00\x00\x00"
)
_KILLS = 4
_ASKING = """
import logging, sys, threading, time
from npstream.kafka import KafkaConfig
from npstream.kafka.clients import Sink, new_admin
from npstream.kafka.config import common_settings
from npstream.kafka.orphans import GroupView
from npstream.records import Topics

quiet = logging.getLogger("quiet")
quiet.addHandler(logging.NullHandler())
quiet.propagate = False
admin = new_admin(common_settings(KafkaConfig(sys.argv[1], "group", "a", Topics("e", "d", "l", "c"))), Sink(quiet))
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
asked = 0
while not stop.wait(0.02):
    view = GroupView(admin, "group", "e")
    view.answer(time.monotonic())
    asked += 1
    print(asked, flush=True)
"""


@pytest.mark.parametrize(("topic", "owned"), [("ev", {0, 1, 256}), ("other", {7}), ("third", set())])
def test_an_assignment_is_read_topic_by_topic(topic: str, owned: set[int]) -> None:
    """As the consumer protocol writes it; a topic that is not in it has nothing."""
    assert assigned_partitions(_TWO_TOPICS, topic) == owned
    assert assigned_partitions(b"", topic) == frozenset()


@pytest.mark.parametrize("length", [1, 5, 7, 9, 13, 20, len(_TWO_TOPICS) - 5])
def test_a_torn_assignment_is_refused(length: int) -> None:
    """Rather than taken for a member that owns less."""
    with pytest.raises(ValueError, match="a member's assignment cannot be read"):
        assigned_partitions(_TWO_TOPICS[:length], "other")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_asking_outlives_brokers_that_go_away(private_kafka: JarKafka) -> None:
    """A process that asks fifty times a second through outages is alive after them."""
    create_topics(private_kafka.bootstrap, {"e": 1})
    command = [sys.executable, "-c", _ASKING, private_kafka.bootstrap]
    with subprocess.Popen(
        command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        for _ in range(_KILLS):
            asked = [process.stdout.readline() for _ in range(100)]
            private_kafka.kill()
            asked += [process.stdout.readline() for _ in range(50)]
            private_kafka.start(180.0)
            if not asked[-1]:
                break
        _, said = process.communicate("stop\n", timeout=60)

    assert (process.returncode, said) == (0, "")
