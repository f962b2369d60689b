"""A worker on events with schemas: the same decisions as from JSON, whatever dies, and what stops a partition."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from npstream.client import Message
from npstream.errors import Fatal
from npstream.testing import RunResult, Stage, Watch
from tests.registry import Registry, RegistryServer, StartRegistry
from tests.registry.payments import AVRO, EVENTS, WRITERS, avro_payments, messages, payments
from tests.registry.values import register

MODEL = {"tau": 0.2}


def settings_for(format: str, url: str | None, **sections: Any) -> dict[str, Any]:
    """Settings of a payments topic in one format."""
    registry = {} if url is None else {"registry": {"url": url}}
    return {
        "topics": {"events": "payments"},
        "events": {**EVENTS, "format": format, **registry},
        "model": MODEL,
        "worker": {"batch_max": 40},
        "checkpoint": {"every_events": 100},
        **sections,
    }


def decided(outcome: RunResult) -> list[tuple[bytes | None, bytes | None, int]]:
    """What was published, without the offsets of the decisions topic."""
    return [(record.key, record.value, record.timestamp_ms) for _, _, record in outcome.published]


def run_format(format: str, url: str, topic: str, folder: Path, crashes: tuple[int, ...] = ()) -> RunResult:
    """300 payments in a format, decided."""
    folder.mkdir()
    stage = Stage(settings_for(format, url), folder, partitions=2)
    stage.send(messages(payments(300), WRITERS[format](url, topic)))
    return stage.run(crashes)


def test_all_formats_give_the_same_decisions(registry: Registry, topic_prefix: str, tmp_path: Path) -> None:
    """JSON with spaces, JSON Schema, Avro and Protobuf, three versions in turn: byte for byte, crashes in between."""
    calm = {
        format: run_format(format, registry.url, f"{topic_prefix}{format}", tmp_path / format) for format in WRITERS
    }
    crashed = run_format("avro", registry.url, f"{topic_prefix}avro", tmp_path / "crashed", (5, 11, 23))

    expected = decided(calm["json"])
    assert len(expected) == 300
    assert {decision.decision for decision in calm["json"].decisions} == {1, -1}
    assert {format: decided(outcome) == expected for format, outcome in calm.items()} == dict.fromkeys(WRITERS, True)
    assert crashed.crashes == 3
    assert decided(crashed) == expected


def test_a_bad_value_is_a_dead_letter_as_it_came(registry: Registry, topic_prefix: str, tmp_path: Path) -> None:
    """Not in wire format, and cut short: each is published untouched with its reason; the others are decided."""
    write = avro_payments(registry.url, f"{topic_prefix}payments")
    good = messages(payments(50), write)
    bad = [Message(b"x", b'{"payment_id":"x"}', [], 1), Message(b"y", good[0].value[:-3], [], 2)]
    stage = Stage(settings_for("avro", registry.url), tmp_path)
    stage.send([*good[:25], *bad, *good[25:]])

    outcome = stage.run()

    assert [(letter.reason, letter.key, letter.value) for letter in outcome.dead_letters] == [
        ("not_wire_format", b"x", bad[0].value),
        ("not_of_schema", b"y", bad[1].value),
    ]
    assert len(outcome.decisions) == 50


@pytest.fixture
def server(start_registry: StartRegistry) -> RegistryServer:
    """A registry of the test's own."""
    return start_registry()


def test_an_unknown_id_pauses_its_partition_and_no_other(server: RegistryServer, tmp_path: Path) -> None:
    """Everything before it is decided; once the schema is there a restart goes on, as if nothing had been."""
    good = messages(payments(120), avro_payments(server.url, "payments"))
    strange = Message(good[60].key, b"\0" + (4).to_bytes(4) + good[60].value[5:], [], good[60].timestamp_ms)
    stage = Stage(settings_for("avro", server.url), tmp_path, partitions=2)
    stage.send([*good[:60], strange, *good[61:]], 0)
    stage.send(good, 1)

    (tmp_path / "calm").mkdir()

    first = stage.run()

    assert first.paused == {
        0: f"payments/0: the event at offset 60 is written with schema 4, which the registry {server.url} does not "
        "have. Restore that schema under its id, or correct events.registry.url, and restart the worker: nothing is "
        "lost. To give the event up, continue after it with `npstream reset --partition 0 --to 61 --keep-model "
        "--execute`"
    }
    assert [len([p for topic, p, _ in first.published if p == partition]) for partition in (0, 1)] == [60, 120]
    assert not first.dead_letters
    again = {**AVRO[0], "doc": "the same with a comment, so that it gets the next id"}
    assert register(server.url, "restored", orjson.dumps(again).decode()) == 4

    second = stage.run()

    calm = Stage(settings_for("avro", server.url), tmp_path / "calm", partitions=2)
    calm.send(good, 0)
    calm.send(good, 1)
    assert second.paused == {}
    assert decided(second) == decided(calm.run())


class WatchOfOutage(Watch):
    """Starts the registry again, with the schemas it had, when the session has ended for the second time."""

    def __init__(self, ends: Mapping[int, int], server: RegistryServer) -> None:
        super().__init__(ends)
        self.causes: list[str] = []
        self._server = server

    def session_ended(self, cause: str) -> None:
        """Called for every session that an error has ended."""
        self.causes.append(cause)
        if len(self.causes) == 2:
            self._server.start()
            avro_payments(self._server.url, "payments")(payments(1)[0], 0)


class StageOfOutage(Stage):
    """A stage that is watched so."""

    def watched_by(self, server: RegistryServer) -> WatchOfOutage:
        """Use this watch."""
        self.watch = WatchOfOutage({0: 60}, server)
        return self.watch

    def _watch(self) -> Watch:
        return self.watch


def test_an_outage_of_the_registry_is_waited_for(server: RegistryServer, tmp_path: Path) -> None:
    """The session starts again until the registry is back; then everything is decided, nothing a dead letter."""
    write = avro_payments(server.url, "payments")
    stage = StageOfOutage(settings_for("avro", server.url), tmp_path)
    stage.send([Message(b"k", write(payment, 0), [], 1) for payment in payments(180)[::3]])
    server.stop()
    watch = stage.watched_by(server)

    outcome = stage.run()

    assert len(outcome.decisions) == 60
    assert not outcome.dead_letters
    assert watch.causes == ["schema_registry", "schema_registry"]


def test_an_outage_beyond_the_limit_ends_the_worker(server: RegistryServer, tmp_path: Path) -> None:
    """After `worker.recover_seconds` it exits with the one message that helps."""
    stage = Stage(settings_for("avro", server.url, worker={"recover_seconds": 0.5}), tmp_path)
    stage.send(messages(payments(3), avro_payments(server.url, "payments")))
    server.stop()

    with pytest.raises(Fatal, match=rf"no progress for 0 s; last error: schema registry {server.url}: cannot be rea"):
        stage.run()


def test_wrong_credentials_end_the_worker(start_registry: StartRegistry, tmp_path: Path) -> None:
    """At once: waiting does not change a password."""
    server = start_registry(login=("reader", "secret"))
    events = {**EVENTS, "format": "avro", "registry": {"url": server.url, "username": "reader", "password": "wrong"}}
    stage = Stage(settings_for("avro", None, events=events), tmp_path)
    stage.send([Message(b"a", b"\0\0\0\0\1a", [], 1)])

    with pytest.raises(Fatal, match="refuses to let us in as 'reader'"):
        stage.run()
