"""Logins that change: what is read again, when a session ends for it, and what is said of a refusal."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from npstream.errors import Retryable
from npstream.kafka.config import KafkaConfig, common_settings
from npstream.kafka.errors import refuses_login, translate
from npstream.kafka.login import LoginWatch
from npstream.records import Topics
from npstream.secrets import MASK, Secrets
from npstream.settings import from_mapping
from tests.settings.builders import mapping

TOPICS = Topics("e", "d", "l", "c")
REFUSED = KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error: Authentication failed")


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def settings_with(folder: Path) -> tuple[KafkaConfig, Secrets]:
    """A login whose password, key and one option are in files, and what is kept secret of it."""
    for name in ("password", "key.pem", "cert.pem", "option"):
        (folder / name).write_text(f"first {name}")
    security = {
        "protocol": "SASL_SSL",
        "mechanism": "PLAIN",
        "username": "ada",
        "password": f"${{file:{folder / 'password'}}}",
        "cert_file": str(folder / "cert.pem"),
        "key_file": str(folder / "key.pem"),
    }
    options = {"sasl.oauthbearer.extensions": f"${{file:{folder / 'option'}}}"}
    settings = from_mapping(mapping(kafka={"security": security, "options": options}))
    assert settings.kafka is not None
    return settings.kafka.config(settings.topic_names()), settings.kafka.secrets()


def test_files_are_read_again(tmp_path: Path) -> None:
    """Passwords and options have what their files hold by then, and nothing else is different."""
    config, _ = settings_with(tmp_path)
    (tmp_path / "password").write_text("second password\n")
    (tmp_path / "option").write_text("second option")

    renewed = config.renewed()

    assert (config.security["password"], renewed.security["password"]) == ("first password", "second password")
    assert renewed.options == {"sasl.oauthbearer.extensions": "second option"}
    assert {**renewed.security, "password": "first password"} == config.security


def test_a_login_without_files_stays_as_it_is() -> None:
    """There is nothing to read."""
    settings = from_mapping(mapping())
    assert settings.kafka is not None
    config = settings.kafka.config(settings.topic_names())

    assert config.renewed() is config


def test_a_file_that_is_gone_is_retried(tmp_path: Path) -> None:
    """It may be on its way; the message names it."""
    config, _ = settings_with(tmp_path)
    (tmp_path / "password").unlink()

    with pytest.raises(Retryable, match=r"kafka.security.password: cannot read .*/password"):
        config.renewed()


def test_what_was_secret_once_stays_so(tmp_path: Path) -> None:
    """A password that was read later is masked like the first, which is masked on."""
    config, secrets = settings_with(tmp_path)
    (tmp_path / "password").write_text("second password")
    config.renewed()

    assert secrets.mask("first password, second password") == f"{MASK}, {MASK}"


@pytest.mark.parametrize("name", ["password", "key.pem", "cert.pem", "option"])
def test_a_refused_login_ends_the_session_when_its_files_have_changed(name: str, tmp_path: Path) -> None:
    """Not before: open connections work on, and another session would be refused too."""
    clock = Clock()
    watch = LoginWatch(settings_with(tmp_path)[0], clock)

    watch.look(REFUSED)
    (tmp_path / name).write_text("second")
    clock.now += 60.0
    watch.look(None)  # changed and not refused: nothing has to be done
    with pytest.raises(Retryable, match="the files of the login have changed since"):
        watch.look(REFUSED)


def test_a_file_in_the_middle_of_a_change_is_looked_at_later(tmp_path: Path) -> None:
    """A session is not given up for a file that is not there for a moment."""
    clock = Clock()
    watch = LoginWatch(settings_with(tmp_path)[0], clock)
    (tmp_path / "password").unlink()

    watch.look(REFUSED)
    (tmp_path / "password").write_text("second")
    clock.now += 60.0
    with pytest.raises(Retryable):
        watch.look(REFUSED)


def test_files_are_not_read_at_every_turn(tmp_path: Path) -> None:
    """A loop that turns fifty times a second does not ask the disk as often."""
    clock = Clock()
    watch = LoginWatch(settings_with(tmp_path)[0], clock)
    watch.look(REFUSED)
    (tmp_path / "password").write_text("second")

    watch.look(REFUSED)  # too early to look again
    clock.now += 60.0
    with pytest.raises(Retryable):
        watch.look(REFUSED)


def explained(error: KafkaError, mechanism: str) -> str:
    """What is said of an error to who logs in this way."""
    security = {"mechanism": mechanism, "token_url": "https://id/token", "aws_region": "r"}
    said = translate(error, "connecting", KafkaConfig("b:9", "g", "w", TOPICS, security=security))
    assert isinstance(said, Retryable)
    return str(said)


def test_each_refusal_says_what_to_check() -> None:
    """One code means many things: password, token, no token, certificate."""
    no_token = KafkaError(KafkaError._AUTHENTICATION, "Failed to acquire SASL OAUTHBEARER token: no route")
    alert = KafkaError(KafkaError._TRANSPORT, "ssl/tls alert bad certificate: SSL alert number 42")

    assert "(protocol, mechanism, username, password)" in explained(REFUSED, "PLAIN")
    assert "refused the token from https://id/token: compare its issuer" in explained(REFUSED, "OAUTHBEARER")
    assert "kafka-cluster:Connect" in explained(REFUSED, "AWS_MSK_IAM")
    assert "no usable token from https://id/token" in explained(no_token, "OAUTHBEARER")
    assert "no route" in explained(no_token, "OAUTHBEARER")
    assert "refused this client's certificate" in explained(alert, "PLAIN")


def test_a_broken_connection_is_no_refusal() -> None:
    """Only a broker that says why it hangs up has refused anything."""
    assert not refuses_login(KafkaError(KafkaError._TRANSPORT, "Disconnected"))
    assert refuses_login(KafkaError(KafkaError._TRANSPORT, "tls alert certificate unknown: SSL alert number 46"))


def test_tokens_of_an_endpoint_are_the_librarys() -> None:
    """It asks for them by itself."""
    security = {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER", "token_url": "https://id/token", "client_id": "c"}
    found = common_settings(KafkaConfig("b:9", "g", "w", TOPICS, security=security))

    assert found["sasl.oauthbearer.method"] == "oidc"
    assert found["sasl.oauthbearer.token.endpoint.url"] == "https://id/token"
