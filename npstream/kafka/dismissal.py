"""Ending the membership of workers that an operator says are gone.

A static member that was killed keeps its place until its session ends. There is
no call to remove it, but its name can be taken over: a consumer that joins under it gets
its place at once, and may then leave. Should the worker be alive after all, the
group refuses its next commit as that of a stranger: what it has in the air is
aborted, and it ends as the lesser of two twins or comes back through a restore.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from npstream.errors import Retryable
from npstream.kafka.admin import Admin
from npstream.kafka.clients import Sink, close_quietly, new_consumer
from npstream.kafka.config import KafkaConfig, member_settings
from npstream.kafka.errors import translate, translated
from npstream.kafka.messages import is_passing

_DOING = "taking over the places of dead workers"
_POLL_S = 0.05
_CLOSE_S = 2.0
_TAKE_S = 60.0
"""For all places together; on a calm cluster it takes a second."""


def dismiss(config: KafkaConfig, logger: logging.Logger | None = None) -> None:
    """Take the place of each static member of the group and leave it; returns when they are gone from the group.

    Members without a name of their own cannot be taken over and stay. Raises
    `Retryable` when it takes too long, `Fatal` when a worker takes its place back.
    """
    used = logger or logging.getLogger("npstream.kafka")
    admin = Admin(config, used)
    deadline = time.monotonic() + _TAKE_S
    with _substitutes(config, _static(admin), used) as substitutes:
        # All together: a rebalance that one of them causes waits for the others.
        while waiting := [substitute for substitute in substitutes if not substitute.joined()]:
            _poll(substitutes, deadline, f"{len(waiting)} of {len(substitutes)} could not be taken")
        for substitute in substitutes:
            substitute.leave()
        while left := _static(admin):
            _poll(substitutes, deadline, f"{', '.join(left)} could not be given up")


def _static(admin: Admin) -> list[str]:
    return [member.worker_name for member in admin.group().members if member.worker_name is not None]


def _poll(substitutes: Sequence["_Substitute"], deadline: float, problem: str) -> None:
    for substitute in substitutes:
        substitute.poll()
    if time.monotonic() > deadline:
        raise Retryable(
            f"the places of dead workers: {problem} within {_TAKE_S:.0f} s: check the brokers, run it again"
        )


class _Substitute:
    """A member under a dead worker's name. It reads nothing."""

    def __init__(self, config: KafkaConfig, logger: logging.Logger) -> None:
        self._config = config
        self._consumer = new_consumer(member_settings(config), Sink(logger))

    def join(self) -> None:
        """Ask for the place; it is given inside `poll`."""
        with translated(_DOING, self._config):
            self._consumer.subscribe([self._config.topics.events], on_assign=_start_at_the_end)

    def joined(self) -> bool:
        """Whether the place is taken: the former holder is a stranger from now on."""
        return bool(self._consumer.memberid())

    def leave(self) -> None:
        """Give the place up. Unlike close, this makes a static member leave."""
        with translated(_DOING, self._config):
            self._consumer.unsubscribe()

    def poll(self) -> None:
        """Let the client work for a moment."""
        with translated(_DOING, self._config):
            message = self._consumer.poll(_POLL_S)
        error = None if message is None else message.error()
        if error is not None and not is_passing(error):
            raise translate(error, _DOING, self._config)

    def close(self) -> None:
        """Let go of connections. Never raises."""
        close_quietly("substitute", self._consumer.close, _CLOSE_S)


@contextmanager
def _substitutes(config: KafkaConfig, names: Sequence[str], logger: logging.Logger) -> Iterator[list[_Substitute]]:
    """One for each name, on its way into the group; closed at the end."""
    made: list[_Substitute] = []
    try:
        for name in names:
            made.append(_Substitute(replace(config, worker_name=name, static_membership=True), logger))
            made[-1].join()
        yield made
    finally:
        for substitute in made:
            substitute.close()


def _start_at_the_end(consumer: Consumer, assigned: list[TopicPartition]) -> None:
    # What comes there is dropped and nothing is committed; a partition that is not assigned cannot be given back.
    consumer.incremental_assign([TopicPartition(place.topic, place.partition, OFFSET_END) for place in assigned])
