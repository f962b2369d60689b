"""Tokens and client certificates on a real broker, and logins that are changed while a worker runs."""

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from npstream.cli import exits
from tests.monitor.builders import events
from tests.security.certificates import Client, make_authority, make_client
from tests.security.provider import Provider, identity_provider
from tests.security.secured import CERTIFICATES, TOKENS, Secured, least_rights, secured_kafka
from tests.security.tenant import Tenant, refused
from tests.stage.child import ROOT
from tests.stage.command import WorkerCommand, npstream

pytestmark = pytest.mark.timeout(600)
REAUTH_MS = 4_000
"""How long a login is good for: the brokers then ask for another one on the same connection."""
SIGNER = """
import time, urllib.request, json, base64
class MSKAuthTokenProvider:
    @staticmethod
    def generate_auth_token(region):
        if region != "eu-test-1":
            raise RuntimeError("no credentials found in " + region)
        login = base64.b64encode(b"{client}:{secret}").decode()
        request = urllib.request.Request("{url}", b"", {{"Authorization": "Basic " + login}})
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.loads(response.read())["access_token"], int(1000 * (time.time() + 3600))
"""
"""Stands for Amazon's library: the same call and the same result, but tokens that the test's broker takes."""


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    """Who gives tokens."""
    with identity_provider(tmp_path_factory.mktemp("provider")) as made:
        yield made


@pytest.fixture(scope="module")
def secured(kafka_jars: Path, provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """One broker for all, which asks for every login again every few seconds."""
    with secured_kafka(kafka_jars, tmp_path_factory.mktemp("logins"), REAUTH_MS, provider) as made:
        yield made


@pytest.fixture
def tenant(secured: Secured, tmp_path: Path, topic_prefix: str) -> Tenant:
    """Names of the test's own; nothing is made yet."""
    return Tenant(secured, tmp_path, topic_prefix)


@pytest.fixture
def client(tenant: Tenant, provider: Provider) -> Iterator[str]:
    """A client of the provider, with a secret in a file. What a test has changed in tokens is changed back."""
    provider.subjects[tenant.user] = f"sec-{secrets.token_hex(12)}"
    (tenant.folder / "secret").write_text(provider.subjects[tenant.user])
    yield tenant.user
    provider.audience, provider.lifetime_s = "kafka", 3600


def by_token(tenant: Tenant, provider: Provider, **other: str) -> WorkerCommand:
    """A worker that logs in with a token."""
    given = {
        "protocol": "SASL_SSL",
        "mechanism": "OAUTHBEARER",
        "token_url": provider.token_url,
        "client_id": tenant.user,
        "client_secret": f"${{file:{tenant.folder / 'secret'}}}",
        "scope": "kafka",
    }
    return tenant.worker_at(TOKENS, **given | other)


def by_certificate(tenant: Tenant, client: Client) -> WorkerCommand:
    """A worker that has a certificate."""
    return tenant.worker_at(CERTIFICATES, protocol="SSL", cert_file=str(client.certificate), key_file=str(client.key))


def common_name(tenant: Tenant) -> str:
    """A name of the test's own that a certificate has room for."""
    return f"worker-{tenant.prefix.rstrip('.')[-8:]}"


def works(worker: WorkerCommand, meanwhile: Callable[[], None] = lambda: None, events_after: int = 0) -> None:
    """It handles the 40 events, whatever is done meanwhile some more, in one life, and stops in order."""
    worker.start()
    try:
        worker.wait_started()
        worker.wait_for(lambda: worker.events() == 40, "all events to be handled")
        meanwhile()
        if events_after:
            worker.wait_for(lambda: worker.events() == 40 + events_after, "the events that came later")
        assert worker.terminate() == exits.OK
    finally:
        worker.kill()


def test_a_token_lets_a_worker_in(tenant: Tenant, provider: Provider, client: str) -> None:
    """Its rights are those of the token's subject; neither secret nor token is shown."""
    tenant.prepare_for(client)
    worker = by_token(tenant, provider)

    works(worker)

    assert "scope=kafka" in provider.scopes[-1]
    assert provider.subjects[client] not in worker.said()
    assert [token for token in provider.issued if token in worker.said()] == []


def test_tokens_are_renewed_while_the_worker_works(tenant: Tenant, provider: Provider, client: str) -> None:
    """A token that lasts for seconds is replaced before it ends; the session goes on."""
    provider.lifetime_s = 8
    tenant.prepare_for(client)
    worker = by_token(tenant, provider)

    def until_all_tokens_are_others() -> None:
        before = len(provider.issued)
        worker.wait_for(lambda: len(provider.issued) >= 3 * before, "every client to have had two more tokens")
        tenant.send(events(7, seed=2))

    works(worker, until_all_tokens_are_others, events_after=7)

    assert worker.lines("session restart") == []


def test_a_token_for_somebody_else_is_reported(tenant: Tenant, provider: Provider, client: str) -> None:
    """Brokers say no more than that it is invalid; the message says what to compare."""
    provider.audience = "another-cluster"
    tenant.prepare_for(client)

    said = refused(by_token(tenant, provider))

    assert f"refused the token from {provider.token_url}: compare its issuer, audience, scope, lifetime" in said


def test_an_expired_token_is_reported(tenant: Tenant, provider: Provider, client: str) -> None:
    """It does not even leave the client."""
    provider.lifetime_s = -60
    tenant.prepare_for(client)

    said = refused(by_token(tenant, provider))

    assert f"no usable token from {provider.token_url}" in said
    assert "and the clocks" in said
    assert "Must supply an unexpired token" in said


def test_a_provider_out_of_reach_is_reported(tenant: Tenant, provider: Provider, client: str) -> None:
    """The endpoint is named, and what to check."""
    tenant.prepare_for(client)

    said = refused(by_token(tenant, provider, token_url="http://127.0.0.1:9/token"))

    assert "no usable token from http://127.0.0.1:9/token: check that it can be reached" in said


def test_a_secret_that_the_provider_refuses_is_reported(tenant: Tenant, provider: Provider, client: str) -> None:
    """With what to check, and without the secret."""
    tenant.prepare_for(client)
    (tenant.folder / "secret").write_text("wrong-0123456789")

    said = refused(by_token(tenant, provider))

    assert f"no usable token from {provider.token_url}" in said
    assert "kafka.security.client_id, client_secret" in said
    assert "wrong-0123456789" not in said


def signer(tenant: Tenant, provider: Provider, region: str) -> WorkerCommand:
    """A worker for Amazon MSK, with a signer beside npstream, started."""
    given = {"client": tenant.user, "secret": provider.subjects[tenant.user], "url": provider.token_url}
    (tenant.folder / "aws_msk_iam_sasl_signer.py").write_text(SIGNER.format(**given))
    worker = tenant.worker_at(TOKENS, protocol="SASL_SSL", mechanism="AWS_MSK_IAM", aws_region=region)
    worker.launch(*worker.command(), PYTHONPATH=f"{ROOT}:{tenant.folder}")
    return worker


def test_a_token_function_lets_a_worker_in(tenant: Tenant, provider: Provider, client: str) -> None:
    """Every client of a worker has tokens from the signer, which is given the region."""
    tenant.prepare_for(client)
    worker = signer(tenant, provider, "eu-test-1")
    try:
        worker.wait_started()
        worker.wait_for(lambda: worker.events() == 40, "all events to be handled")
        assert worker.terminate() == exits.OK
    finally:
        worker.kill()


def test_a_token_function_that_fails_is_reported(tenant: Tenant, provider: Provider, client: str) -> None:
    """With its own words, which the client leaves out, and what to check."""
    tenant.prepare_for(client)
    worker = signer(tenant, provider, "nowhere")
    try:
        assert worker.wait() == exits.FATAL, worker.said()
    finally:
        worker.kill()

    said = worker.err.read_text()
    assert "no token could be signed for Amazon MSK: RuntimeError: no credentials found in nowhere" in said
    assert "check the AWS credentials of this process and kafka.security.aws_region" in said


@pytest.mark.parametrize("arguments", [("check",), ("lag",)])
def test_a_signer_that_is_not_installed_is_reported(tenant: Tenant, arguments: tuple[str, ...]) -> None:
    """Before anything is deployed, and by whatever connects."""
    worker = tenant.worker_at(TOKENS, protocol="SASL_SSL", mechanism="AWS_MSK_IAM", aws_region="eu-test-1")

    done = npstream(*arguments, "--config", str(worker.config))

    assert done.returncode == (exits.SETTINGS if arguments == ("check",) else exits.FATAL)
    assert "install npstream[msk]" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_certificate_lets_a_worker_in(tenant: Tenant) -> None:
    """Its rights are those of the certificate's name."""
    name = common_name(tenant)
    tenant.prepare_for(f"CN={name}")

    works(by_certificate(tenant, make_client(tenant.folder, name, tenant.secured.authority)))


@pytest.mark.parametrize("mistake", ["of a stranger", "expired", "none"])
def test_a_certificate_that_brokers_do_not_want_is_reported(tenant: Tenant, mistake: str) -> None:
    """Brokers only hang up; the message says what to look at."""
    authority = tenant.secured.authority
    if mistake == "of a stranger":
        authority = make_authority(tenant.folder, "stranger")
    client = make_client(tenant.folder, common_name(tenant), authority, days=-1 if mistake == "expired" else 2)
    worker = tenant.worker_at(CERTIFICATES, protocol="SSL") if mistake == "none" else by_certificate(tenant, client)

    said = refused(worker)

    assert "refused this client's certificate: check that kafka.security.cert_file and key_file are given" in said
    assert "has not expired, and that the brokers trust who signed it" in said


def test_a_password_is_changed_while_the_worker_works(tenant: Tenant) -> None:
    """First at the brokers, then in the file, with time in between: the same process goes on with the new one."""
    tenant.prepare(least_rights(tenant.topics, tenant.group))
    worker = tenant.worker()
    new = f"new-{secrets.token_hex(12)}"

    def change() -> None:
        tenant.secured.set_password(tenant.user, new)
        worker.wait_for(lambda: "AUTHENTICATION" in worker.said(), "the old password to be refused")
        tenant.password_file.write_text(new)
        tenant.send(events(7, seed=2))

    works(worker, change, events_after=7)

    assert len(worker.lines("starting")) == 1
    assert "the files of the login have changed" in worker.lines("session restart")[0]["cause"]
    assert new not in worker.said()
    assert tenant.password not in worker.said()


def test_a_certificate_is_renewed_while_the_worker_works(tenant: Tenant) -> None:
    """The brokers no longer trust who signed the old one; its files are replaced, and the same process goes on."""
    authority, broker = tenant.secured.authority, tenant.secured.broker
    other = make_authority(tenant.folder, "other")
    name = common_name(tenant)
    tenant.prepare_for(f"CN={name}")
    client = make_client(tenant.folder, name, authority)
    (tenant.folder / "renewed").mkdir()
    renewed = make_client(tenant.folder / "renewed", name, other)
    worker = by_certificate(tenant, client)
    trusted = authority.certificate.read_text()

    def change() -> None:
        broker.stop()
        (authority.certificate.parent / "clients.crt").write_text(other.certificate.read_text())
        broker.start()
        worker.wait_for(lambda: "SSL alert" in worker.said(), "the old certificate to be refused")
        client.key.write_bytes(renewed.key.read_bytes())
        client.certificate.write_bytes(renewed.certificate.read_bytes())
        tenant.send(events(7, seed=2))

    try:
        works(worker, change, events_after=7)
    finally:
        (authority.certificate.parent / "clients.crt").write_text(trusted)

    assert len(worker.lines("starting")) == 1
