"""The processor: records of one partition in, outputs and the next state out.

Deterministic: the same snapshot and the same records give the same outputs and
the same snapshot bytes, however the records are batched and on whatever CPU.
It touches only its own memory: no clock, no I/O, no randomness.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Self

import numpy as np
import orjson

from npstream.arrays import Ints
from npstream.codec.decoder import Decoded, EventDecoder, Kind
from npstream.codec.labels import LabelDecoder
from npstream.codec.segments import segment_columns
from npstream.codec.snapshot import Snapshot, encode_snapshot
from npstream.errors import BadEvent, SettingsError, StateCorrupt
from npstream.model import ALGORITHM, Model, Operations, Outcome, seeded, succeeded
from npstream.model.account import alarm_rates, dump_account, empty_account, load_account, set_windows, widest_of
from npstream.partition.archive import Archive
from npstream.partition.challenger import Challenger
from npstream.partition.config import PartitionConfig, outlives
from npstream.partition.counters import JOINING, Tally
from npstream.partition.dead_letter_cap import DeadLetterCap
from npstream.partition.joining import CLOCK, EVENTS, EventColumns, Planned, Rules
from npstream.partition.journal import Journal
from npstream.partition.merges import Due, DueLabels, Marks
from npstream.partition.operations import columns_of, decisions_of, new_state, operations_of, rules_of, with_labels
from npstream.partition.outputs import OutputBuilder
from npstream.partition.pending import Pending, Widths
from npstream.partition.proof import Chain
from npstream.partition.review import ReviewSample
from npstream.partition.step import Step
from npstream.partition.timeline import Timeline
from npstream.records import AlarmRates, Merge, Output, Proof, Record

_SMALL_BYTES = 256
"""Arrays of the model that are hashed with every transaction: threshold, counters, multiplier, bias."""


class PartitionProcessor:
    """Owns the model state of one input partition."""

    def __init__(
        self, config: PartitionConfig, group: str, topic: str, partition: int, model: Model, next_offset: int = 0
    ) -> None:
        self.address = (group, topic, partition)
        self.partition = partition
        self.name = f"{topic}/{partition}"
        self.topic_id = ""
        self.label_topic_id = ""
        self._next_offset = next_offset
        self._next_label = None if config.label_topic is None else 0
        self.model = model
        self.tally = Tally()
        self.on_learned: Callable[[Operations, Outcome], object] = lambda operations, outcome: None
        """Called with what each batch did; for replays."""
        self.bad_events: Counter[tuple[str, str]] = Counter()
        """By reason and by the decision published all the same. Of this process alone: never part of the state."""
        self.pending = Pending(config.labels, Widths.of(config))
        self.challenger: Challenger | None = None
        self.review = ReviewSample()
        self.archive = Archive()
        self._account = empty_account(len(config.params.rates))
        self.timeline = Timeline()
        self._chain = Chain()
        self._journal = Journal()
        self._clock_ms = -1
        self._cap = DeadLetterCap(config.dead_letter_cap)
        self._adopt(config)

    def _adopt(self, config: PartitionConfig) -> None:
        self.config = config
        self.review.adopt(config.labels, config.params)
        set_windows(self._account, *config.params.rates)
        self._decoder = EventDecoder(config.events)
        topic, max_bytes = config.label_topic, config.events.max_bytes
        self._label_decoder = None if topic is None else LabelDecoder(topic, max_bytes)
        self._publisher = OutputBuilder(config, self.address[1], self.partition)
        if self._cap.share != config.dead_letter_cap:
            # A new block: what the old cap let through must not be held against the new one.
            self._cap = DeadLetterCap(config.dead_letter_cap)
        self._rules = rules_of(config.labels)

    @classmethod
    def cold(
        cls, config: PartitionConfig, group: str, topic: str, partition: int, next_offset: int, model: Model | None
    ) -> Self:
        """A partition's first state before the event at `next_offset`: a random start, or what `model` has learned.

        Raises `SettingsError` when the model does not fit the parameters.
        """
        if model is None:
            fresh = Model.create(config.params, stream=partition)
        else:
            fresh = seeded(model, config.params, stream=partition)
        made = cls(config, group, topic, partition, fresh, next_offset)
        if config.challenger is not None:
            made.challenger = Challenger.cold(config, partition, next_offset)
        return made

    @property
    def next_offset(self) -> int:
        """Where the next event is expected: everything below is decided and learned."""
        return self._next_offset

    @property
    def next_label(self) -> int | None:
        """Labels of the labels topic below this offset are learned, 0: none yet; None when there is no such topic."""
        return self._next_label

    def rates(self) -> AlarmRates:
        """What decisions came to: the one source of what metrics, page and inspect show."""
        return alarm_rates(self._account, self.config.params.tier_names, self.timeline.alarms_per_day)

    def forget_label_offset(self) -> None:
        """Read the labels topic from its first record again: what the old offset meant is gone."""
        self._next_label, self.label_topic_id = None if self.config.label_topic is None else 0, ""

    def skip_to(self, offset: int) -> None:
        """Go on at a later offset: those in between hold no event, or an operator gives them up."""
        assert offset >= self._next_offset, (self.name, offset, self._next_offset)
        self._next_offset = offset

    def process(self, records: Sequence[Record], merges: Sequence[Merge] = ()) -> Step:
        """Decode, decide, park and learn, one event after another.

        A merge whose observation is not among the records is left for a later
        call, one that was taken is passed over.
        """
        if not records:
            return Step([], self._next_offset)
        assert records[0].offset >= self._next_offset, (self.name, records[0].offset, self._next_offset)
        decoded = self._decoder.decode(records)
        marks = Marks(self._next_label)
        labels = DueLabels(merges, self._label_decoder, self._next_label).before(records, decoded.kinds)
        done, halted = self._admitted(records, decoded, labels, marks)
        outputs = self._decide(records[:done], decoded, marks)
        self._chain.extend(outputs)
        # Cut short by the cap: what met it is not taken, so that a raised cap goes on with it.
        self._next_offset = records[-1].offset + 1 if halted is None else records[done].offset
        return Step(outputs, self._next_offset, halted, tuple(marks.merges))

    def _admitted(
        self, records: Sequence[Record], decoded: Decoded, labels: Mapping[int, Sequence[Due]], marks: Marks
    ) -> tuple[int, StateCorrupt | None]:
        """How many records may be taken before the cap on dead letters is met, if it is, and then why to halt."""
        before = 0
        for event in sorted({*decoded.errors, *labels}):
            self._cap.count(event - before)
            before = event
            if event in labels:
                halted = self._admit_labels(labels[event], event, records[event].offset, marks)
                if halted is not None:
                    return event, halted
            elif self._cap.admits_one():
                self.tally.dead_letters += 1
                before += 1
            else:
                return event, self._cap.exceeded(self.name, records[event].offset, decoded.errors[event].reason)
        self._cap.count(len(records) - before)
        return len(records), None

    def _admit_labels(self, due: Sequence[Due], event: int, offset: int, marks: Marks) -> StateCorrupt | None:
        """Take a merge, all of it or, where the cap is met, nothing: then the reason to halt is returned."""
        assert self.config.label_topic is not None
        assert due[0][0].offset >= (self._next_label or 0), (self.name, due[0][0].offset, self._next_label)
        cap = self._cap.copy()
        for record, label in due:
            if not isinstance(label, BadEvent):
                cap.count(1)
            elif not cap.admits_one():
                return cap.exceeded(f"{self.config.label_topic.name}/{self.partition}", record.offset, label.reason)
        self._cap = cap
        for record, label in due:
            if isinstance(label, BadEvent):
                self.tally.dead_letters += 1
                self.bad_events[label.reason, "none"] += 1
                marks.refused.setdefault(event, []).append(self._publisher.bad_label(record, label, offset))
            else:
                marks.labels.append((event, *label))
        self._next_label = due[-1][0].offset + 1
        marks.reach(event, offset, self._next_label)
        return None

    def _decide(self, records: Sequence[Record], decoded: Decoded, marks: Marks) -> list[Output]:
        """Take these records: one compiled call lays out what they ask for, another one does it."""
        columns = self._columns(records, decoded)
        self.archive.pass_time(columns.stamp[columns.kind != Kind.BAD])
        batch, event_of = with_labels(columns, marks.labels)
        batch = self.review.sampled(batch, self.tally.decisions, self.partition)
        parts, events, sampled = list[tuple[Outcome, Ints]](), list[int](), list[int]()
        for planned in self._planned(batch, self._rules):
            outcome = self._run(planned)
            stamps = np.zeros(len(outcome.t), np.int64)
            stamps[planned.deciding] = batch.stamp[planned.events]
            self.timeline.count(stamps, planned.operations, outcome)
            parts.append((outcome, planned.deciding))
            sampled += (len(events) + np.flatnonzero(planned.operations.y[planned.deciding] < -1)).tolist()
            events += (planned.events if event_of is None else event_of[planned.events]).tolist()
        return self._publish(records, decoded, decisions_of(parts), events, sampled, marks)

    def _columns(self, records: Sequence[Record], decoded: Decoded) -> EventColumns:
        seen = decoded if self.challenger is None else self.challenger.beside(records, decoded)
        return columns_of(records, seen, self.address[1], self.partition, self.config.labels.corrections)

    def _run(self, planned: Planned) -> Outcome:
        operations, sampling = planned.operations, self.review.sampling
        if self.config.reads_twice:
            operations = operations._replace(x=operations.x[:, : self.config.params.d])
        outcome = self.model.run(operations, self.pending.decided, sampling, self._account, self.config.reasons)
        self._journal.extend(operations, outcome)
        self.on_learned(operations, outcome)
        if self.challenger is not None:
            self.challenger.run(planned.operations, outcome, self.pending)
        return outcome

    def _planned(self, batch: EventColumns, rules: Rules) -> Iterator[Planned]:
        """What a batch asks for, in parts; counters and event time are right when all are taken."""
        state = new_state(self.tally.events, self._clock_ms)
        counts = np.zeros(len(JOINING), np.int64)
        yield from operations_of(batch, self.pending, rules, state, counts)
        self.tally.events, self._clock_ms = int(state[EVENTS]), int(state[CLOCK])
        self.tally.add(counts.tolist())

    def _publish(
        self,
        records: Sequence[Record],
        decoded: Decoded,
        outcome: Outcome,
        events: Sequence[int],
        sampled: Sequence[int],
        marks: Marks,
    ) -> list[Output]:
        """Outputs in the order of their events: the chain, and readers, rely on it."""
        self.tally.count_decisions(outcome)
        reviewed = frozenset(row for row in sampled if outcome.decision[row] < 0)
        self.review.requested += len(reviewed)
        next_labels = marks.before_each(len(records))
        decisions = self._publisher.decisions(records, decoded.ids, outcome, events, next_labels, reviewed)
        if not decoded.errors and not marks.refused:
            return decisions
        by_event: dict[int, list[Output]] = {event: [output] for event, output in zip(events, decisions, strict=True)}
        for event, refused in marks.refused.items():
            by_event[event] = refused + by_event[event]
        for event in [event for event in decoded.errors if event < len(records)]:
            next_label = None if next_labels is None else next_labels[event]
            by_event[event] = outputs = self._publisher.bad(records[event], decoded, event, next_label)
            published = self.config.on_bad_event if len(outputs) > 1 else "none"
            self.bad_events[decoded.errors[event].reason, published] += 1
        return [output for event in sorted(by_event) for output in by_event[event]]

    def proof(self) -> Proof:
        """What a replay to `next_offset` must reproduce.

        Made for every transaction, so it must not cost what the state costs: what was learned stands for the weights.
        """
        models, journals = [self.model], [self._journal.hexdigest()]
        if self.challenger is not None:
            models, journals = [*models, self.challenger.model], [*journals, self.challenger.journal.hexdigest()]
        arrays = [array for model in models for array in model.arrays().values()]
        small = [array.tobytes() for array in arrays if array.nbytes <= _SMALL_BYTES]
        counters = orjson.dumps([self._meta(), len(self.pending), *journals])
        digest = blake2b(b"".join([*small, counters]), digest_size=16)
        return Proof(self._chain.count, self._chain.hexdigest(), digest.hexdigest())

    def _meta(self) -> dict[str, Any]:
        return {
            "tally": self.tally.to_dict(),
            "clock_ms": self._clock_ms,
            "block": [self._cap.seen, self._cap.bad],
            "outputs": self._chain.count,
            "next_label": self._next_label,
            "review": self.review.dump(),
            "challenger": None if self.challenger is None else self.challenger.meta(),
        }

    def snapshot(self, ring_place: int = 0) -> Snapshot:
        """Everything `from_snapshot` needs to go on as if nothing had happened, in one piece."""
        return self._snapshot(ring_place, self.pending.dump())

    def checkpoint(self, ring_place: int, after: int, keep: int) -> tuple[Snapshot, list[tuple[int, bytes | None]]]:
        """As `snapshot`, but for what waits in segments; and those to write, or to remove, by number.

        `after` is a log offset before all that is written now, `keep` how many snapshots are kept. What comes of it
        must be committed, or this processor thrown away.
        """
        numbers = [archived.number for archived in self.archive.kept]
        blobs, segments = self.pending.store(after, keep, self._segment, numbers)
        return self._snapshot(ring_place, blobs), segments

    def _snapshot(self, ring_place: int, waiting: Mapping[str, bytes]) -> Snapshot:
        digest, open_block = self._chain.dump()
        blobs = {"model": self.model.to_bytes(), "open_block": open_block, "journal": self._journal.dump(), **waiting}
        blobs |= {"archive": self.archive.dump(), "account": dump_account(self._account)}
        blobs["timeline"] = self.timeline.dump()
        blobs |= {} if self.challenger is None else self.challenger.blobs()
        # The topic's id is not part of the proof: a log without such ids must lead to the same one.
        meta = {**self._meta(), "chain": digest.hex(), "label_topic_id": self.label_topic_id}
        return self._saved(ring_place, self.config.to_dict(), meta, blobs)

    def _segment(self, number: int, waiting: Mapping[str, bytes]) -> bytes:
        """The record of a segment: a snapshot of nothing but these observations."""
        return encode_snapshot(self._saved(0, {}, {"segment": number}, waiting))

    def _saved(
        self, ring_place: int, params: Mapping[str, Any], meta: Mapping[str, Any], blobs: Mapping[str, bytes]
    ) -> Snapshot:
        group, topic, partition = self.address
        return Snapshot(
            algorithm=ALGORITHM,
            group=group,
            topic=topic,
            partition=partition,
            ring_place=ring_place,
            next_offset=self.next_offset,
            params=params,
            meta=meta,
            blobs=blobs,
            topic_id=self.topic_id,
        )

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """The one entrance for state. Raises `StateCorrupt` when the parts do not fit together."""
        try:
            config = PartitionConfig.from_dict(snapshot.params)
            model = Model.from_bytes(config.params, snapshot.blobs["model"])
            address = snapshot.group, snapshot.topic, snapshot.partition
            processor = cls(config, *address, model, snapshot.next_offset)
            processor.topic_id = snapshot.topic_id
            segments = {number: segment_columns(value) for number, value in snapshot.segments.items()}
            processor.challenger = Challenger.load(config, snapshot.meta["challenger"], snapshot.blobs)
            since = -1 if processor.challenger is None else processor.challenger.since
            processor.pending = Pending.load(config.labels, Widths.of(config), snapshot.blobs, segments, since)
            processor.tally = Tally(**snapshot.meta["tally"])
            processor._clock_ms = snapshot.meta["clock_ms"]
            processor.timeline = Timeline.load(snapshot.blobs["timeline"])
            processor._account = load_account(snapshot.blobs["account"], len(config.params.rates))
            processor._next_label = snapshot.meta["next_label"]
            processor.label_topic_id = snapshot.meta["label_topic_id"]
            if (processor._next_label is None) != (config.label_topic is None):
                raise ValueError("an offset of labels without their topic, or a topic without an offset")
            processor._cap.seen, processor._cap.bad = snapshot.meta["block"]
            processor.review = ReviewSample.load(snapshot.meta["review"])
            processor.review.adopt(config.labels, config.params)
            set_windows(processor._account, *config.params.rates)
            chain = bytes.fromhex(snapshot.meta["chain"])
            processor._chain = Chain.load(chain, snapshot.meta["outputs"], snapshot.blobs["open_block"])
            processor._journal = Journal.load(snapshot.blobs["journal"])
            processor.archive = Archive.load(snapshot.blobs["archive"])
        except (KeyError, TypeError, ValueError, StateCorrupt, SettingsError) as error:
            raise StateCorrupt(
                f"{snapshot.topic}/{snapshot.partition}: checkpoint at offset {snapshot.next_offset} is not usable "
                f"({error}); roll back to an older kept checkpoint"
            ) from error
        return processor

    def reconfigure(self, config: PartitionConfig) -> None:
        """Take other settings from the next event on. Raises `SettingsError` naming what cannot change."""
        self.model = self.model.with_params(config.params)
        if config.labels != self.config.labels:
            # What will have no room leaves by the rules under which it waited.
            limit, corrections = config.labels.buffer_max, config.labels.corrections
            nothing = self._columns((), self._decoder.decode(()))
            for planned in self._planned(nothing, self._rules._replace(limit=limit, corrections=corrections)):
                self._run(planned)
        widths = Widths.of(config)
        if (config.labels, widths) != (self.config.labels, Widths.of(self.config)):
            self.pending = self.pending.under(config.labels, widths)
        self._challenge(config)
        old, new = self.config.label_topic, config.label_topic
        self._adopt(config)
        if (None if old is None else old.name) != (None if new is None else new.name):
            self.forget_label_offset()

    def _challenge(self, config: PartitionConfig) -> None:
        """The challenger goes on, begins, begins again where it cannot go on, or ends."""
        if self.challenger is not None and outlives(self.config, config):
            self.challenger.change(config, as_before=config.params == self.config.params)
            return
        self.challenger = None
        if config.challenger is not None:
            self.challenger = Challenger.cold(config, self.partition, self._next_offset, self.tally.events)
            self.pending.forget_shadow()

    def promote(self, config: PartitionConfig) -> None:
        """Put the challenger in the champion's place. Raises `SettingsError` when there is none with these settings."""
        if self.challenger is None or config != self.config.promoted:
            raise SettingsError([f"{self.name}: has no challenger with the settings that are to be promoted"])
        if config.params.tier_names != self.config.params.tier_names:
            self._account = widest_of(self._account, len(config.params.rates))
        self.model, self._journal = succeeded(self.model, self.challenger.model), self.challenger.journal
        self.pending = self.pending.promoted(config.labels, Widths.of(config), len(config.params.rates))
        self.challenger = None
        self._adopt(config)
