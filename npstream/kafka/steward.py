"""A group's committed state on a Kafka cluster, read beside its workers and without joining them."""

import logging

from npstream.kafka.admin import Admin, GroupMember
from npstream.kafka.config import KafkaConfig
from npstream.kafka.restore import StateReader
from npstream.records import KeyValue, Pointer, Position

_CLOSE_S = 2.0


class KafkaSteward:
    """The `Steward` of a Kafka cluster."""

    def __init__(self, config: KafkaConfig, logger: logging.Logger | None = None) -> None:
        """Connections are made when first needed."""
        used = logger or logging.getLogger("npstream.kafka")
        self._admin = Admin(config, used)
        self._reader = StateReader(config, used, lambda: None, lambda: False)

    def members(self) -> list[str]:
        """The group's members as its coordinator knows them."""
        return [_in_words(member) for member in self._admin.group().members]

    def committed(self, partition: int) -> Position | None:
        """The stable committed position; waits for undecided transactions."""
        return self._reader.committed(partition)

    def read_checkpoint(self, partition: int, pointer: Pointer) -> list[KeyValue]:
        """The records of one snapshot; waits until they are stable."""
        return self._reader.read_checkpoint(partition, pointer)

    def close(self) -> None:
        """Let go of connections. Never raises."""
        self._reader.close(_CLOSE_S)


def _in_words(member: GroupMember) -> str:
    owned = ", ".join(map(str, member.partitions)) or "none"
    return f"{member.slot or member.client} on {member.host.removeprefix('/')} (partitions: {owned})"
