"""Deliberate bugs, each with the test that must catch it.

A mutant replaces one function of the program in the process that is to run with
it, never in production code. `apply` is called by worker processes
(`NPSTREAM_MUTANT` in their environment) and by `tests.system.mutate`, a pytest
plugin that does the same to a test process. `make mutants` runs each test with
its mutant and demands that it fails, for the reason given here.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
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
    """Bring in the bug this process is to have, if any."""
    name = os.environ.get(VARIABLE)
    if name:
        MUTANTS[name].patch()


def _replace(bug: Any, *places: tuple[Any, str]) -> None:
    for owner, name in places:
        assert hasattr(owner, name), f"{owner} has no {name}: the mutant is out of date"
        setattr(owner, name, bug)


def _read_uncommitted() -> None:
    from npstream.kafka import config, state

    honest = config.reader_settings

    def settings(of: Any) -> Any:
        return {**honest(of), "isolation.level": "read_uncommitted"}

    _replace(settings, (config, "reader_settings"), (state, "reader_settings"))


def _login_as_it_was() -> None:
    from npstream.kafka.config import KafkaConfig

    def renewed(self: Any) -> Any:
        return self

    _replace(renewed, (KafkaConfig, "renewed"))


def _certificates_unseen() -> None:
    from npstream.kafka import login

    _replace(lambda _: b"", (login, "_content"))


def _never_joined_metadata() -> None:
    from confluent_kafka import Consumer

    from npstream.kafka.member import Member

    def metadata(self: Any) -> Any:
        stranger = Consumer({"bootstrap.servers": self._config.bootstrap, "group.id": self._config.group})
        return stranger.consumer_group_metadata()

    _replace(metadata, (Member, "group_metadata"))


def _offsets_while_replaying() -> None:
    from npstream.records import Phase
    from npstream.worker.session import Session

    honest = Session._replay

    def replay(self: Any, batches: Any) -> Any:
        live = honest(self, batches)
        silent = [task for task in self._tasks.values() if task.phase is Phase.REPLAYING and task.replayed]
        self._commits.settle()
        self._commits.publish([task._share((), self._clock(), snapshot=False) for task in silent])
        return live

    _replace(replay, (Session, "_replay"))


def _batch_not_split() -> None:
    from npstream.records import Phase
    from npstream.worker.partition_task import PartitionTask

    honest = PartitionTask.replay

    def replay(self: Any, records: Any) -> Any:
        if records[-1].offset < self._goal.next_offset:
            return honest(self, records)
        self.processor.process(records)
        self.replayed += len(records)
        self.phase = Phase.LIVE
        return []

    _replace(replay, (PartitionTask, "replay"))


def _wall_clock_timestamp() -> None:
    from npstream.partition.outputs import OutputBuilder

    honest = OutputBuilder.decisions

    def decisions(self: Any, *arguments: Any) -> Any:
        return [output._replace(timestamp_ms=time.time_ns() // 1000) for output in honest(self, *arguments)]

    _replace(decisions, (OutputBuilder, "decisions"))


def _hash_order() -> None:
    import numpy as np

    from npstream.partition import keyed, pending

    honest = keyed.append_all

    def append_all(entries: Any, keys: Any) -> Any:
        order = np.argsort(keys[:, 0])
        slots = np.empty(len(keys), np.int64)
        slots[order] = honest(entries, keys[order])
        return slots

    _replace(append_all, (pending, "append_all"))


def _reasons_forgotten() -> None:
    from npstream.partition import PartitionConfig

    honest = PartitionConfig.from_dict.__func__  # type: ignore[attr-defined]

    def from_dict(cls: Any, values: Any) -> Any:
        return honest(cls, {**values, "reasons": 0})

    _replace(classmethod(from_dict), (PartitionConfig, "from_dict"))


def _resets_unknown_to_a_search() -> None:
    from npstream.history import find_decision

    honest: Any = vars(find_decision)["passes"]

    def passes(log: Any, channel: Any, partition: Any, begin: Any, _: Any) -> Any:
        return honest(log, channel, partition, begin, ())

    _replace(passes, (find_decision, "passes"))


def _outputs_by_topic() -> None:
    from npstream.partition.processor import PartitionProcessor

    honest = PartitionProcessor._publish

    def publish(self: Any, *arguments: Any) -> Any:
        return sorted(honest(self, *arguments), key=lambda output: output.channel)

    _replace(publish, (PartitionProcessor, "_publish"))


def _expiry_by_wall_clock() -> None:
    import numpy as np

    from npstream.partition import operations, processor

    honest = operations.columns_of

    def columns_of(*arguments: Any) -> Any:
        made = honest(*arguments)
        return made._replace(stamp=np.full_like(made.stamp, int(time.time() * 1000)))

    _replace(columns_of, (processor, "columns_of"))


def _history_by_wall_clock() -> None:
    import numpy as np

    from npstream.partition.timeline import Timeline

    honest = Timeline.count

    def count(self: Any, stamps: Any, *arguments: Any) -> None:
        honest(self, np.full_like(stamps, time.time_ns() // 1_000_000), *arguments)

    _replace(count, (Timeline, "count"))


def _history_without_its_warmup() -> None:
    from npstream.partition.timeline import Timeline

    honest = Timeline.count

    def count(self: Any, stamps: Any, operations: Any, outcome: Any) -> None:
        honest(self, stamps, operations, outcome._replace(warm=0 * outcome.warm))

    _replace(count, (Timeline, "count"))


def _no_proof_check() -> None:
    from npstream.worker.partition_task import PartitionTask

    _replace(lambda self, goal: None, (PartitionTask, "_check_proof"))


def _offset_off_by_one() -> None:
    from npstream.worker.partition_task import PartitionTask

    honest = PartitionTask._share

    def share(self: Any, *arguments: Any, **named: Any) -> Any:
        made = honest(self, *arguments, **named)
        early = max(made.position.pointer.next_offset, made.position.next_offset - 1)
        return replace(made, position=replace(made.position, next_offset=early))

    _replace(share, (PartitionTask, "_share"))


def _failed_commit_ignored() -> None:
    from npstream.errors import Retryable
    from npstream.worker.commits import Commits

    honest = Commits.finish

    def finish(self: Any) -> None:
        with suppress(Retryable):
            honest(self)

    _replace(finish, (Commits, "finish"))


def _staged_survives_loss() -> None:
    from npstream.worker.commits import Commits

    _replace(lambda self, partitions: None, (Commits, "drop"))


def _staged_forgotten_on_revoke() -> None:
    from npstream.worker.session import Session

    honest = Session.on_revoked

    def revoked(self: Any, partitions: Any) -> None:
        self._commits.drop(partitions)
        honest(self, partitions)

    _replace(revoked, (Session, "on_revoked"))


def _shares_before_the_commit_is_over() -> None:
    from npstream.worker.session import Session

    process, shares = Session._process, Session._shares
    early: list[Any] = []

    def processed(self: Any, live: Any) -> Any:
        steps = process(self, live)
        early.append(shares(self, steps, self._clock()))
        return steps

    _replace(processed, (Session, "_process"))
    _replace(lambda self, steps, now: early.pop(), (Session, "_shares"))


def _checkpoint_while_replaying() -> None:
    from npstream.records import Phase
    from npstream.worker.partition_task import PartitionTask

    honest = PartitionTask.checkpoint

    def checkpoint(self: Any, now: float, *, forced: bool) -> Any:
        phase, self.phase = self.phase, Phase.LIVE
        try:
            return honest(self, now, forced=forced)
        finally:
            self.phase = phase

    _replace(checkpoint, (PartitionTask, "checkpoint"))


def _settings_before_replay() -> None:
    from npstream.worker.partition_task import PartitionTask

    honest = PartitionTask.replay

    def replay(self: Any, records: Any) -> Any:
        if self.processor.config != self._wanted:
            self.processor.reconfigure(self._wanted)
        return honest(self, records)

    _replace(replay, (PartitionTask, "replay"))


def _change_without_record() -> None:
    from npstream.worker.partition_task import PartitionTask

    honest = PartitionTask.first_commit

    def first_commit(self: Any, now: float) -> Any:
        return replace(honest(self, now), changes=())

    _replace(first_commit, (PartitionTask, "first_commit"))


def _challenger_not_restored() -> None:
    from npstream.partition.challenger import Challenger

    honest = Challenger.load

    def load(config: Any, meta: Any, blobs: Any) -> Any:
        found = honest(config, meta, blobs)
        return None if found is None else Challenger.cold(config, 0, found.began, found.since)

    _replace(staticmethod(load), (Challenger, "load"))


def _promotion_one_offset_late() -> None:
    from npstream.codec.changes import decode_change, encode_change
    from npstream.history import promotion
    from npstream.partition.checkpoint import promotion_record as honest
    from npstream.records import KeyValue

    def record(processor: Any, old: Any) -> Any:
        change = decode_change(KeyValue(0, *honest(processor, old)))
        return encode_change(replace(change, offset=change.offset + 1), *processor.address)

    _replace(record, (promotion, "promotion_record"))


def _promotion_forgets_what_was_published() -> None:
    from npstream.partition import processor

    _replace(lambda champion, challenger: challenger, (processor, "succeeded"))


def _decisions_of_another_challenger() -> None:
    from npstream.partition.pending import Pending

    honest = Pending.load

    def load(config: Any, widths: Any, blobs: Any, segments: Any, since: int = -1) -> Any:
        return honest(config, widths, blobs, segments)

    _replace(staticmethod(load), (Pending, "load"))


def _pointer_one_snapshot_early() -> None:
    from npstream.kafka import transaction

    honest = transaction._pointer
    last: list[Any] = []

    def pointer(share: Any, reports: Any) -> Any:
        found = honest(share, reports)
        if share.chunks:
            last.append(found)
        return replace(found, offset=last[-2 if len(last) > 1 else -1].offset)

    _replace(pointer, (transaction, "_pointer"))


def _snapshot_outside_the_transaction() -> None:
    from confluent_kafka import Producer

    from npstream.kafka.transaction import Publisher
    from npstream.records import Channel

    def send(self: Any, partition: int, key: bytes, value: bytes, report: Any) -> None:
        plain = Producer({"bootstrap.servers": self._config.bootstrap})
        plain.produce(self._names[Channel.CHECKPOINTS], value, key, partition, on_delivery=report)
        plain.flush(10.0)

    _replace(send, (Publisher, "_send_checkpoint"))


def _segments_outside_the_transaction() -> None:
    from confluent_kafka import Producer

    from npstream.kafka.transaction import Publisher
    from npstream.records import Channel

    honest = Publisher._send

    def send(self: Any, share: Any) -> Any:
        plain = Producer({"bootstrap.servers": self._config.bootstrap})
        for key, value in share.segments:
            plain.produce(self._names[Channel.CHECKPOINTS], value, key, share.partition)
        plain.flush(10.0)
        return honest(self, replace(share, segments=()))

    _replace(send, (Publisher, "_send"))


def _segments_removed_at_once() -> None:
    from npstream.partition.segments import SegmentIndex

    honest = SegmentIndex.lay_out
    _replace(lambda self, numbers, parked, keep, archives: honest(self, numbers, parked, 0), (SegmentIndex, "lay_out"))


def _archive_forgets_its_segments() -> None:
    from npstream.partition.segments import SegmentIndex

    honest = SegmentIndex._release
    _replace(lambda self, keep, archives: honest(self, keep, ()), (SegmentIndex, "_release"))


def _archive_never_lets_go() -> None:
    from npstream.partition.archive import Archive

    _replace(lambda self, keep: [], (Archive, "let_go"))


def _archive_by_the_last_timestamp() -> None:
    from npstream.partition.archive import Archive

    def pass_time(self: Any, stamps: Any) -> None:
        if len(stamps):
            self.clock_ms = int(stamps[-1])

    _replace(pass_time, (Archive, "pass_time"))


def _audit_hides_what_it_skips() -> None:
    from npstream.history import coverage

    _replace(lambda past, begin, end, decisions_from: [], (coverage, "_gaps"))


def _segments_forget_who_left() -> None:
    import numpy as np

    from npstream.partition.segments import SegmentIndex

    honest = SegmentIndex.load

    def load(size: int, snapshots: int, blobs: Any) -> Any:
        made, places = honest(size, snapshots, blobs)
        return made, {number: (np.ones_like(waits), label) for number, (waits, label) in places.items()}

    _replace(load, (SegmentIndex, "load"))


def _segments_forget_labels() -> None:
    from npstream.partition.segments import SegmentIndex

    honest = SegmentIndex.dump

    def dump(self: Any, numbers: Any, label: Any) -> Any:
        return honest(self, numbers, 0 * label)

    _replace(dump, (SegmentIndex, "dump"))


def _sample_begins_with_each_batch() -> None:
    from npstream.partition.review import ReviewSample

    honest = ReviewSample.sampled
    _replace(lambda self, batch, _, partition: honest(self, batch, 0, partition), (ReviewSample, "sampled"))


def _sample_taught_for_those_that_expire() -> None:
    from dataclasses import replace

    from npstream.partition.review import ReviewSample

    honest = ReviewSample.adopt

    def adopt(self: Any, labels: Any, params: Any) -> None:
        honest(self, replace(labels, on_expiry="drop"), params)

    _replace(adopt, (ReviewSample, "adopt"))


def _labels_at_once_stand() -> None:
    from npstream.codec.event import Kind
    from npstream.partition import operations, processor

    def columns_of(records: Any, decoded: Any, topic: str, partition: int, corrections: bool = False) -> Any:
        found = operations.columns_of(records, decoded, topic, partition, corrections)
        return found._replace(named=found.named & (found.kind != Kind.LABELLED))

    _replace(columns_of, (processor, "columns_of"))


def _corrections_counted_twice() -> None:
    import numpy as np

    from npstream.model import Model, Op

    honest = Model.run

    def run(self: Any, operations: Any, decided: Any, *counts: Any) -> Any:
        code = np.where(operations.code == Op.CORRECT, Op.LEARN, operations.code).astype(np.int8)
        return honest(self, operations._replace(code=code), decided, *counts)

    _replace(run, (Model, "run"))


def _journal_without_corrections() -> None:
    from npstream.model import Op
    from npstream.partition.journal import Journal

    honest = Journal.extend

    def extend(self: Any, operations: Any, outcome: Any) -> None:
        rows = operations.code != Op.CORRECT
        columns = [type(each)._make(column[rows] for column in each) for each in (operations, outcome)]
        honest(self, *columns)

    _replace(extend, (Journal, "extend"))


def _decisions_outside_the_transaction() -> None:
    from confluent_kafka import Producer

    from npstream.kafka.transaction import Publisher

    def send(self: Any, share: Any) -> None:
        plain = Producer({"bootstrap.servers": self._config.bootstrap})
        for channel, key, value, headers, timestamp_ms in share.outputs:
            plain.produce(
                self._names[channel], value, key, share.partition, timestamp=timestamp_ms, headers=list(headers)
            )
        plain.flush(10.0)

    _replace(send, (Publisher, "_send_outputs"))


def _nobody_is_refused() -> None:
    from npstream.worker.refusals import Refusals

    _replace(lambda self, partition, committed: None, (Refusals, "check"))


def _always_together() -> None:
    from npstream.worker.refusals import Refusals

    _replace(property(lambda self: False), (Refusals, "apart"))


def _first_strike_pauses() -> None:
    from npstream.worker.refusals import Refusals

    honest = Refusals.note

    def note(self: Any, error: Any, now: float) -> None:
        error.strikes = 1
        honest(self, error, now)

    _replace(note, (Refusals, "note"))


def _dead_letters_whole() -> None:
    from npstream.codec import dead_letters

    _replace(lambda record: (record.key, record.value, record.headers), (dead_letters, "_cut"))


def _ids_of_neighbours() -> None:
    from npstream.codec.f32_events import F32Decoder

    honest = F32Decoder._try_plain

    def try_plain(self: Any, records: Any) -> Any:
        found = honest(self, records)
        return found and replace(found, ids=found.ids[1:] + found.ids[:1])

    _replace(try_plain, (F32Decoder, "_try_plain"))


def _walked_labels_without_sign() -> None:
    from npstream.codec.json_events import JsonDecoder

    honest = JsonDecoder._walked

    def walked(self: Any, *arguments: Any) -> Any:
        draft, left = honest(self, *arguments)
        return replace(draft, y=abs(draft.y)), left

    _replace(walked, (JsonDecoder, "_walked"))


def _journal_without_features() -> None:
    from npstream.partition.journal import Journal

    honest = Journal.extend

    def extend(self: Any, operations: Any, outcome: Any) -> None:
        honest(self, operations._replace(x=operations.x * 0), outcome)

    _replace(extend, (Journal, "extend"))


def _any_snapshot_will_do() -> None:
    from npstream import state
    from npstream.codec import snapshot

    class Agreeable(str):
        __slots__ = ()

        def __ne__(self, other: object) -> bool:
            return False

        __hash__ = str.__hash__

    _replace(lambda data: Agreeable(snapshot.snapshot_digest(data)), (state, "snapshot_digest"))


def _keys_of_neighbours() -> None:
    import numpy as np

    from npstream.codec import digest
    from npstream.partition import operations

    honest = digest.keys_of
    _replace(lambda ids: np.roll(honest(ids), 1, axis=0), (operations, "keys_of"))


def _labels_before_any_event() -> None:
    from npstream.codec.event import Kind
    from npstream.partition import merges

    _replace(tuple(Kind), (merges, "DECIDED"))


def _labels_marked_too_late() -> None:
    from npstream.partition.merges import Marks

    def before_each(self: Any, events: int) -> Any:
        return None if self._begin is None else [([self._begin] + [n for _, n in self._reached])[-1]] * events

    _replace(before_each, (Marks, "before_each"))


def _labels_taken_again() -> None:
    from npstream.partition.merges import DueLabels

    honest = DueLabels.__init__

    def init(self: Any, merges: Any, decoder: Any, next_label: Any) -> None:
        honest(self, merges, decoder, next_label)
        self._merges = list(merges)

    _replace(init, (DueLabels, "__init__"))


def _merge_up_to_the_cap() -> None:
    from npstream.errors import BadEvent
    from npstream.partition.processor import PartitionProcessor

    honest = PartitionProcessor._admit_labels

    def admit(self: Any, due: Any, *rest: Any) -> Any:
        halted = honest(self, due, *rest)
        if halted is not None:
            first_bad = next(i for i, (_, label) in enumerate(due) if isinstance(label, BadEvent))
            honest(self, due[:first_bad], *rest)
        return halted

    _replace(admit, (PartitionProcessor, "_admit_labels"))


def _position_without_merges() -> None:
    from npstream.worker.partition_task import PartitionTask

    honest = PartitionTask._share

    def share(self: Any, *arguments: Any, **named: Any) -> Any:
        made = honest(self, *arguments, **named)
        labels = made.position.labels
        return replace(made, position=replace(made.position, labels=labels and replace(labels, merges=())))

    _replace(share, (PartitionTask, "_share"))


def _replay_without_merges() -> None:
    from npstream.worker.partition_task import PartitionTask

    honest = PartitionTask.replay

    def replay(self: Any, records: Any) -> Any:
        self._recorded = ()
        return honest(self, records)

    _replace(replay, (PartitionTask, "replay"))


def _labels_of_the_batch_are_dropped() -> None:
    from npstream.worker.session import Session

    honest = Session._labels

    def labels(self: Any, live: Any) -> Any:
        return {partition: found[1:] for partition, found in honest(self, live).items()}

    _replace(labels, (Session, "_labels"))


def _merges_without_end() -> None:
    from npstream.worker.partition_task import PartitionTask

    _replace(lambda self, pointer: False, (PartitionTask, "_has_many_merges"))


_ZOMBIE = "tests/system/test_zombies.py::test_a_zombie_neither_doubles_nor_loses"
_FAST_CODEC = "tests/codec/test_fast_paths.py"
_LOGINS = "tests/kafka/test_login.py"
_SEGMENTS = "tests/partition/test_segments.py"
_CORRECTIONS = "tests/partition/test_corrections.py"
_FAULTS = "tests/kafka/test_faults.py"
_REPLAY = "tests/system/test_replay.py::test_a_worker_killed_while_it_replays_starts_over"
_WORKER = "tests/worker/test_worker.py"
_CHALLENGER = "tests/partition/test_challenger.py"
_STAGING = "tests/worker/test_staging.py"
_MERGES = "tests/partition/test_merges.py"
_LABELS = "tests/worker/test_labels_topic.py"
_FAILED = "tests/contracts/test_committing.py::test_a_share_that_cannot_be_written_takes_the_whole_commit_with_it"

MUTANTS = {
    "labels_before_any_event": Mutant(
        "labels of a topic are learned before whatever event comes next",
        _labels_before_any_event,
        f"{_MERGES}::test_labels_wait_for_an_observation",
        "assert",
    ),
    "labels_marked_too_late": Mutant(
        "decisions name the labels of their whole batch",
        _labels_marked_too_late,
        f"{_MERGES}::test_the_decisions_record_the_merge",
        "assert",
    ),
    "labels_taken_again": Mutant(
        "a merge that was taken is taken again with the next batch",
        _labels_taken_again,
        f"{_MERGES}::test_any_merge_gives_the_same_however_it_is_batched",
        "assert",
    ),
    "merge_up_to_the_cap": Mutant(
        "a merge is learned up to the label that meets the cap on dead letters",
        _merge_up_to_the_cap,
        f"{_MERGES}::test_the_cap_on_dead_letters_takes_a_merge_as_a_whole_or_not_at_all",
        "assert",
    ),
    "position_without_merges": Mutant(
        "the committed position does not say how labels were merged",
        _position_without_merges,
        f"{_LABELS}::test_a_crash_is_replayed_with_the_recorded_merge[6]",
        "assert",
    ),
    "replay_without_merges": Mutant(
        "a replay learns no labels",
        _replay_without_merges,
        f"{_LABELS}::test_a_crash_is_replayed_with_the_recorded_merge[6]",
        "replay to offset|assert",
    ),
    "labels_of_the_batch_are_dropped": Mutant(
        "the first label of each merge is passed over",
        _labels_of_the_batch_are_dropped,
        f"{_LABELS}::test_an_undisturbed_run_publishes_its_merge",
        "assert",
    ),
    "merges_without_end": Mutant(
        "the committed position grows with every merge",
        _merges_without_end,
        f"{_LABELS}::test_many_merges_make_a_checkpoint_due",
        "assert",
    ),
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
    "snapshot_outside_the_transaction": Mutant(
        "snapshot chunks are sent by a producer of their own",
        _snapshot_outside_the_transaction,
        f"{_FAILED}[kafka]",
        "assert",
    ),
    "segments_outside_the_transaction": Mutant(
        "segments of waiting observations are sent by a producer of their own",
        _segments_outside_the_transaction,
        f"{_FAILED}[kafka]",
        "assert",
    ),
    "segments_removed_at_once": Mutant(
        "a segment is removed though a kept snapshot still names it",
        _segments_removed_at_once,
        f"{_SEGMENTS}::test_a_state_in_segments_is_the_state_in_one_piece",
        "assert",
    ),
    "archive_forgets_its_segments": Mutant(
        "a segment is removed though an archived snapshot still names it",
        _archive_forgets_its_segments,
        "tests/partition/test_archive.py::test_every_archived_snapshot_stays_whole",
        "assert",
    ),
    "archive_never_lets_go": Mutant(
        "archived snapshots are kept for ever",
        _archive_never_lets_go,
        "tests/partition/test_archive.py::test_segments_of_archived_snapshots_go_with_them",
        "assert",
    ),
    "archive_by_the_last_timestamp": Mutant(
        "one far-future timestamp moves the archive's time by years",
        _archive_by_the_last_timestamp,
        "tests/partition/test_archive.py::test_one_far_future_timestamp_does_not_end_the_archive",
        "assert",
    ),
    "audit_hides_what_it_skips": Mutant(
        "an audit does not name the decisions that it cannot recompute",
        _audit_hides_what_it_skips,
        "tests/history/test_audit_coverage.py::test_trimmed_events_and_replaced_checkpoints_are_different_gaps",
        "assert",
    ),
    "segments_forget_who_left": Mutant(
        "a restore takes all entries of a segment for waiting",
        _segments_forget_who_left,
        f"{_SEGMENTS}::test_a_state_in_segments_is_the_state_in_one_piece",
        "lacks observations|assert",
    ),
    "segments_forget_labels": Mutant(
        "a label that came after its observation's segment was written is lost by a restore",
        _segments_forget_labels,
        f"{_SEGMENTS}::test_a_label_since_the_segment_was_written_survives",
        "assert",
    ),
    "sample_begins_with_each_batch": Mutant(
        "who is reviewed depends on where a batch begins",
        _sample_begins_with_each_batch,
        "tests/partition/test_review.py::test_the_sample_follows_from_place_and_seed_alone",
        "assert",
    ),
    "sample_taught_for_those_that_expire": Mutant(
        "a review teaches for observations that are learned from themselves",
        _sample_taught_for_those_that_expire,
        "tests/partition/test_review.py::test_where_the_expired_are_learned_a_review_teaches_no_more_than_they_do",
        "assert",
    ),
    "labels_at_once_stand": Mutant(
        "the label that came with its event cannot be corrected",
        _labels_at_once_stand,
        f"{_CORRECTIONS}::test_the_last_label_wins_however_the_first_one_came",
        "assert",
    ),
    "corrections_counted_twice": Mutant(
        "the label that was corrected goes on counting",
        _corrections_counted_twice,
        f"{_CORRECTIONS}::test_the_last_label_wins_however_the_first_one_came",
        "assert",
    ),
    "journal_without_corrections": Mutant(
        "the proof of a state does not know of corrections",
        _journal_without_corrections,
        "tests/partition/test_journal.py::test_a_correction_is_in_the_proof",
        "assert",
    ),
    "decisions_outside_the_transaction": Mutant(
        "decisions are sent by a producer of their own",
        _decisions_outside_the_transaction,
        f"{_FAILED}[kafka]",
        "assert",
    ),
    "pointer_one_snapshot_early": Mutant(
        "the committed position points to the snapshot before the newest",
        _pointer_one_snapshot_early,
        "tests/contracts/test_restoring.py::test_a_restore_reads_as_many_records_as_its_snapshot_has_chunks[kafka-10]",
        "assert",
    ),
    "no_proof_check": Mutant(
        "a replay goes live whatever it ends on",
        _no_proof_check,
        "tests/system/test_replay.py::test_a_replay_over_altered_events_stops_the_partition",
        "DID NOT RAISE",
    ),
    "checkpoint_while_replaying": Mutant(
        "a worker that stops while it replays writes a checkpoint",
        _checkpoint_while_replaying,
        "tests/system/test_replay.py::test_a_worker_stopped_while_it_replays_commits_nothing",
        "assert",
    ),
    "offset_off_by_one": Mutant(
        "the committed offset is that of the last event, not of the next",
        _offset_off_by_one,
        f"{_WORKER}::test_a_crash_is_replayed_to_the_recorded_proof",
        "replay to offset|assert",
    ),
    "failed_commit_ignored": Mutant(
        "after a failed commit the worker goes on with what it holds in memory",
        _failed_commit_ignored,
        f"{_WORKER}::test_a_failure_at_any_call_leaves_no_trace",
        "assert",
    ),
    "staged_survives_loss": Mutant(
        "what is staged for a lost partition is published all the same",
        _staged_survives_loss,
        f"{_STAGING}::test_a_staged_batch_is_dropped_when_its_partition_is_lost",
        "KeyError|assert",
    ),
    "staged_forgotten_on_revoke": Mutant(
        "a checkpoint on revoke goes ahead without what is staged",
        _staged_forgotten_on_revoke,
        f"{_STAGING}::test_a_staged_batch_is_published_when_its_partition_is_revoked",
        "assert",
    ),
    "shares_before_the_commit_is_over": Mutant(
        "positions are made before the running commit is over, and point to the snapshot before its own",
        _shares_before_the_commit_is_over,
        f"{_STAGING}::test_a_batch_points_to_the_snapshot_of_the_commit_before_it",
        "assert",
    ),
    "settings_before_replay": Mutant(
        "new settings count from the checkpoint, not from the committed offset",
        _settings_before_replay,
        f"{_WORKER}::test_settings_change_at_a_checkpoint_and_leave_a_record",
        "replay to offset|assert",
    ),
    "challenger_not_restored": Mutant(
        "after a restart the challenger begins again",
        _challenger_not_restored,
        f"{_CHALLENGER}::test_batches_and_restarts_leave_no_trace[larger]",
        "assert|a count that cannot be",
    ),
    "promotion_one_offset_late": Mutant(
        "the record of a promotion names the event after the first one that the challenger decided",
        _promotion_one_offset_late,
        "tests/history/test_challenger.py::test_history_goes_on_through_a_promotion",
        "assert",
    ),
    "promotion_forgets_what_was_published": Mutant(
        "a promotion begins budget and counters of published decisions again, with those that nobody saw",
        _promotion_forgets_what_was_published,
        f"{_CHALLENGER}::test_promoted_it_decides_as_one_that_was_alone_until_then[larger]",
        "assert",
    ),
    "decisions_of_another_challenger": Mutant(
        "a challenger takes what another one has decided, as segments have it, for its own",
        _decisions_of_another_challenger,
        f"{_CHALLENGER}::test_what_another_challenger_has_decided_is_not_its_own",
        "assert",
    ),
    "change_without_record": Mutant(
        "a change of settings leaves no record",
        _change_without_record,
        f"{_WORKER}::test_settings_change_at_a_checkpoint_and_leave_a_record",
        "assert",
    ),
    "wall_clock_timestamp": Mutant(
        "decisions carry the time of the worker, not of the event",
        _wall_clock_timestamp,
        f"{_WORKER}::test_a_crash_is_replayed_to_the_recorded_proof",
        "replay to offset",
    ),
    "expiry_by_wall_clock": Mutant(
        "observations expire by the time of the worker, not of the events",
        _expiry_by_wall_clock,
        "tests/partition/test_processor.py::test_event_time_expires_what_waited_too_long",
        "assert",
    ),
    "history_by_wall_clock": Mutant(
        "counts over time are by the time of the worker, not of the events",
        _history_by_wall_clock,
        "tests/partition/test_timeline.py::test_the_labels_of_the_processor_are_counted_as_they_came",
        "assert",
    ),
    "history_without_its_warmup": Mutant(
        "labels of what was decided in warm-up count in the rates over time",
        _history_without_its_warmup,
        "tests/partition/test_timeline.py::test_the_labels_of_the_processor_are_counted_as_they_came",
        "assert",
    ),
    "hash_order": Mutant(
        "waiting observations are restored in the order of their hashes, not of their arrival",
        _hash_order,
        "tests/partition/test_processor.py::test_a_snapshot_continues_as_if_nothing_had_happened",
        "assert",
    ),
    "ids_of_neighbours": Mutant(
        "the reader of plain float32 batches gives each event the id of the next one",
        _ids_of_neighbours,
        f"{_FAST_CODEC}::test_plain_float32_batches_follow_the_rules_event_by_event",
        "assert",
    ),
    "walked_labels_without_sign": Mutant(
        "the compiled reader of JSON takes non-targets for targets",
        _walked_labels_without_sign,
        f"{_FAST_CODEC}::test_json_batches_for_the_compiled_reader_follow_the_rules",
        "assert",
    ),
    "journal_without_features": Mutant(
        "the proof of a state knows labels and scores, not the features that were learned",
        _journal_without_features,
        "tests/partition/test_journal.py::test_features_that_change_no_score_are_in_the_proof",
        "assert",
    ),
    "any_snapshot_will_do": Mutant(
        "a restore takes the snapshot it finds for the one that was committed",
        _any_snapshot_will_do,
        f"{_WORKER}::test_a_snapshot_with_other_weights_is_not_taken_for_the_committed_one",
        "assert",
    ),
    "keys_of_neighbours": Mutant(
        "a batch of ids gives each event the key of the one before it",
        _keys_of_neighbours,
        "tests/partition/test_operations.py::test_it_asks_for_what_a_plain_buffer_asks_for",
        "assert",
    ),
    "nobody_is_refused": Mutant(
        "a partition whose own records are refused is tried again and again",
        _nobody_is_refused,
        f"{_FAULTS}::test_an_error_that_comes_back_for_one_partition_stops_that_one_only[produce]",
        "one partition ended the worker|not within",
    ),
    "always_together": Mutant(
        "after a refusal all partitions are published together again, so that nobody knows whose record it was",
        _always_together,
        "tests/worker/test_refusals.py::"
        "test_the_partition_that_is_refused_is_found_among_those_that_were_published_together",
        "no progress for",
    ),
    "first_strike_pauses": Mutant(
        "an error without a name pauses a partition the first time it comes",
        _first_strike_pauses,
        f"{_FAULTS}::test_an_error_that_comes_once_leaves_no_trace",
        "nothing was to be left",
    ),
    "login_as_it_was": Mutant(
        "the files of a login are read once, so that a worker with an old password never comes back",
        _login_as_it_was,
        f"{_LOGINS}::test_files_are_read_again",
        "second password",
    ),
    "certificates_unseen": Mutant(
        "only what is written into settings counts as a change of the login, not what is in certificates and keys",
        _certificates_unseen,
        f"{_LOGINS}::test_a_refused_login_ends_the_session_when_its_files_have_changed[key.pem]",
        "DID NOT RAISE",
    ),
    "dead_letters_whole": Mutant(
        "a dead letter is as large as its event, whatever its topic takes",
        _dead_letters_whole,
        "tests/codec/test_dead_letters.py::test_what_would_not_fit_is_cut_and_described",
        "assert",
    ),
    "outputs_by_topic": Mutant(
        "outputs of a batch are ordered by topic, so that batching shows in the proof",
        _outputs_by_topic,
        "tests/partition/test_processor.py::test_batching_changes_nothing",
        "assert",
    ),
    "reasons_forgotten": Mutant(
        "a partition that was restored gives no reasons any more",
        _reasons_forgotten,
        "tests/partition/test_reasons.py::test_batches_and_a_restart_leave_no_trace",
        "assert",
    ),
    "resets_unknown_to_a_search": Mutant(
        "a decision sought by its time is the superseded one, when later events were decided between the two",
        _resets_unknown_to_a_search,
        "tests/history/test_find_decision.py::test_after_a_rollback_the_decision_that_counts_is_explained",
        "assert",
    ),
}
