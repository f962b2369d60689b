"""Looking at the group: what is read from a response, and that looking never costs the process."""

import subprocess
import sys

import pytest

from npstream.kafka.group import GroupView, View, assigned_partitions
from npstream.records import Topics
from tests.broker import JarKafka, create_topics
from tests.contracts.builders import eventually
from tests.stage.child import ROOT

_TWO_TOPICS = (
    b"\x00\x00"
    + b"\x00\x00\x00\x02"
    + b"\x00\x02ev"
    + b"\x00\x00\x00\x03"
    + bytes(4)
    + b"\x00\x00\x00\x01\x00\x00\x01\x00"
    b"\x00\x05other" + b"\x00\x00\x00\x01" + b"\x00\x00\x00\x07" + b"\x00\x00\x00\x00"
)
_KILLS = 5
_ASKING = """
import logging, sys, threading, time
from npstream.errors import NpstreamError
from npstream.kafka import KafkaConfig
from npstream.kafka.admin import Admin
from npstream.kafka.clients import Sink, new_admin
from npstream.kafka.config import common_settings
from npstream.kafka.group import GroupView
from npstream.records import Topics

quiet = logging.getLogger("quiet")
quiet.addHandler(logging.NullHandler())
quiet.propagate = False
topics = Topics("e", "d", "l", "c")
config = KafkaConfig(sys.argv[1], "group", "a", topics, connect_timeout_ms=2_000)
admin = new_admin(common_settings(config), Sink(quiet))
tool = Admin(config, quiet)

def ask_as_tools_do():
    while True:
        try:
            tool.group()
        except NpstreamError:
            pass

threading.Thread(target=ask_as_tools_do, daemon=True).start()
for _ in sys.stdin:
    for asked in range(200):
        GroupView(admin, "group", topics).news(0.0)
        if asked == 50:
            print("begun", flush=True)
        time.sleep(0.02)
    print("done", flush=True)
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


class Broken:
    """A client whose calls fail as no client's should."""

    def describe_topics(self, *_: object, **__: object) -> None:
        raise ZeroDivisionError


def test_a_look_that_fails_in_an_unexpected_way_is_followed_by_another() -> None:
    """The watch is never silently off: each failed look is one that saw nothing."""
    view = GroupView(Broken(), "group", Topics("e", "d", "l", "c"))  # type: ignore[arg-type]
    seen: list[View] = []
    eventually(lambda: noted(view.news(0.0), seen))
    eventually(lambda: noted(view.news(100.0), seen))

    assert seen == [View(), View()]


def noted(view: View | None, seen: list[View]) -> bool:
    """Keep what a look saw, if it is over."""
    seen.extend(() if view is None else (view,))
    return view is not None


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_asking_outlives_brokers_that_go_away(private_kafka: JarKafka) -> None:
    """A process that asks fifty times a second through outages is alive after them."""
    create_topics(private_kafka.bootstrap, {"e": 1})
    askers = [_asker(private_kafka.bootstrap) for _ in range(2)]
    for _ in range(_KILLS):
        for asker in askers:
            _send_line(asker, "ask\n")
        assert [_line(asker) for asker in askers] == ["begun\n"] * 2
        private_kafka.kill()
        assert [_line(asker) for asker in askers] == ["done\n"] * 2
        private_kafka.start()

    ended = [asker.communicate(timeout=60) for asker in askers]
    assert [(asker.returncode, said) for asker, (_, said) in zip(askers, ended, strict=True)] == [(0, "")] * 2


def _asker(bootstrap: str) -> subprocess.Popen[str]:
    """A process that asks two hundred times for each line it reads; it ends with its input."""
    command = [sys.executable, "-c", _ASKING, bootstrap]
    return subprocess.Popen(
        command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def _send_line(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line)
    process.stdin.flush()


def _line(process: subprocess.Popen[str]) -> str:
    """The next line of a process's output; nothing when it has ended."""
    assert process.stdout is not None
    return process.stdout.readline()
