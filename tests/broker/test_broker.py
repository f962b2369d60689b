"""The broker the other tests rest on: it keeps what was committed, and only that."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.broker import JarKafka, Kafka, StartKafka, create_topics
from tests.stage import patience

ROOT = Path(__file__).parents[2]
_TIMEOUT_S = 30.0


def test_make_kafka_takes_a_port() -> None:
    """A broker beside another one needs a port of its own."""
    made = [
        subprocess.run(
            ["make", "-n", "kafka", *given], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
        )
        for given in ([], ["PORT=9093"])
    ]

    assert ["--port 9092" in done.stdout for done in made] == [True, False]
    assert ["--port 9093" in done.stdout for done in made] == [False, True]


@pytest.mark.parametrize(("given", "wanted"), [("4.0.1", "4.0.1"), (None, "3.9.1")])
def test_make_takes_a_version_of_the_brokers(tmp_path: Path, given: str | None, wanted: str) -> None:
    """KAFKA= names it, else the environment does, else the pom."""
    beside = tmp_path / "beside.mk"
    beside.write_text(f"include {ROOT}/Makefile\nversion:\n\t@echo version $$NPSTREAM_TEST_KAFKA_VERSION\n")
    command = ["make", "-f", str(beside), "version", *([f"KAFKA={given}"] if given else [])]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NPSTREAM_TEST_KAFKA_VERSION": "3.9.1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert f"version {wanted}\n" in done.stdout


def produce_in_transaction(bootstrap: str, topic: str, values: Sequence[bytes], *, commit: bool) -> None:
    """Write to partition 0, then commit or abort."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-writer"})
    producer.init_transactions(_TIMEOUT_S)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush(_TIMEOUT_S)
    if commit:
        producer.commit_transaction(_TIMEOUT_S)
    else:
        producer.abort_transaction(_TIMEOUT_S)


def read_committed(bootstrap: str, topic: str) -> list[bytes | None]:
    """All committed values of partition 0, up to its stable end."""
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap,
        "group.id": f"{topic}-reader",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "enable.auto.commit": False,
    }
    values: list[bytes | None] = []
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while not at_end(message := next_message(consumer)):
            values.append(message.value())
    return values


def next_message(consumer: Consumer) -> Message:
    """The next record or event; fails when none comes."""
    message = consumer.poll(_TIMEOUT_S)
    assert message is not None, f"no record and no end of partition within {_TIMEOUT_S} s"
    return message


def at_end(message: Message) -> bool:
    """Whether this is the end of the partition; any other error is raised."""
    error = message.error()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        raise KafkaException(error)
    return error is not None


def test_readers_see_what_was_committed_and_nothing_else(kafka: Kafka, topic_prefix: str) -> None:
    """A read_committed reader gets the records of committed transactions and none of an aborted one."""
    topic = f"{topic_prefix}events"
    create_topics(kafka.bootstrap, {topic: 4})

    produce_in_transaction(kafka.bootstrap, topic, [b"a", b"b"], commit=True)
    produce_in_transaction(kafka.bootstrap, topic, [b"never"], commit=False)
    produce_in_transaction(kafka.bootstrap, topic, [b"c"], commit=True)

    assert read_committed(kafka.bootstrap, topic) == [b"a", b"b", b"c"]


def test_committed_data_survives_kill_and_restart(private_kafka: JarKafka) -> None:
    """After SIGKILL the broker comes back on the same address with all it had committed."""
    address = private_kafka.bootstrap
    create_topics(address, {"events": 1})
    produce_in_transaction(address, "events", [b"before"], commit=True)
    print(f"first start: {private_kafka.start_s:.1f} s")

    private_kafka.kill()
    assert not private_kafka.running
    private_kafka.start()
    print(f"start after kill -9: {private_kafka.start_s:.1f} s")

    assert private_kafka.bootstrap == address
    assert read_committed(address, "events") == [b"before"]
    produce_in_transaction(address, "events", [b"after"], commit=True)
    assert read_committed(address, "events") == [b"before", b"after"]


def test_a_transaction_whose_time_passed_while_the_broker_was_down_is_ended(private_kafka: JarKafka) -> None:
    """A broker that loses the markers then, as some versions do, would keep its readers waiting forever."""
    address = private_kafka.bootstrap
    create_topics(address, {"events": 1})
    timeout_ms = 1000
    producer = Producer(
        {"bootstrap.servers": address, "transactional.id": "open", "transaction.timeout.ms": timeout_ms, "log_level": 0}
    )
    producer.init_transactions(_TIMEOUT_S)
    producer.begin_transaction()
    producer.produce("events", b"undecided", partition=0)
    producer.flush(_TIMEOUT_S)

    private_kafka.kill()
    time.sleep(1.5 * timeout_ms / 1000)  # being away for so long is the fault
    private_kafka.start()

    assert read_committed(address, "events") == []
    patience.wait_until(lambda: stable_end(address, "events") > 1, "the marker of the abort", _TIMEOUT_S)
    produce_in_transaction(address, "events", [b"later"], commit=True)
    assert read_committed(address, "events") == [b"later"]


def stable_end(bootstrap: str, topic: str) -> int:
    """Up to where partition 0 can be read."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    place = TopicPartition(topic, 0)
    asked = admin.list_offsets({place: OffsetSpec.latest()}, isolation_level=IsolationLevel.READ_COMMITTED)
    return int(asked[place].result(_TIMEOUT_S).offset)


def test_topics_have_the_partitions_and_settings_asked_for(kafka: Kafka, topic_prefix: str) -> None:
    """`create_topics` returns when each topic has its own partition count; an existing name is refused."""
    topics = {f"{topic_prefix}one": 1, f"{topic_prefix}three": 3}
    create_topics(kafka.bootstrap, topics, {"cleanup.policy": "compact"})

    known = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=_TIMEOUT_S).topics
    assert {name: len(known[name].partitions) for name in topics} == topics
    with pytest.raises(KafkaException, match="already exists"):
        create_topics(kafka.bootstrap, topics)


def test_an_extra_listener_asks_for_a_password(start_kafka: StartKafka) -> None:
    """A broker can be started with a SASL listener beside the plain one; a wrong password is refused."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    broker = start_kafka(
        listeners={"SECURE": "SASL_PLAINTEXT"},
        properties={
            "listener.name.secure.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secure.plain.sasl.jaas.config": f'{module} required user_worker="right";',
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        },
    )
    create_topics(broker.bootstrap, {"events": 1})

    assert topics_seen_by(worker(broker.address("SECURE"), "right", [])) == set()
    assert topics_seen_by(AdminClient({"bootstrap.servers": broker.bootstrap})) == {"events"}
    refusals: list[KafkaError] = []
    refused = worker(broker.address("SECURE"), "wrong", refusals)
    assert refused.poll(_TIMEOUT_S) > 0
    assert refusals[0].code() == KafkaError._AUTHENTICATION


def worker(address: str, password: str, errors: list[KafkaError]) -> AdminClient:
    """A client that logs in as `worker` and notes the errors it meets."""
    settings: dict[str, Any] = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "worker",
        "sasl.password": password,
        "log_level": 0,
        "error_cb": errors.append,
    }
    return AdminClient(settings)


def topics_seen_by(admin: AdminClient) -> set[str]:
    """The topics that this client may know of."""
    return set(admin.list_topics(timeout=_TIMEOUT_S).topics)


_STARTS_AND_WAITS = """
import sys
from pathlib import Path
from typing import Any
from tests.broker import JarKafka
broker = JarKafka(Path(sys.argv[1]), Path(sys.argv[2]))
broker.start()
print(broker._process.pid, flush=True)
broker.wait()
"""


def test_the_broker_dies_with_the_process_that_started_it(tmp_path: Path, kafka_jars: Path) -> None:
    """Even SIGKILL of the test process leaves no broker behind."""
    command = [sys.executable, "-c", _STARTS_AND_WAITS, str(kafka_jars), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as owner:
        assert owner.stdout is not None
        broker = int(owner.stdout.readline())
        watch = os.pidfd_open(broker)
        owner.send_signal(signal.SIGKILL)
        owner.wait(_TIMEOUT_S)

    assert exits_within(watch, _TIMEOUT_S)


def exits_within(pidfd: int, timeout_s: float) -> bool:
    """Whether the process of a pidfd ends in time; closes it."""
    ready, _, _ = select.select([pidfd], [], [], timeout_s)
    os.close(pidfd)
    return bool(ready)
