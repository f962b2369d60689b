"""Deliberate bugs, each with the test that must catch it.

A mutant replaces one function of the program in the process that is to run with
it, never in production code. `apply` is called by worker processes
(`NPSTREAM_MUTANT` in their environment) and by `tests.system.mutate`, a pytest
plugin that does the same to a test process. `make mutants` runs each test with
its mutant and demands that it fails, for the reason given here.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

VARIABLE = "NPSTREAM_MUTANT"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug: how to make it, the test that catches it, and what that test then says (a regular expression)."""

    bug: str
    patch: Callable[[], None]
    caught_by: str
    says: str


def apply_from_environment() -> None:
    """Bring in the bug this process was told to have, if any."""
    name = os.environ.get(VARIABLE)
    if name:
        MUTANTS[name].patch()


def _replace(bug: Any, *places: tuple[Any, str]) -> None:
    for owner, name in places:
        assert hasattr(owner, name), f"{owner} has no {name}: the mutant is out of date"
        setattr(owner, name, bug)


def _read_uncommitted() -> None:
    from npstream.kafka import config, restore

    honest = config.reader_settings

    def settings(of: Any) -> Any:
        return {**honest(of), "isolation.level": "read_uncommitted"}

    _replace(settings, (config, "reader_settings"), (restore, "reader_settings"))


def _never_joined_metadata() -> None:
    from confluent_kafka import Consumer

    from npstream.kafka.member import Member

    def metadata(self: Any) -> Any:
        stranger = Consumer({"bootstrap.servers": self._config.bootstrap, "group.id": self._config.group})
        return stranger.consumer_group_metadata()

    _replace(metadata, (Member, "group_metadata"))


def _offsets_while_replaying() -> None:
    from npstream.worker.loop import Worker

    honest = Worker._replay

    def replay(self: Any, batches: Any) -> Any:
        live = honest(self, batches)
        silent = [task for task in self._tasks.values() if not task.live and task.replayed]
        self._commit([task._share((), self._clock(), snapshot=False) for task in silent])
        return live

    _replace(replay, (Worker, "_replay"))


def _batch_not_split() -> None:
    from npstream.worker.task import PartitionTask

    honest = PartitionTask.replay

    def replay(self: Any, records: Any) -> Any:
        if self.live or records[-1].offset < self._goal.next_offset:
            return honest(self, records)
        self.processor.process(records)
        self.replayed += len(records)
        self.live = True
        return []

    _replace(replay, (PartitionTask, "replay"))


_ZOMBIE = "tests/system/test_zombies.py::test_a_zombie_neither_doubles_nor_loses"
_REPLAY = "tests/system/test_replay.py::test_a_worker_killed_while_it_replays_starts_over"

MUTANTS = {
    "read_uncommitted": Mutant(
        "positions and events are read without waiting for undecided transactions",
        _read_uncommitted,
        f"{_ZOMBIE}[after_send_offsets]",
        r"[1-9]\d* doubled",
    ),
    "never_joined_metadata": Mutant(
        "offsets are sent with the metadata of a consumer that never joined the group",
        _never_joined_metadata,
        f"{_ZOMBIE}[before_send_offsets]",
        r"[1-9]\d* doubled",
    ),
    "offsets_while_replaying": Mutant(
        "a partition commits its offset while it replays", _offsets_while_replaying, _REPLAY, r"[1-9]\d* doubled"
    ),
    "batch_not_split": Mutant(
        "a batch that crosses the committed offset is replayed whole", _batch_not_split, _REPLAY, r"[1-9]\d* lost"
    ),
}
