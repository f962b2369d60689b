"""Fixtures every test may ask for: a broker, names of its own, the folder of example data."""

import os
import re
import signal
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

import pytest

from tests.broker import JarKafka, Kafka, NoKafka, StartKafka, local_jars, provide_kafka

DATA_VARIABLE = "NPSTREAM_DATA"
_BROKER_FIXTURES = {"kafka", "private_kafka", "start_kafka", "kafka_jars"}
_SUMMARY = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--data` beats the environment."""
    parser.addoption("--data", type=Path, help=f"folder of example data sets (or set {DATA_VARIABLE})")


def pytest_configure(config: pytest.Config) -> None:
    """Room for what the summary will say; and children that can be interrupted.

    A run in the background inherits an ignored Ctrl-C and would pass it on.
    """
    config.stash[_SUMMARY] = []
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for a broker is a `kafka` test, said or not."""
    for item in items:
        if _BROKER_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.kafka)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Which broker the tests ran on, and how long it took to start."""
    for line in config.stash[_SUMMARY]:
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """The broker all tests share: nobody may stop it, everybody uses topics of their own."""
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(provide_kafka(tmp_path_factory.mktemp("kafka")))
        except NoKafka as missing:
            _without_kafka(missing)
        line = f"kafka: {broker.bootstrap} ({broker.provider}), ready after {broker.ready_s:.1f} s"
        request.config.stash[_SUMMARY].append(line)
        yield broker


@pytest.fixture(scope="session")
def kafka_jars() -> Path:
    """The broker's jars, on a machine with Java to run them."""
    try:
        return local_jars()
    except NoKafka as missing:
        _without_kafka(missing)


@pytest.fixture
def start_kafka(kafka_jars: Path, tmp_path: Path) -> Iterator[StartKafka]:
    """Starts private brokers, gone after the test."""
    with ExitStack() as stack:

        def start(
            *, listeners: Mapping[str, str] | None = None, properties: Mapping[str, str] | None = None
        ) -> JarKafka:
            folder = tmp_path / f"kafka-{uuid.uuid4().hex[:8]}"
            broker = JarKafka(kafka_jars, folder, listeners=listeners, properties=properties)
            stack.callback(broker.close)
            broker.start()
            return broker

        yield start


@pytest.fixture
def private_kafka(start_kafka: StartKafka) -> JarKafka:
    """A broker of the test's own, which it may stop, kill and start again."""
    return start_kafka()


@pytest.fixture
def topic_prefix(request: pytest.FixtureRequest) -> str:
    """A prefix for topics, groups and transactional ids that no other test, and no earlier run, has used."""
    readable = re.sub(r"[^a-zA-Z0-9]+", "-", request.node.name).strip("-")[:60]
    return f"{readable}-{uuid.uuid4().hex[:8]}."


@pytest.fixture(scope="session")
def data_dir(request: pytest.FixtureRequest) -> Path:
    """The folder of example data sets; tests that need it are skipped, with the reason, where it is absent."""
    given = request.config.getoption("--data") or os.environ.get(DATA_VARIABLE)
    if not given:
        pytest.skip(f"no example data; give its folder with --data or {DATA_VARIABLE}")
    folder = Path(given)
    if not folder.is_dir():
        pytest.fail(f"{folder} is not a folder; correct --data or {DATA_VARIABLE}", pytrace=False)
    return folder


def _without_kafka(missing: NoKafka) -> NoReturn:
    """Skip at a desk, fail in CI: a green run must mean that exactly-once was tested."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI needs a Kafka broker: {missing}", pytrace=False)
    pytest.skip(str(missing))
