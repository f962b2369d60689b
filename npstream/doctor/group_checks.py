"""What is checked of a group on any broker: its positions, its checkpoints, and whether its events can be read."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from npstream.codec.decoder import EventDecoder
from npstream.codec.sample import read_sample, unstable
from npstream.codec.snapshot import Snapshot, check_topic
from npstream.doctor.findings import Finding
from npstream.errors import BadEvent, SettingsError, StateCorrupt
from npstream.model import ALGORITHM
from npstream.partition import PartitionConfig, PartitionProcessor
from npstream.partition.config import check_change
from npstream.partition.foresight import Traffic, foresee
from npstream.port import Ends, Log, StateReader
from npstream.records import Channel, Position, Record, Topics
from npstream.state import check_label_topic, committed_snapshot, kept_history, processor_of

_PACED_MIN = 1000
"""Events from which the rate of a partition can be seen."""
_SHOWN = 100
"""Newest events that a user's function is tried on."""


@dataclass(frozen=True, slots=True)
class Patient:
    """A group to be looked at, and the settings its next worker would start with."""

    log: Log
    state: StateReader
    group: str
    topics: Topics
    config: PartitionConfig
    seeded: bool = False
    """Whether a new partition begins with a trained model."""


def check_counts(patient: Patient) -> list[Finding]:
    """Every output topic has a partition for each input partition."""
    counts = [patient.log.partitions(channel) for channel in patient.topics.channels()]
    narrow = patient.topics.too_narrow(counts)
    fix = "run `npstream init`, which adds the missing ones"
    found = [Finding("error", name, problem, fix) for name, problem in narrow]
    wide = patient.topics.misplaced_labels(counts)
    return found if wide is None else [*found, Finding("error", "labels.topic", wide, "see the message")]


def check_partition(patient: Patient, partition: int) -> list[Finding]:
    """A partition's position, the checkpoint it points to, and whether a worker could go on from there."""
    name = f"{patient.topics.events}/{partition}"
    ends = patient.log.ends(Channel.EVENTS, partition)
    try:
        position = patient.state.committed(partition)
    except StateCorrupt as error:
        fix = "`npstream recover` finds the place again, `npstream reset` starts over"
        return [Finding("error", name, f"its committed offset is unreadable: {error}", fix)]
    if position is None:
        return _without_position(patient, partition, name)
    found = _place(name, position, ends)
    try:
        snapshot = committed_snapshot(
            patient.state, patient.log, patient.group, patient.topics.events, partition, position
        )
        processor = processor_of(snapshot)
    except StateCorrupt as error:
        return [*found, Finding("error", name, f"its checkpoint is unreadable: {error}", _way_back(patient, partition))]
    recreated = _recreated(patient, name, snapshot)
    if recreated:
        return recreated  # what its offsets say means nothing
    found += _labels_recreated(patient, name, processor)
    return [*found, *_replay(name, position, snapshot, ends), *_settings(name, processor.config, patient.config)]


def _way_back(patient: Patient, partition: int) -> str:
    """What helps where a checkpoint is gone, by whether another is left."""
    try:
        left = _newest(patient, partition)
    except StateCorrupt:
        left = None
    if left is None:
        return "no other is left: stop the workers, `npstream recover --execute` rebuilds the state from the events"
    return f"a worker falls back to the kept one at offset {left.next_offset}; or choose one by `npstream rollback`"


def _recreated(patient: Patient, name: str, snapshot: Snapshot) -> list[Finding]:
    """Whether the events topic is another than the one that a checkpoint was learned from."""
    try:
        check_topic(snapshot, patient.log.topic_id())
    except StateCorrupt as error:
        return [Finding("error", name, str(error), "`npstream reset --to earliest`, with --keep-model or without")]
    return []


def _labels_recreated(patient: Patient, name: str, processor: PartitionProcessor) -> list[Finding]:
    """Whether the labels topic is another than the one that a checkpoint was learned from."""
    topic = processor.config.label_topic
    if topic is None or topic.name != patient.topics.labels:
        return []
    try:
        check_label_topic(processor, patient.log.topic_id(Channel.LABELS))
    except StateCorrupt as error:
        return [Finding("error", name, str(error), "`npstream reset` with --keep-model at the committed offset")]
    return []


def _without_position(patient: Patient, partition: int, name: str) -> list[Finding]:
    ends = patient.log.ends(Channel.DECISIONS, partition)
    if next(patient.log.read(Channel.DECISIONS, partition, ends.begin, ends.stable), None) is None:
        return [Finding("note", name, "has no state yet; a worker starts it by the setting `start`")]
    found = _newest(patient, partition)
    recreated = [] if found is None else _recreated(patient, name, found)
    if recreated:
        return recreated
    problem = f"group {patient.group!r} has no committed offset, yet decisions were published: its offsets were lost"
    fix = "run `npstream recover`; if the decisions are another group's, give this one a topic of its own"
    return [Finding("error", name, problem, fix)]


def _newest(patient: Patient, partition: int) -> Snapshot | None:
    newest = kept_history(patient.log, patient.group, patient.topics.events, partition).newest
    return None if newest is None else newest.snapshot


def _place(name: str, position: Position, ends: Ends) -> list[Finding]:
    at = position.next_offset
    if at > ends.high:
        problem = f"is committed at offset {at}, the topic ends at {ends.high}: it was deleted and created again"
        return [Finding("error", name, problem, "`npstream reset --to earliest` starts over")]
    if at < ends.begin:
        problem = f"is committed at offset {at}, events are kept from {ends.begin} on: some were never decided"
        fix = "`npstream reset --to earliest --keep-model` goes on with the rest; then raise the topic's retention"
        return [Finding("error", name, problem, fix)]
    return []


def _replay(name: str, position: Position, snapshot: Snapshot, ends: Ends) -> list[Finding]:
    """Whether a restart can replay from the checkpoint to the committed offset."""
    distance = position.next_offset - snapshot.next_offset
    if distance == 0:
        return []
    if snapshot.next_offset < ends.begin <= position.next_offset:
        problem = f"a restart must replay from offset {snapshot.next_offset}, events are kept from {ends.begin} on"
        fix = "let a running worker write its next checkpoint, and raise the topic's retention"
        return [Finding("error", name, problem, fix)]
    if snapshot.algorithm != ALGORITHM:
        problem = f"a restart must replay {distance} events that algorithm version {snapshot.algorithm} decided"
        return [Finding("error", name, problem, "start the old version once more and stop it cleanly, then upgrade")]
    return []


def _settings(name: str, old: PartitionConfig, new: PartitionConfig) -> list[Finding]:
    """Whether the settings can follow those in the checkpoint."""
    if old == new:
        return []
    try:
        check_change(old, new)
        old.params.check_change(new.params)
    except SettingsError as error:
        fix = "restore the old values, or give the new ones a group of their own"
        return [Finding("error", name, f"the settings do not fit its checkpoint: {'; '.join(error.problems)}", fix)]
    before, after = old.to_dict(), new.to_dict()
    differing = sorted(name for name in after if before[name] != after[name])
    return [Finding("note", name, f"settings will change at the next start: {', '.join(differing)}")]


def tail(log: Log, partition: int, count: int) -> list[Record]:
    """The newest events of a partition; fewer where offsets hold no record."""
    ends = log.ends(Channel.EVENTS, partition)
    return list(log.read(Channel.EVENTS, partition, max(ends.begin, ends.stable - count), ends.stable))


def check_traffic(patient: Patient, partition: int) -> list[Finding]:
    """What the rate at which events come means for observations that wait for labels."""
    log, ends = patient.log, patient.log.ends(Channel.EVENTS, partition)
    if ends.stable - ends.begin < _PACED_MIN:
        return []
    oldest, newest = next(log.read(Channel.EVENTS, partition, ends.begin, ends.stable), None), tail(log, partition, 1)
    if oldest is None or not newest or newest[0].timestamp_ms <= oldest.timestamp_ms:
        return []
    traffic = Traffic(1000 * (ends.stable - ends.begin) / (newest[0].timestamp_ms - oldest.timestamp_ms))
    started = patient.seeded or patient.state.committed(partition) is not None
    name = f"{patient.topics.events}/{partition}"
    return [Finding("warning", name, *found) for found in foresee(patient.config, traffic, seeded=started)]


def ahead(patient: Patient, partition: int, count: int) -> list[Record]:
    """The events that a worker meets next. Raises `StateCorrupt` when one of them cannot be read at all."""
    ends = patient.log.ends(Channel.EVENTS, partition)
    try:
        position = patient.state.committed(partition)
    except StateCorrupt:
        return []  # a finding of its own: nobody goes on from there
    begin = ends.begin if position is None else max(ends.begin, position.next_offset)
    return list(islice(patient.log.read(Channel.EVENTS, partition, begin, ends.stable), count))


def check_sample(name: str, which: str, records: Sequence[Record], config: PartitionConfig) -> list[Finding]:
    """Whether events can be read with these settings; names each reason with an example."""
    errors = EventDecoder(config.events).decode(records).errors
    if not errors:
        return []
    problem = f"{len(errors)} of its {which} {len(records)} events are bad: {'; '.join(_reasons(errors, records))}"
    fix = "fix the producer, or correct model.d or events (`npstream map` writes that section); see `npstream dlq list`"
    pauses = len(errors) / len(records) > config.dead_letter_cap
    return [Finding("error" if pauses else "warning", name, problem, fix)]


def show_event(patient: Patient) -> list[Finding]:
    """How the newest event is read, column by column, where the settings name features; whether a function is pure."""
    events = patient.config.events
    if events.columns is None:
        return []
    for partition in range(patient.log.partitions(Channel.EVENTS)):
        records = tail(patient.log, partition, _SHOWN)
        if records:
            name = f"{patient.topics.events}/{partition}"
            changed = unstable(records, events)
            found = [Finding("error", name, changed, "make the function of events.transform pure")] if changed else []
            return [*found, Finding("note", name, "\n         ".join(read_sample(records[-1], events).lines()))]
    return []


def _reasons(errors: Mapping[int, BadEvent], records: Sequence[Record]) -> Iterator[str]:
    """Each reason with its number and the first event that has it."""
    first: dict[str, int] = {}
    for index, error in errors.items():
        first.setdefault(error.reason, index)
    for reason, count in Counter(error.reason for error in errors.values()).most_common():
        index = first[reason]
        yield f"{count} {reason} (at offset {records[index].offset}: {errors[index].detail})"
