"""The client's errors in our tree."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from npstream.errors import Fatal, Refused, Retryable
from npstream.kafka import KafkaConfig
from npstream.kafka.errors import _FATAL, _REFUSED, _RETRYABLE, NEVER, STRIKES, WEATHER, kafka_error, translate
from npstream.records import Topics

CONFIG = KafkaConfig("host:9092", "the-group", "worker-3", Topics("ev", "de", "dl", "cp"))


@pytest.mark.parametrize("code", _FATAL)
def test_what_a_new_connection_would_not_cure_is_fatal(code: int) -> None:
    """The message says what was being done and is complete, with no hole left in it."""
    error = translate(KafkaError(code), "committing", CONFIG)

    assert type(error) is Fatal
    assert str(error).startswith("committing: ")
    assert "{" not in str(error)


@pytest.mark.parametrize("code", _RETRYABLE)
def test_what_may_pass_is_retryable(code: int) -> None:
    """The message is complete here too."""
    error = translate(KafkaException(KafkaError(code)), "reading events", CONFIG)

    assert type(error) is Retryable
    assert "{" not in str(error)


@pytest.mark.parametrize("code", _REFUSED)
def test_what_is_refused_for_its_contents_is_a_matter_of_one_partition(code: int) -> None:
    """It is suspected at once, and the message is complete."""
    error = translate(KafkaError(code), "committing", CONFIG, partition=3)

    assert isinstance(error, Refused)
    assert (error.partition, error.strikes) == (3, 1)
    assert "{" not in str(error)


def test_what_has_no_name_is_suspected_when_it_comes_back() -> None:
    """Neither weather nor a refusal that anybody knows."""
    error = translate(KafkaError(KafkaError._UNDERFLOW), "committing", CONFIG)

    assert isinstance(error, Refused)
    assert (error.partition, error.strikes) == (None, STRIKES)


def test_what_only_follows_from_another_error_is_held_against_nobody() -> None:
    """A record that comes to a transaction which has failed says nothing about its partition."""
    error = translate(KafkaError(KafkaError._STATE), "publishing", CONFIG, partition=3)

    assert isinstance(error, Refused)
    assert (error.partition, error.strikes) == (None, NEVER)


def test_no_code_has_two_meanings() -> None:
    """The tables do not overlap."""
    tables = [set(_FATAL), set(_REFUSED), set(_RETRYABLE) | WEATHER]

    assert len(set.union(*tables)) == sum(map(len, tables))


@pytest.mark.parametrize(
    "error",
    [
        KafkaException(KafkaError(KafkaError.KAFKA_STORAGE_ERROR)),
        KafkaException(KafkaError(KafkaError.UNKNOWN)),
        KafkaException("no code at all"),
        SystemError("a callback met a fatal error"),
        RuntimeError("Consumer closed"),
        BufferError("Local: Queue full"),
    ],
)
def test_whatever_is_unclear_is_retryable(error: Exception) -> None:
    """Nothing the client may come up with escapes the tree."""
    assert type(translate(error, "committing", CONFIG)) is Retryable


def test_a_fatal_error_hidden_in_a_system_error_is_found() -> None:
    """When a callback runs in the same call the library wraps its error."""
    hidden = SystemError("returned a result with an exception set")
    hidden.__cause__ = KafkaException(KafkaError(KafkaError._FENCED))

    found = kafka_error(hidden)

    assert found is not None
    assert found.code() == KafkaError._FENCED
    assert "the name 'worker-3'" in str(translate(hidden, "committing", CONFIG))


def test_the_error_behind_a_fatal_consumer_error_is_named() -> None:
    """A consumer says only that it is dead and why in words; a twin is still recognised."""
    words = f"Fatal error: {KafkaError(KafkaError.FENCED_INSTANCE_ID).str()}: Fatal consumer error"

    error = translate(KafkaError(KafkaError._FATAL, words, fatal=True), "reading events", CONFIG)

    assert type(error) is Fatal
    assert "another worker of group 'the-group' runs under the name 'worker-3'" in str(error)


def test_missing_rights_are_named() -> None:
    """Each says on what, and which."""
    said = {
        code: str(translate(KafkaError(code), "connecting", CONFIG))
        for code in (
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            KafkaError.GROUP_AUTHORIZATION_FAILED,
            KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        )
    }

    assert "WRITE and DESCRIBE on 'de', 'dl' and 'cp'" in said[KafkaError.TOPIC_AUTHORIZATION_FAILED]
    assert "READ on group 'the-group'" in said[KafkaError.GROUP_AUTHORIZATION_FAILED]
    assert "'the-group.worker-3'" in said[KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
