"""Events made to hurt: too large, too deep, too big a number. Each becomes a dead letter and the worker lives on."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from npstream.cli import exits
from npstream.codec.dead_letters import VALUE_MAX_BYTES, DeadLetter, read_dead_letter
from npstream.codec.event import shown
from npstream.records import Channel
from tests import broker
from tests.monitor.builders import events
from tests.stage.command import WorkerCommand
from tests.stage.places import EmbeddedPlace, KafkaPlace, LastingPlace, topics_of
from tests.stage.site import PATIENT
from tests.stage.stage import TOPICS

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


def common() -> dict[str, Any]:
    """No partition is paused for its share of bad events here."""
    return {"events": {"dead_letter_cap": 1.0}, "model": {"d": 2, "D": 8, "tau": 0.1}, "http": {"port": 0}}


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def place(request: pytest.FixtureRequest, tmp_path: Path, topic_prefix: str) -> Iterator[LastingPlace]:
    """One partition of a topic that takes ten megabytes."""
    made: LastingPlace
    if request.param == "embedded":
        made = EmbeddedPlace(tmp_path / "log.db", TOPICS, "g").create(1)
    else:
        kafka, topics = request.getfixturevalue("kafka"), topics_of(topic_prefix)
        broker.create_topics(kafka.bootstrap, {topics.events: 1}, {"max.message.bytes": str(LARGEST + 100_000)})
        made = KafkaPlace(kafka.bootstrap, topics, topic_prefix + "group", client=PATIENT).create_plain(1)
    yield made
    made.leave()


@pytest.fixture
def command(place: LastingPlace, tmp_path: Path) -> Iterator[WorkerCommand]:
    """Its worker."""
    made = WorkerCommand(tmp_path, "worker", {**place.settings("worker-0"), **common()})
    yield made
    made.kill()


@pytest.mark.slow
def test_hostile_events_become_dead_letters_and_the_worker_lives(place: LastingPlace, command: WorkerCommand) -> None:
    """Each is kept with its reason, byte for byte unless it is too long; the good events around them are decided."""
    good = events(len(HOSTILE) + 1)
    values = [good[0]]
    for (_, hostile, _), value in zip(HOSTILE, good[1:], strict=True):
        values += [hostile, value]
    log = place.log()
    log.append(Channel.EVENTS, 0, [(None, value, (), now_ms()) for value in values])

    worker = command.start()
    worker.wait_started()
    worker.wait_for(lambda: worker.events() == len(values), "all events to be handled")
    alive = worker.get("livez")[0]
    code = worker.terminate()

    dead_letters = [read_dead_letter(record) for record in log.read(Channel.DEAD_LETTERS, 0, 0, 2**40)]
    decided = sum(1 for _ in log.read(Channel.DECISIONS, 0, 0, 2**40))
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
