"""TLS, SCRAM and ACLs on a real broker: the least rights work, and without any of them the message names it."""

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from npstream.cli import exits
from npstream.codec.envelope import LABELS_HEADER
from npstream.records import Channel
from tests.security.certificates import make_authority
from tests.security.secured import Secured, described, least_rights, secured_kafka
from tests.security.tenant import PLACES, Tenant, refused
from tests.stage.child import WAIT_S
from tests.stage.command import WorkerCommand, npstream

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def secured(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """One broker for all; every test has topics, a group and a user of its own."""
    with secured_kafka(kafka_jars, tmp_path_factory.mktemp("secured")) as made:
        yield made


@pytest.fixture
def tenant(secured: Secured, tmp_path: Path, topic_prefix: str) -> Tenant:
    """Names of the test's own; nothing is made yet."""
    return Tenant(secured, tmp_path, topic_prefix)


def test_the_least_rights_are_enough(tenant: Tenant) -> None:
    """Over TLS with a password from a file, events become decisions and a dead letter; nothing shows the password."""
    tenant.prepare(least_rights(tenant.topics, tenant.group))
    worker = tenant.worker().start()
    try:
        worker.wait_started()
        worker.wait_for(lambda: worker.events() == 40, "all events to be handled")
        shown = [worker.get(path) for path in ("status", "metrics", "", "livez", "readyz")]
        late = npstream("lag", "--config", str(worker.config))  # what `helm test` runs
        code = worker.terminate()
    finally:
        worker.kill()
    restarted = tenant.worker()  # another life under the same rights restores the checkpoint
    restarted.start()
    try:
        restarted.wait_for(lambda: len(restarted.lines("assigned")) == 2, "the second life to restore")
        assert restarted.terminate() == exits.OK
    finally:
        restarted.kill()

    log = tenant.log()
    newest = list(log.read(Channel.DECISIONS, 0, 0, 2**40))[-1]
    published = [len(list(log.read(channel, 0, 0, 2**40))) for channel in (Channel.DECISIONS, Channel.DEAD_LETTERS)]
    log.close()
    assert code == exits.OK
    assert late.returncode == exits.OK, late.stderr
    assert [response[0] for response in shown] == [200] * 5
    assert published == [39, 1]
    assert LABELS_HEADER in dict(newest.headers)
    assert restarted.lines("assigned")[1]["checkpoint"] == 40
    assert tenant.password not in "".join(body for _, body in shown)
    assert tenant.password not in worker.said()
    assert "Traceback" not in worker.said()


@pytest.mark.parametrize("number", range(8), ids=[f"{r.operation}-{r.name}" for r in least_rights(PLACES, "group")])
def test_without_one_right_the_worker_ends_and_names_it(tenant: Tenant, number: int) -> None:
    """Exit code 4, one message with the operation and the thing it is missing on, no traceback, no password."""
    every = least_rights(tenant.topics, tenant.group)
    missing = every[number]
    kept = [right for right in every if right != missing]
    tenant.prepare([*kept, *described(tenant.topics, tenant.group)])

    worker = tenant.worker().start()
    try:
        code = worker.wait(WAIT_S)
    finally:
        worker.kill()

    said = worker.err.read_text()
    thing = f"{tenant.group}.worker-0" if missing.kind == "transactional id" else missing.name
    assert code == exits.FATAL, worker.said()
    assert said.startswith("npstream: ")
    assert said.count("\n") == 1
    assert f"{missing.operation}" in said
    assert f"on {missing.kind} {thing!r}" in said
    assert "Traceback" not in worker.said()
    assert tenant.password not in worker.said()
    if missing.kind == "topic":
        others = [right.name for right in every if right.kind == "topic" and right.name != missing.name]
        assert [name for name in others if repr(name) in said] == []


@pytest.mark.parametrize("name", PLACES.names())
def test_a_topic_that_may_not_even_be_seen_is_named(tenant: Tenant, name: str) -> None:
    """Without any right on a topic the message still says which rights on which topic to grant."""
    topic = tenant.prefix + name
    rights = [right for right in least_rights(tenant.topics, tenant.group) if right.name != topic]
    lacking = [right.operation for right in least_rights(tenant.topics, tenant.group) if right.name == topic]
    tenant.prepare(rights)

    worker = tenant.worker().start()
    try:
        code = worker.wait(WAIT_S)
    finally:
        worker.kill()

    assert code == exits.FATAL, worker.said()
    assert f"grant {' and '.join(lacking)} on topic {topic!r} to user {tenant.user!r}" in worker.err.read_text()


def test_a_wrong_password_is_reported(tenant: Tenant) -> None:
    """The login is named as refused, the password is not shown, neither the right nor the wrong one."""
    tenant.prepare(least_rights(tenant.topics, tenant.group))
    wrong = f"wrong-{secrets.token_hex(12)}"
    tenant.password_file.write_text(wrong)
    worker = tenant.worker()

    said = refused(worker)

    assert f"brokers at {tenant.secured.address} refused the login: check kafka.security" in said
    assert wrong not in worker.said()
    assert tenant.password not in worker.said()


def test_a_wrong_authority_is_reported(tenant: Tenant) -> None:
    """A broker whose certificate another authority has signed is not trusted, and the setting to look at is named."""
    stranger = make_authority(tenant.folder, "stranger")

    said = refused(tenant.worker(ca_file=str(stranger.certificate)))

    assert f"TLS with brokers at {tenant.secured.address} failed: check kafka.security (ca_file" in said


def test_plain_talk_to_a_tls_port_is_reported(tenant: Tenant) -> None:
    """The protocol is named as a possible cause."""
    worker = WorkerCommand(tenant.folder, "worker", plain(tenant))

    said = refused(worker)

    assert f"cannot reach brokers at {tenant.secured.address}" in said
    assert "kafka.security.protocol" in said


def plain(tenant: Tenant) -> dict[str, Any]:
    """The settings without any security."""
    settings = tenant.settings()
    del settings["kafka"]["security"]
    return settings


@pytest.mark.parametrize("arguments", [("check",), ("check", "--json"), ("run",)])
def test_no_command_prints_the_password(tenant: Tenant, arguments: tuple[str, ...]) -> None:
    """Shown settings mask it, and refused settings do not quote it."""
    settings = tenant.settings()
    settings["model"]["tau"] = 7 if arguments == ("run",) else 0.1
    worker = WorkerCommand(tenant.folder, "worker", settings)

    done = npstream(*arguments, "--config", str(worker.config))

    assert done.returncode == (exits.SETTINGS if arguments == ("run",) else exits.OK), done.stderr
    assert tenant.user in done.stdout or arguments == ("run",)
    assert tenant.password not in done.stdout + done.stderr
