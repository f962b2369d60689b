"""The doctor's round: every check in turn; one that cannot be made is a finding and does not stop the others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from npstream.doctor import cluster_checks as cluster_checkup
from npstream.doctor import file_checks as file_checkup
from npstream.doctor import group_checks as checkup
from npstream.doctor.cluster_checks import try_look
from npstream.doctor.findings import Finding
from npstream.doctor.group_checks import Patient
from npstream.errors import NpstreamError
from npstream.kafka.admin import Admin
from npstream.kafka.config import KafkaConfig
from npstream.kafka.log import KafkaLog
from npstream.kafka.topics import TopicState
from npstream.records import Channel, Record


@dataclass(frozen=True, slots=True)
class Round:
    """How to look: how many events to read per partition, the clocks, and whether to wait for a stuck log to show."""

    sample: int
    now_ms: int
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    wait: bool = True


def examine_file(patient: Patient, how: Round, progress: Callable[[int], None]) -> list[Finding]:
    """An embedded log, every record of it. Raises `Fatal` when a topic is not there.

    `progress` gets how many more records were read.
    """
    found = checkup.check_counts(patient)
    names = patient.topics.names()
    for channel in Channel:
        for partition in range(patient.log.partitions(channel)):
            look = partial(file_checkup.check_records, patient, channel, partition, progress)
            try_look(found, f"{names[channel]}/{partition}", look)
    for partition in range(patient.log.partitions(Channel.EVENTS)):
        try_look(found, f"{names[Channel.EVENTS]}/{partition}", partial(file_checkup.check_kept, patient, partition))
    return list(dict.fromkeys(found + _examine_group(patient, how)))


def _examine_group(patient: Patient, how: Round) -> list[Finding]:
    """What is the same on every broker."""
    found: list[Finding] = []
    for partition in range(patient.log.partitions(Channel.EVENTS)):
        name = f"{patient.topics.events}/{partition}"
        try_look(found, name, partial(checkup.check_partition, patient, partition))
        try_look(found, name, partial(_sample, patient, partition, how))
        try_look(found, name, partial(checkup.check_traffic, patient, partition))
    try_look(found, patient.topics.events, partial(checkup.show_event, patient))
    return found


def _sample(patient: Patient, partition: int, how: Round) -> list[Finding]:
    """The newest events, and those that a worker meets next: a trouble may be waiting far from the end."""
    name = f"{patient.topics.events}/{partition}"
    newest = checkup.tail(patient.log, partition, how.sample)
    following = checkup.ahead(patient, partition, how.sample)
    seen = {record.offset for record in newest}
    found = checkup.check_sample(name, "newest", newest, patient.config)
    if all(record.offset in seen for record in following):
        return found
    return found + checkup.check_sample(name, "next", following, patient.config)


def examine_cluster(config: KafkaConfig, poll_ms: int, patient: Patient, log: KafkaLog, how: Round) -> list[Finding]:
    """A Kafka cluster and the group on it. Raises `Retryable` or `Fatal` when no broker can be reached."""
    admin, topics = Admin(config), config.topics
    brokers = len(admin.brokers())
    found: list[Finding] = []
    settings: dict[str, str] = {}
    try_look(found, "topics", lambda: cluster_checkup.check_topics(admin, topics))
    described = _try_describe(admin, found)
    try_look(found, "brokers", lambda: settings.update(admin.broker_config()) or [])
    states = described or {}
    found += cluster_checkup.check_cleanup(topics, states)
    found += cluster_checkup.check_replicas(brokers, states, settings)
    found += cluster_checkup.check_timeouts(config, poll_ms, settings)
    found += cluster_checkup.check_sizes(config, patient.config.events.max_bytes, states, settings)
    if described is not None and len(described) < len(topics.names()):
        return found  # Without its topics there is nothing more to look at.
    partitions = log.partitions(Channel.EVENTS)
    try_look(found, "retention", lambda: _retention(patient, states, partitions, how))
    try_look(found, "group", lambda: cluster_checkup.check_group(config.group, admin.group(), partitions))
    try_look(
        found,
        "transactions",
        lambda: cluster_checkup.check_stuck(log, config, partitions, how.clock, how.sleep, wait=how.wait),
    )
    return list(dict.fromkeys(found)) + _examine_group(patient, how)


def _try_describe(admin: Admin, found: list[Finding]) -> dict[str, TopicState] | None:
    """The topics there are; None, with a finding, when we may not see them."""
    try:
        return admin.describe()
    except NpstreamError as error:
        found.append(Finding("warning", "topics", f"could not be looked at: {error}", "see the message"))
        return None


def _retention(patient: Patient, states: Mapping[str, TopicState], partitions: int, how: Round) -> list[Finding]:
    log = patient.log
    undecided, newest = [], []
    for partition in range(partitions):
        position, ends = patient.state.committed(partition), log.ends(Channel.EVENTS, partition)
        at = ends.begin if position is None else position.next_offset
        undecided += [record.timestamp_ms for record in _first(patient, partition, at, ends.stable)]
        newest += [record.timestamp_ms for record in checkup.tail(log, partition, 1)]
    return cluster_checkup.check_retention(
        patient.topics, states, how.now_ms, min(undecided, default=None), max(newest, default=None)
    )


def _first(patient: Patient, partition: int, begin: int, end: int) -> list[Record]:
    found = next(patient.log.read(Channel.EVENTS, partition, begin, end), None) if begin < end else None
    return [] if found is None else [found]
