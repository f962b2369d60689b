"""Events made to hurt: too large, too deep, too big a number. Each becomes a dead letter and the worker lives on."""

import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from npstream.cli import exits
from npstream.codec.dead_letters import VALUE_MAX_BYTES, DeadLetter, read_dead_letter
from npstream.codec.event import shown
from npstream.embedded import EmbeddedLog, create_topics
from npstream.port import Log
from npstream.records import Channel
from tests import broker
from tests.broker import Kafka
from tests.monitor.stage import events
from tests.operations.command import WorkerCommand
from tests.operations.site import Site
from tests.worker.bench import TOPICS

pytestmark = pytest.mark.timeout(600)
LARGEST = 10_000_000
DEEP = 100_000

HOSTILE: list[tuple[str, bytes, str]] = [
    ("2 MB", b'{"x": [1, 2], "y": 1, "note": "' + b"a" * 2_000_000 + b'"}', "oversize"),
    ("10 MB", b" " * (LARGEST - 2) + b"{}", "oversize"),
    ("deep array", b'{"x": ' + b"[" * DEEP + b"]" * DEEP + b"}", "not_json"),
    ("deep object", b'{"a": ' * DEEP + b"1" + b"}" * DEEP, "oversize"),
    ("as deep as the parser goes", b'{"x": [1, ' + b"[" * 1000 + b"]" * 1000 + b"]}", "not_number"),
    ("deep id", b'{"x": [1, 2], "id": ' + b"[" * 1000 + b"]" * 1000 + b"}", "bad_id"),
    ("deep label", b'{"x": [1, 2], "y": ' + b"[" * 1000 + b"]" * 1000 + b"}", "bad_label"),
    ("deep features", b'{"x": ' + b'{"a": ' * 1000 + b"1" + b"}" * 1000 + b"}", "bad_features"),
    ("many digits", b'{"x": [1, ' + b"9" * 5000 + b"]}", "not_json"),
    ("large float", b'{"x": [1, 1e308]}', "magnitude"),
    ("beyond floats", b'{"x": [1, 1e999]}', "not_json"),
    ("large integer", b'{"x": [1, 18446744073709551615]}', "magnitude"),
    ("infinity", b'{"x": [1, Infinity]}', "not_json"),
    ("a million numbers", b'{"x": [' + b"1," * 100_000 + b"1]}", "wrong_length"),
]


class Embedded:
    """One partition in a file, and its worker."""

    def __init__(self, folder: Path) -> None:
        path = folder / "log.db"
        create_topics(path, TOPICS, 1)
        self.log: Log = EmbeddedLog(path, TOPICS)
        topics = {name: topic for name, topic in asdict(TOPICS).items() if topic is not None}
        settings = {"embedded": {"path": str(path)}, "topics": topics, **common()}
        self.worker = WorkerCommand(folder, "worker", settings)


class OnKafka:
    """One partition of a topic that takes ten megabytes, and its worker."""

    def __init__(self, kafka: Kafka, folder: Path, prefix: str) -> None:
        larger = {"max.message.bytes": str(LARGEST + 100_000)}
        name = prefix + "site"
        broker.create_topics(kafka.bootstrap, {f"{name}.events": 1}, larger)
        site = Site(kafka.bootstrap, folder, name=name)
        self.log: Log = site.log
        self.worker = site.worker("worker-0", **common())


def common() -> dict[str, Any]:
    """No partition is paused for its share of bad events here."""
    return {"events": {"dead_letter_cap": 1.0}, "model": {"d": 2, "D": 8, "tau": 0.1}, "http": {"port": 0}}


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def place(request: pytest.FixtureRequest, tmp_path: Path, topic_prefix: str) -> Iterator[Embedded | OnKafka]:
    """A worker on either log."""
    made: Embedded | OnKafka
    if request.param == "embedded":
        made = Embedded(tmp_path)
    else:
        made = OnKafka(request.getfixturevalue("kafka"), tmp_path, topic_prefix)
    yield made
    made.worker.kill()
    made.log.close()


@pytest.mark.slow
def test_hostile_events_become_dead_letters_and_the_worker_lives(place: Embedded | OnKafka) -> None:
    """Each is kept with its reason, byte for byte unless it is too long; the good events around them are decided."""
    good = events(len(HOSTILE) + 1)
    values = [good[0]]
    for (_, hostile, _), value in zip(HOSTILE, good[1:], strict=True):
        values += [hostile, value]
    place.log.append(Channel.EVENTS, 0, [(None, value, (), now_ms()) for value in values])

    worker = place.worker.start()
    worker.wait_started()
    worker.wait_for(lambda: worker.events() == len(values), "all events to be handled")
    alive = worker.get("livez")[0]
    code = worker.terminate()

    dead_letters = [read_dead_letter(record) for record in place.log.read(Channel.DEAD_LETTERS, 0, 0, 2**40)]
    decided = sum(1 for _ in place.log.read(Channel.DECISIONS, 0, 0, 2**40))
    assert (alive, code) == (200, exits.OK), worker.said()
    assert reasons(dead_letters) == {name: reason for name, _, reason in HOSTILE}
    assert [dead_letter.value for dead_letter in dead_letters] == [kept(hostile) for _, hostile, _ in HOSTILE]
    assert decided == len(good)
    assert "Traceback" not in worker.said()


@pytest.mark.parametrize("depth", [1, 28, 29, 30, 31, 60, 61, 62, 900, 1010])
@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a": ', "}"), ('[7, {"b": ', ", 1: 2}]")])
def test_a_value_is_pictured_whatever_its_depth(depth: int, opened: str, closed: str) -> None:
    """The picture is the beginning of the whole value's, which cannot be drawn when it is deep."""
    value: object = 1
    for _ in range(depth):
        value = [value] if opened == "[" else {"a": value} if opened[0] == "{" else [7, {"b": value, 1: 2}]
    text = opened.replace('"', "'") * depth + "1" + closed * depth

    assert shown(value) == (text if len(text) <= 60 else text[:57] + "...")


def reasons(dead_letters: list[DeadLetter]) -> dict[str, str]:
    """Why each hostile event was refused, by its name."""
    names = {kept(hostile): name for name, hostile, _ in HOSTILE}
    return {names[dead_letter.value or b""]: dead_letter.reason for dead_letter in dead_letters}


def kept(hostile: bytes) -> bytes:
    """What a dead letter holds of a value."""
    return hostile if len(hostile) <= VALUE_MAX_BYTES else hostile[:4096]


def now_ms() -> int:
    """Topics keep events by their own time."""
    return int(time.time() * 1000)
