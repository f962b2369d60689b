"""Two lives of one worker: only one of them can commit."""

import pytest

from npstream.errors import Fatal
from npstream.kafka import KafkaLog
from npstream.records import Channel
from tests.contracts.builders import chunks, decision, eventually, joined, share, values
from tests.kafka.zombie import zombie
from tests.stage.places import KafkaPlace


def test_a_twin_with_the_same_name_ends_the_first(place: KafkaPlace, log: KafkaLog) -> None:
    """The loser's commit is fatal and says the name; its outputs are never visible, the winner's are."""
    first = place.kafka_broker("a")
    joined(first)
    second = place.kafka_broker("a")
    joined(second)

    with pytest.raises(Fatal, match=r"another worker of group .* runs under the name 'a'.*own kafka.worker_name"):
        first.commit([share(0, 1, [decision(b"loser")], chunks(1))])
    second.commit([share(0, 2, [decision(b"winner")], chunks(1))])

    eventually(lambda: values(log, Channel.DECISIONS, 0) == [b"winner"])


def test_a_twin_is_noticed_by_a_worker_that_only_reads(place: KafkaPlace) -> None:
    """A static member whose name is taken over ends with the same words, without committing anything."""
    first = place.kafka_broker("a")
    owner = joined(first)
    joined(place.kafka_broker("a"))

    with pytest.raises(Fatal, match=r"another worker of group .* runs under the name 'a'"):
        owner.poll_until(lambda: False)


def test_a_transaction_that_timed_out_is_retryable_not_a_twin(place: KafkaPlace, log: KafkaLog) -> None:
    """A worker that slept longer than its transaction must restore: nobody else has its name."""
    with zombie(place, "before_commit", transaction_timeout_ms=8000) as sleeper:
        assert log.ends(Channel.DECISIONS, 0).stable == 0
        eventually(lambda: log.ends(Channel.DECISIONS, 0).stable > 0)  # the coordinator has ended the transaction

        words = sleeper.last_words()

    assert words.startswith("Retryable: a transaction did not end within 8 s"), words
    assert values(log, Channel.DECISIONS, 0) == []


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("failpoint", ["begin", "before_send_offsets"])
def test_a_worker_that_lost_its_partitions_cannot_commit_them(
    place: KafkaPlace, log: KafkaLog, failpoint: str, static: bool
) -> None:
    """Asleep beyond its session, with another in its place, its commit is refused and leaves nothing."""
    changes = {"session_timeout_ms": 4000, "transaction_timeout_ms": 30_000, "static_membership": static}
    with zombie(place, failpoint, **changes) as sleeper:
        heir = place.kafka_broker("b")
        owner = joined(heir)
        owner.poll_until(lambda: owner.owned == {0, 1, 2})
        heir.commit([share(partition, 7, [decision(b"heir")], chunks(1)) for partition in range(3)])

        words = sleeper.last_words()

    assert words.startswith("Retryable: committing: the group has moved on without this worker"), words
    eventually(lambda: values(log, Channel.DECISIONS, 0) == [b"heir"])
    position = heir.state.committed(0)
    assert position is not None
    assert position.next_offset == 7
