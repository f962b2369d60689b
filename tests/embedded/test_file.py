"""The file itself: creating, growing, refusing, staying small."""

import os
import sqlite3
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npstream.embedded import EmbeddedBroker, EmbeddedLog, create_topics
from npstream.embedded.headers import decode_headers, encode_headers
from npstream.errors import Fatal, StateCorrupt
from npstream.records import Channel, Headers, Record, Topics
from tests.contracts.builders import chunks, decision, joined, offsets, share, values

TOPICS = Topics("events", "decisions", "dead", "checkpoints")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log with two partitions."""
    create_topics(tmp_path / "log.db", TOPICS, 2)
    return tmp_path / "log.db"


def test_a_log_that_does_not_exist_is_named_with_its_remedy(tmp_path: Path) -> None:
    """Opening never creates: a mistyped path must not become an empty log."""
    with pytest.raises(Fatal, match=r"no embedded log at .*mistyped\.db: run `npstream init`"):
        EmbeddedLog(tmp_path / "mistyped.db", TOPICS)
    assert not (tmp_path / "mistyped.db").exists()


def test_a_log_and_its_journal_are_for_their_owner_alone(path: Path) -> None:
    """Events may be anybody's personal data: no other user of the machine reads them, whatever the umask."""
    log = EmbeddedLog(path, TOPICS)
    log.append(Channel.EVENTS, 0, [(None, b"event", (), 5)])
    broker = EmbeddedBroker(path, TOPICS, "group")

    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(("log.db", "log.db-wal", "log.db-shm", "log.db.lock"), 0o600)
    broker.abandon()
    log.close()


def test_a_folder_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    """A path that leads to a folder, or through a file, ends with one message."""
    (tmp_path / "file").write_bytes(b"")
    for wrong in (tmp_path, tmp_path / "file" / "log.db"):
        with pytest.raises(Fatal, match=r"cannot be opened|no embedded log at|is a folder"):
            EmbeddedLog(wrong, TOPICS)


def test_a_closed_log_leaves_no_open_file(path: Path) -> None:
    """However many share the file, and in whatever order they let go."""
    before = len(os.listdir("/proc/self/fd"))
    logs = [EmbeddedLog(path, TOPICS) for _ in range(3)]
    broker = EmbeddedBroker(path, TOPICS, "group")
    with pytest.raises(Fatal):
        EmbeddedBroker(path, TOPICS, "group")
    for each in (logs[1], broker, logs[0], logs[2]):
        each.abandon() if isinstance(each, EmbeddedBroker) else each.close()

    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_is_not_a_log_is_refused(tmp_path: Path) -> None:
    """Somebody else's file is left alone."""
    (tmp_path / "notes.txt").write_bytes(b"these are my notes, not a database" * 100)
    with pytest.raises(Fatal, match=r"notes\.txt is not an embedded log"):
        EmbeddedLog(tmp_path / "notes.txt", TOPICS)


def test_a_log_of_another_format_is_refused(path: Path) -> None:
    """A newer file is not touched by an older program."""
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(Fatal, match=r"has log format 99, this npstream knows 1"):
        EmbeddedBroker(path, TOPICS, "group")


def test_creating_again_keeps_what_is_there_and_adds_partitions(path: Path) -> None:
    """Init may be run again: records stay, new partitions start empty, none is taken away."""
    log = EmbeddedLog(path, TOPICS)
    log.append(Channel.EVENTS, 1, [(None, b"event", (), 5)])

    create_topics(path, TOPICS, 4)
    create_topics(path, TOPICS, 3)

    assert log.partitions(Channel.EVENTS) == 4
    assert [values(log, Channel.EVENTS, partition) for partition in range(4)] == [[], [b"event"], [], []]
    log.close()


def test_outputs_with_fewer_partitions_than_the_events_are_refused(path: Path) -> None:
    """The topic that is too small is named with the remedy."""
    create_topics(path, Topics("events", "a", "b", "c"), 3)
    with pytest.raises(Fatal, match=r"'decisions' has 2 partitions, 'events' has 3: run `npstream init`"):
        EmbeddedBroker(path, TOPICS, "group")


def test_the_checkpoint_topic_stays_small_however_many_snapshots_were_written(path: Path) -> None:
    """A thousand snapshots in a ring of four leave at most the ring and one round of compaction."""
    broker = EmbeddedBroker(path, TOPICS, "group")
    joined(broker)
    for turn in range(1000):
        broker.commit([share(0, turn, chunks=[(b"ring/%d" % (turn % 4), b"x" * 1000)])])
    broker.close(1.0)
    log = EmbeddedLog(path, TOPICS)
    assert len(values(log, Channel.CHECKPOINTS, 0)) < 100

    EmbeddedBroker(path, TOPICS, "group").abandon()
    assert len(values(log, Channel.CHECKPOINTS, 0)) == 4
    log.close()


def test_writers_in_several_threads_and_a_committing_worker_lose_nothing(path: Path) -> None:
    """Appends from four threads arrive whole, in order within each batch, while the worker commits."""
    broker = EmbeddedBroker(path, TOPICS, "group")
    owner = joined(broker)
    shared = EmbeddedLog(path, TOPICS)

    def write(writer: int) -> None:
        for batch in range(20):
            shared.append(Channel.EVENTS, 0, [(None, b"%d/%d/%d" % (writer, batch, n), (), 5) for n in range(10)])

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    got: list[Record] = []
    while len(got) < 800:
        got += owner.collect(1)[0]
        broker.commit([share(0, got[-1].offset + 1, [decision(b"d")], chunks(1))])
    for thread in threads:
        thread.join()

    assert offsets({0: got}) == {0: list(range(800))}
    seen = [record.value for record in got]
    for writer in range(4):
        own = [value for value in seen if value is not None and value.startswith(b"%d/" % writer)]
        assert own == [b"%d/%d/%d" % (writer, batch, n) for batch in range(20) for n in range(10)]
    shared.close()
    broker.abandon()


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8"), max_size=50), st.none() | st.binary(max_size=50))))
def test_headers_come_back_as_they_were(headers: Headers) -> None:
    """Names, order, duplicates, empty and absent values survive."""
    assert list(decode_headers(encode_headers(headers))) == list(headers)


@pytest.mark.parametrize("count", ["0", "-1", "3", "'two'"])
def test_a_damaged_partition_count_is_named(path: Path, count: str) -> None:
    """None, fewer than none, more than there are, or no number: nobody reads or writes by it."""
    with sqlite3.connect(path) as db:
        db.execute(f"UPDATE topics SET partitions = {count} WHERE name = 'events'")
    db.close()
    log = EmbeddedLog(path, TOPICS)

    with pytest.raises(StateCorrupt, match=rf"topic 'events' should have {count} partitions, there are 2"):
        log.append(Channel.EVENTS, 0, [(None, b"event", (), 5)])
    log.close()
