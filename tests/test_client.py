"""The client: what it builds a worker decides, and what a worker decides it reads."""

import asyncio
import math
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
import yaml
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from hypothesis import given
from hypothesis import strategies as st

from npstream import client
from npstream.codec.decoder import EventConfig, EventDecoder, Kind
from npstream.codec.event import EventFormat
from npstream.errors import UsageError
from npstream.records import Channel, Record
from npstream.settings import events_config
from npstream.testing import Stage
from tests.broker import Kafka
from tests.data.payments_table import MAPPED, documents, rows

FORMATS: list[EventFormat] = ["json", "f32"]
_numbers = st.floats(-1e6, 1e6, width=32)
_ids = st.text(min_size=1, max_size=60).filter(lambda text: not re.search("[\ud800-\udfff]", text)) | st.integers(
    -(2**53), 2**53
)


def decoded(message: client.Message, using: EventConfig) -> tuple[int, object, list[float], int]:
    """Kind, id, numbers and label of a message, as the worker's own decoder has them."""
    found = EventDecoder(using).decode([Record(0, 1, message.key, message.value, message.headers)])
    assert found.errors == {}
    numbers = found.score if using.external else found.x[0]
    return found.kinds[0], found.ids[0], numbers.tolist(), int(found.y[0])


@pytest.mark.parametrize("format", FORMATS)
@given(identity=_ids, x=st.lists(_numbers, min_size=3, max_size=3), target=st.none() | st.booleans())
def test_an_event_is_decoded_as_it_was_built(
    format: EventFormat, identity: str | int, x: list[float], target: bool | None
) -> None:
    """Id, features to the bit, and label arrive, in both formats; a raw event's id is text."""
    message = client.event(identity, x, target=target, format=format)

    kind, named, numbers, label = decoded(message, EventConfig(d=3, format=format))

    assert kind == (Kind.OBSERVATION if target is None else Kind.LABELLED)
    assert named == (identity if format == "json" else str(identity))
    assert numbers == np.array(x, np.float32).tolist()
    assert label == {None: 0, True: 1, False: -1}[target]
    assert message.key == str(identity).encode()


@pytest.mark.parametrize("format", FORMATS)
@given(identity=_ids, target=st.booleans())
def test_a_label_goes_where_its_event_went(format: EventFormat, identity: str | int, target: bool) -> None:
    """An event and its label share id and key, so also the partition."""
    event = client.event(identity, [1.0, 2.0], format=format)
    label = client.label(identity, target=target, format=format)
    using = EventConfig(d=2, format=format)

    assert decoded(label, using)[:2] == (Kind.LABEL, decoded(event, using)[1])
    assert decoded(label, using)[3] == (1 if target else -1)
    assert client.partition_for(label.key, 12) == client.partition_for(event.key, 12)


def test_features_may_have_names_and_come_from_numpy() -> None:
    """An object for settings with events.features; arrays and their numbers are taken as they are."""
    named = client.event("a", {"hour": 3.0, "amount": 12.5})
    row = np.array([0.1, 0.2], np.float32)

    assert decoded(named, EventConfig(d=2, features=("amount", "hour")))[2] == [12.5, 3.0]
    for format in FORMATS:
        using = EventConfig(d=2, format=format)
        assert decoded(client.event("a", row, format=format), using)[2] == row.tolist()


@pytest.mark.parametrize("format", FORMATS)
def test_a_score_is_an_event_for_preset_external(format: EventFormat) -> None:
    """Bring your own model: the score takes the place of features."""
    message = client.event("a", score=0.25, target=False, format=format)

    assert decoded(message, EventConfig(d=0, external=True, format=format)) == (Kind.LABELLED, "a", [0.25], -1)


def test_key_and_time_can_be_given() -> None:
    """A key of one's own keeps, say, all events of a customer together."""
    message = client.event("a", [1.0], key=b"customer-9", timestamp_ms=7)

    assert (message.key, message.timestamp_ms) == (b"customer-9", 7)
    assert client.label("a", target=True, key=b"customer-9").key == b"customer-9"


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ({}, "give features x, or a score"),
        ({"x": [1.0], "score": 1.0}, "and not both"),
        ({"x": [1.0, math.nan]}, "number 1 is nan"),
        ({"x": {"a": math.inf}}, "number 0 is inf"),
        ({"score": math.nan}, "number 0 is nan"),
        ({"x": [1e300], "format": "f32"}, "at most 1e+15"),
        ({"x": {"a": 1.0}, "format": "f32"}, "format f32 has no names"),
        ({"identity": "", "x": [1.0]}, "1 to 256 bytes, not 0"),
        ({"identity": "é" * 129, "x": [1.0]}, "1 to 256 bytes, not 258"),
    ],
)
def test_what_would_be_a_dead_letter_is_refused(arguments: dict[str, Any], reported: str) -> None:
    """The sender hears at once what the worker could only set aside."""
    with pytest.raises(ValueError, match=re.escape(reported)):
        client.event(**{"identity": "a", **arguments})


@pytest.mark.parametrize("format", FORMATS)
def test_from_event_to_decision(format: EventFormat, tmp_path: Path) -> None:
    """Events and late labels built here go through a worker; its decisions are read here and lead back to them."""
    rng = np.random.default_rng(0)
    targets = rng.random(300) < 0.3
    points = (rng.normal(size=(300, 2)) + 2.0 * targets[:, None]).astype(np.float32)
    sent: list[client.Message] = []
    for i in range(320):
        if i < 300:
            sent.append(client.event(f"e{i}", points[i].tolist(), timestamp_ms=1000 + i, format=format))
        if i >= 20:
            sent.append(client.label(f"e{i - 20}", target=bool(targets[i - 20]), timestamp_ms=1000 + i, format=format))
    stage = Stage({"topics": {"events": "e"}, "model": {"d": 2, "tau": 0.1}, "events": {"format": format}}, tmp_path, 3)
    stage.send(sent)
    stage.run()

    decided = {}
    for partition in range(3):
        events = {record.offset: record for record in stage.records(Channel.EVENTS, partition)}
        for record in stage.records(Channel.DECISIONS, partition):
            decision = client.read_decision(record.value)
            event = events[client.input_offset(record.headers)]
            assert (record.key, record.timestamp_ms) == (event.key, event.timestamp_ms)
            assert client.partition_for(record.key or b"", 3) == partition
            decided[decision.id] = decision

    assert set(decided) == {f"e{i}" for i in range(300)}
    assert max(decision.t for decision in decided.values()) > 80
    alarms = [decision.id for decision in decided.values() if decision.decision == 1]
    assert sum(bool(targets[int(str(i)[1:])]) for i in alarms) > len(alarms) / 2


def test_what_is_no_decision_is_refused() -> None:
    """Another topic's records are recognised."""
    for value in (None, b"", b"{}", b"[1]", client.event("a", [1.0]).value):
        with pytest.raises(UsageError, match="not a decision"):
            client.read_decision(value)
    for headers in (None, [], [("other", b"1")], [("npstream-offset", None)]):
        with pytest.raises(ValueError, match="no npstream-offset header"):
            client.input_offset(headers)


@pytest.mark.parametrize("format", FORMATS)
def test_messages_are_taken_by_the_kafka_client_as_they_are(format: EventFormat) -> None:
    """Headers are of a type that the producer takes, whether there are any or none."""
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    taken: list[Any] = []
    for message in (client.event("a", [1.0], format=format), client.label("a", target=True, format=format)):
        producer.produce(
            "events",
            message.value,
            message.key,
            headers=message.headers,
            on_delivery=lambda error, sent: taken.append(sent.headers()),
        )
    producer.purge()
    producer.flush(30)

    assert len(taken) == 2


PAYMENTS = client.Events(events_config({"events": MAPPED}))


def test_named_features_are_put_where_the_settings_have_them() -> None:
    """What is built by feature name is the event of an upstream team, and is read back by name."""
    values = {"amount": np.float32(12.5), "country": "DE", "mcc": 5411, "three_ds": np.True_, "velocity": None}
    at = datetime(2026, 5, 1, 6, tzinfo=UTC)

    message = PAYMENTS.event("p-1", {**values, "hour": at, "weekday": at}, target=True, timestamp_ms=7)

    assert (message.key, message.headers, message.timestamp_ms) == (b"p-1", [], 7)
    assert orjson.loads(message.value) == {
        "payment_id": "p-1",
        "fraud": True,
        "amount": 12.5,
        "card": {"country": "DE"},
        "merchant_mcc": 5411,
        "auth": {"three_ds": True},
        "created_at": "2026-05-01T06:00:00+00:00",
    }
    read = PAYMENTS.read(message.value)
    assert (read.id, read.target) == ("p-1", True)
    assert read.features == {**values, "hour": at.isoformat(), "weekday": at.isoformat()}
    assert PAYMENTS.read(PAYMENTS.label(17, target=False).value) == client.NamedEvent(
        17, False, dict.fromkeys(read.features)
    )


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"amount": 1.0}, "hour: created_at is absent or null (missing_feature)"),
        ({"amount": math.nan, "hour": 1.7e9}, "amount: amount is NaN or infinite (not_finite)"),
        ({"amount": "dear", "hour": 1.7e9}, "amount: amount is 'dear' (not_number)"),
        ({"amount": 1.0, "hour": "soon"}, "hour: created_at is 'soon'"),
        ({"amuont": 1.0}, "no feature amuont; there are amount, velocity, country"),
        ({}, "no_features"),
    ],
)
def test_a_mapped_event_that_would_be_a_dead_letter_is_refused(values: dict[str, Any], told: str) -> None:
    """In the words of the dead letter, before anything is sent."""
    with pytest.raises(ValueError, match=re.escape(told)):
        PAYMENTS.event("p-1", values)


def test_a_document_is_sent_as_it_is() -> None:
    """The sender's own event, checked and keyed by its id; without an id it needs a key."""
    table = rows(40)
    for row, document in zip(table, documents(table), strict=True):
        message = PAYMENTS.message(document)
        assert orjson.loads(message.value) == document
        assert message.key == row["payment_id"].encode()
    nameless = {name: value for name, value in documents(table)[0].items() if name != "payment_id"}

    assert PAYMENTS.message(nameless, key=b"k").key == b"k"
    with pytest.raises(ValueError, match="payment_id: the event has no id; give a key"):
        PAYMENTS.message(nameless)
    with pytest.raises(ValueError, match="not one JSON document"):
        PAYMENTS.read(b"?")


@pytest.mark.parametrize("format", FORMATS)
def test_the_short_form_follows_the_settings_too(format: EventFormat) -> None:
    """Arrays and named numbers; id and label where the settings have them; raw floats where they say so."""
    using = events_config({"events": {"format": format, "features": ["a", "b"], "id": "key", "label": "fraud"}})
    built = client.Events(using)
    message = built.event("k", [1.0, 2.5], target=False)

    assert decoded(message, using) == (Kind.LABELLED, "k", [1.0, 2.5], -1)
    assert decoded(built.label("k", target=True), using)[::3] == (Kind.LABEL, 1)
    if format == "json":
        assert orjson.loads(message.value) == {"key": "k", "fraud": -1, "x": [1.0, 2.5]}
        assert built.read(message.value) == client.NamedEvent("k", False, {"a": 1.0, "b": 2.5})


def test_raw_floats_may_be_missing_where_the_mapping_lets_them() -> None:
    """In format f32 a missing number is NaN."""
    features = {"a": {"number": "a", "missing": "allow"}, "b": {"flag": "b"}}
    using = events_config({"events": {"format": "f32", "features": features}})

    kind, _, numbers, _ = decoded(client.Events(using).event("k", {"b": True}), using)

    assert (kind, str(numbers)) == (Kind.OBSERVATION, "[nan, 1.0]")


@given(paths=st.permutations(["a.b", "a.c[1].d", "a.c[0]", "e[2]", '["x.y"].z']))
def test_every_path_leads_to_its_value(paths: list[str]) -> None:
    """Objects and arrays are made on the way, in whatever order the features come."""
    features = {f"f{at}": {"number": path} for at, path in enumerate(paths)}
    using = events_config({"events": {"features": features}})
    values = {name: float(at) for at, name in enumerate(features)}

    assert decoded(client.Events(using).event("k", values), using)[2] == [*values.values()]


def test_paths_that_cannot_both_be_are_refused() -> None:
    """One makes an object of what the other has as an array."""
    features = {"a": {"number": "a.b"}, "b": {"number": "a[0]"}}
    built = client.Events(events_config({"events": {"features": features}}))

    with pytest.raises(ValueError, match="0: another path leads to something else there"):
        built.event("k", {"a": 1.0, "b": 2.0})


def test_settings_of_a_file_need_no_secrets(tmp_path: Path) -> None:
    """A sender reads the same settings file as the worker, without the worker's cluster and passwords."""
    path = tmp_path / "payments.yaml"
    kafka = {"bootstrap": "localhost:1", "group": "g", "options": {"sasl.password": "${env:NOWHERE}"}}
    path.write_text(yaml.safe_dump({"kafka": kafka, "events": MAPPED, "model": {"tau": 0.01}}, sort_keys=False))

    assert events_config(path) == events_config({"events": MAPPED})


def test_partitions_are_those_of_java_clients(kafka: Kafka, topic_prefix: str) -> None:
    """A producer with the partitioner of the Java clients sends every key where the client says."""
    topic, partitions = f"{topic_prefix}events", 7
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)
    placed: dict[bytes | None, int | None] = {}
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "partitioner": "murmur2"})
    messages = [client.event(f"order-{i}", [float(i)]) for i in range(100)]
    for message in messages:
        producer.produce(
            topic,
            message.value,
            message.key,
            headers=message.headers,
            on_delivery=lambda error, sent: placed.update({sent.key(): sent.partition()}),
        )
    assert producer.flush(30) == 0

    assert placed == {message.key: client.partition_for(message.key, partitions) for message in messages}
    assert len(set(placed.values())) == partitions


def test_aiokafka_sends_messages_as_they_are(kafka: Kafka, topic_prefix: str) -> None:
    """Key, value and headers reach a broker, with headers and without."""
    topic = f"{topic_prefix}sent"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    messages = [client.event("a", [1.0], format=format) for format in FORMATS]

    async def send() -> list[tuple[Any, Any, Any]]:
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=kafka.bootstrap, auto_offset_reset="earliest")
        async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap) as producer, consumer:
            for message in messages:
                await producer.send_and_wait(topic, message.value, message.key, headers=message.headers)
            async with asyncio.timeout(60):
                found = [await anext(consumer) for _ in messages]
        return [(record.key, record.value, list(record.headers)) for record in found]

    assert asyncio.run(send()) == [(message.key, message.value, message.headers) for message in messages]
