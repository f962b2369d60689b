"""A worker that somebody has overtaken in spite of every lock publishes nothing more."""

import sqlite3
from pathlib import Path

import pytest

from npstream.embedded import EmbeddedBroker, EmbeddedLog, create_topics
from npstream.errors import Fatal
from npstream.records import Channel
from tests.contracts.builders import chunks, decision, joined, share, values
from tests.embedded.test_worker_lock import TOPICS


@pytest.mark.parametrize(
    "moved",
    [
        "UPDATE positions SET next_offset = 9",
        "UPDATE positions SET metadata = replace(metadata, 'ab', 'ba')",
        "DELETE FROM positions",
    ],
)
def test_a_position_that_moved_under_a_worker_ends_its_commits(tmp_path: Path, moved: str) -> None:
    """Wherever it went: no output, no chunk and no position of the overtaken worker is seen, of any partition."""
    path = tmp_path / "log.db"
    create_topics(path, TOPICS, 2)
    broker, log = EmbeddedBroker(path, TOPICS, "group"), EmbeddedLog(path, TOPICS)
    joined(broker)
    broker.commit([share(0, 5, [decision(b"a")], chunks(1))])
    broker.commit([share(0, 6, [decision(b"b")], chunks(1))])
    with sqlite3.connect(path) as db:
        assert db.execute(moved).rowcount == 1
    db.close()

    with pytest.raises(Fatal, match=r"events partition 0: group 'group' was at offset 6 .*Nothing was published"):
        broker.commit([share(1, 3, [decision(b"c")], chunks(1)), share(0, 7, [decision(b"d")], chunks(1))])

    assert [values(log, Channel.DECISIONS, partition) for partition in (0, 1)] == [[b"a", b"b"], []]
    broker.abandon()
    following = EmbeddedBroker(path, TOPICS, "group")
    assert following.state.committed(1) is None
    following.abandon()
    log.close()


def test_a_first_commit_is_refused_where_a_position_has_appeared(tmp_path: Path) -> None:
    """A worker that found nothing does not overwrite what came since."""
    path = tmp_path / "log.db"
    create_topics(path, TOPICS, 1)
    broker = EmbeddedBroker(path, TOPICS, "group")
    joined(broker)
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO positions SELECT 'group', topic, 0, 4, '{}' FROM topics WHERE name = 'events'")
    db.close()

    with pytest.raises(Fatal, match="was nowhere when this worker last looked and is at offset 4 now"):
        broker.commit([share(0, 5, [decision(b"a")], chunks(1))])
    broker.abandon()
