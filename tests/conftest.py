"""Fixtures every test may ask for: a broker, a schema registry, names of its own, the folder of example data."""

import os
import re
import signal
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, settings

from tests import selection
from tests.broker import Cluster, JarKafka, Kafka, StartKafka, local_jars, provide_kafka
from tests.fetching import Missing
from tests.registry import Registry, RegistryServer, StartRegistry, local_server, provide_registry

DATA_VARIABLE = "NPSTREAM_DATA"
_SUMMARY = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--data` beats the environment."""
    parser.addoption("--data", type=Path, help=f"folder of example data sets (or set {DATA_VARIABLE})")
    parser.addoption("--quick", action="store_true", help="no broker, no browser, nothing slow; fewer examples")


def pytest_configure(config: pytest.Config) -> None:
    """Room for what the summary will say; our order; brokers that start fast; children that can be interrupted.

    xdist would put files with many tests first, whatever they take.
    A broker of a test lives for seconds: its second compiler would never earn what it costs.
    A run in the background inherits an ignored Ctrl-C and would pass it on.
    """
    config.stash[_SUMMARY] = []
    config.option.loadscopereorder = False
    # No test asserts a time, and a loaded machine draws slowly.
    untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("full", untimed)
    settings.register_profile("quick", untimed, max_examples=selection.QUICK_EXAMPLES)
    settings.load_profile("quick" if config.getoption("--quick") else "full")
    os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)  # after the folders have set their time limits
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs a broker, leave out what `--quick` leaves out, and put the slowest files first."""
    selection.mark_broker_tests(items)
    if config.getoption("--quick"):
        gone, line = selection.left_out(items)
        config.stash[_SUMMARY].append(line)
        config.hook.pytest_deselected(items=gone)
        kept = dict.fromkeys(items).keys() - set(gone)
        items[:] = [item for item in items if item in kept]
        selection.draw_few_examples(items)
    selection.sort_by_cost(items)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of xdist hands its lines to the one that prints."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["summary"] = session.config.stash[_SUMMARY]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the lines of a process that has ended; one that crashed has left none."""
    config: pytest.Config = node.config
    config.stash[_SUMMARY].extend(getattr(node, "workeroutput", {}).get("summary", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Which brokers the tests ran on and how long they took to start; what was left out."""
    lines = config.stash[_SUMMARY]
    for line in dict.fromkeys(lines):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """The broker all tests share: nobody may stop it, everybody uses topics of their own."""
    _refuse_when_quick(request.config)
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(provide_kafka(tmp_path_factory.mktemp("kafka")))
        except Missing as missing:
            _without(missing)
        line = f"kafka: {broker.bootstrap} ({broker.provider}), ready after {broker.ready_s:.1f} s"
        request.config.stash[_SUMMARY].append(line)
        yield broker


@pytest.fixture(scope="session")
def kafka_jars(request: pytest.FixtureRequest) -> Path:
    """The broker's jars, on a machine with Java to run them."""
    _refuse_when_quick(request.config)
    try:
        return local_jars()
    except Missing as missing:
        _without(missing)


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
def three_brokers(kafka_jars: Path, tmp_path: Path) -> Iterator[Cluster]:
    """Three brokers of the test's own, which replicate: it may stop, kill and start each of them."""
    cluster = Cluster.of_three(kafka_jars, tmp_path / "kafka")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(scope="session")
def registry(request: pytest.FixtureRequest) -> Iterator[Registry]:
    """The schema registry all tests share: nobody may stop it, everybody uses subjects of their own."""
    with ExitStack() as stack:
        try:
            found = stack.enter_context(provide_registry())
        except Missing as missing:
            _without(missing)
        request.config.stash[_SUMMARY].append(f"schema registry: {found.url} ({found.provider})")
        yield found


@pytest.fixture
def start_registry() -> Iterator[StartRegistry]:
    """Starts private registries, gone after the test."""
    try:
        binary = local_server()
    except Missing as missing:
        _without(missing)
    with ExitStack() as stack:

        def start(*, login: tuple[str, str] | None = None, keystore: Path | None = None) -> RegistryServer:
            server = RegistryServer(binary, login=login, keystore=keystore)
            stack.callback(server.stop)
            server.start()
            return server

        yield start


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


def _refuse_when_quick(config: pytest.Config) -> None:
    """A broker that is asked for by name at run time is not seen when tests are collected."""
    if config.getoption("--quick"):
        pytest.fail("this test starts a broker: give it the mark `kafka`", pytrace=False)


def _without(missing: Missing) -> NoReturn:
    """Skip at a desk, fail in CI: a green run must mean that exactly-once was tested."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI needs a Kafka broker and a schema registry: {missing}", pytrace=False)
    pytest.skip(str(missing))
