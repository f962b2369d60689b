"""One worker per file, by whatever name it is reached: real workers, each an `npstream run` of its own."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from npstream.cli.exits import FATAL
from npstream.embedded import EmbeddedLog, create_topics
from npstream.records import Channel, Topics
from tests.stage.command import WorkerCommand, npstream

pytestmark = pytest.mark.slow
TOPICS = Topics("events", "events-decisions", "events-dead-letters", "events-checkpoints")
EVENTS = [(b"k%d" % i, b'{"x":[%d,1],"y":%d}' % (i % 7, i % 2), (), 1_700_000_000_000 + i) for i in range(200)]


def settings(path: Path) -> dict[str, Any]:
    """A small model on the log at this path."""
    return {
        "embedded": {"path": str(path), "group": "g"},
        "topics": {"events": "events"},
        "model": {"d": 2, "D": 8, "tau": 0.1},
        "http": "off",
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log with events, in a folder of its own."""
    create_topics(tmp_path / "data" / "log.db", TOPICS, 1)
    log = EmbeddedLog(tmp_path / "data" / "log.db", TOPICS)
    log.append(Channel.EVENTS, 0, EVENTS)
    log.close()
    return tmp_path / "data" / "log.db"


@pytest.fixture
def first(path: Path, tmp_path: Path) -> Iterator[WorkerCommand]:
    """A worker that has decided everything and waits for more."""
    worker = WorkerCommand(tmp_path, "first", settings(path)).start()
    try:
        worker.wait_for(lambda: decided(path) == list(range(len(EVENTS))), "the first worker to decide all")
        yield worker
    finally:
        worker.kill()


def decided(path: Path) -> list[int]:
    """The input offsets of all decisions, in the order of the log; empty while another name is in the way."""
    log = EmbeddedLog(path, TOPICS)
    found = [int(record.headers[-1][1] or b"") for record in log.read(Channel.DECISIONS, 0, 0, 2**40)]
    log.close()
    return found


def same(path: Path) -> Path:
    """The path itself."""
    return path


def roundabout(path: Path) -> Path:
    """Another spelling."""
    return path.parent / ".." / path.parent.name / path.name


def symlink(path: Path) -> Path:
    """A symbolic link in another folder."""
    link = path.parent.parent / "linked.db"
    link.symlink_to(path)
    return link


def linked_folder(path: Path) -> Path:
    """The folder by a symbolic link."""
    link = path.parent.parent / "folder"
    link.symlink_to(path.parent, target_is_directory=True)
    return link / path.name


def hard_link(path: Path) -> Path:
    """A second name of the file, made while the first worker runs."""
    link = path.parent / "second.db"
    os.link(path, link)
    return link


def copy_of_the_lock_removed(path: Path) -> Path:
    """The path itself, what lies beside the log tidied away."""
    path.with_name(path.name + ".lock").unlink()
    return path


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (same, "another worker (process {pid})"),
        (roundabout, "another worker (process {pid})"),
        (symlink, "another worker (process {pid})"),
        (linked_folder, "another worker (process {pid})"),
        (hard_link, "has 2 names"),
        (copy_of_the_lock_removed, "another worker"),
    ],
)
def test_a_second_worker_is_refused_by_any_name(
    first: WorkerCommand, path: Path, tmp_path: Path, name: Any, said: str
) -> None:
    """It ends with one clear message and the code for brokers; the first works on, each event decided once."""
    other = name(path)
    second = WorkerCommand(tmp_path, "second", settings(other)).start()
    try:
        assert second.wait() == FATAL
    finally:
        second.kill()
    assert said.format(pid=first.pid) in second.said()
    assert "Traceback" not in second.said()
    if name is hard_link:
        other.unlink()

    log = EmbeddedLog(path, TOPICS)
    log.append(Channel.EVENTS, 0, EVENTS[:50])
    log.close()
    first.wait_for(lambda: len(decided(path)) >= len(EVENTS) + 50, "the first worker to go on")
    assert first.terminate() == 0
    assert decided(path) == list(range(len(EVENTS) + 50))


def test_a_worker_does_not_start_on_a_file_with_two_names(path: Path, tmp_path: Path) -> None:
    """Neither name is taken while both exist: SQLite keeps its journal beside the name."""
    other = path.with_name("second.db")
    os.link(path, other)
    for number, name in enumerate((path, other)):
        worker = WorkerCommand(tmp_path, f"worker{number}", settings(name)).start()
        try:
            assert worker.wait() == FATAL
        finally:
            worker.kill()
        assert "has 2 names" in worker.said()
        done = npstream("lag", "--config", str(worker.config))
        assert (done.returncode, "has 2 names" in done.stderr) == (FATAL, True)


def test_a_worker_stops_when_its_file_is_moved_away(first: WorkerCommand, path: Path, tmp_path: Path) -> None:
    """The next worker finds the file at its new place whole, and nothing is decided twice."""
    moved = path.with_name("moved.db")
    path.rename(moved)

    assert first.wait() == FATAL
    assert "was moved, replaced or deleted" in first.said()
    log = EmbeddedLog(moved, TOPICS)
    log.append(Channel.EVENTS, 0, EVENTS[:50])
    log.close()
    second = WorkerCommand(tmp_path, "second", settings(moved)).start()
    try:
        second.wait_for(lambda: len(decided(moved)) >= len(EVENTS) + 50, "the second worker to decide the rest")
        assert second.terminate() == 0
    finally:
        second.kill()
    assert decided(moved) == list(range(len(EVENTS) + 50))
