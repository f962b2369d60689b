"""The processor: records of one partition in, outputs and the next state out.

Deterministic: the same snapshot and the same records give the same outputs and
the same snapshot bytes, however the records are batched and on whatever CPU.
It touches only its own memory: no clock, no I/O, no randomness.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self

import orjson

from npstream.codec.decisions import default_id
from npstream.codec.decoder import Decoded, EventDecoder, Kind
from npstream.codec.labels import Label, LabelDecoder
from npstream.codec.snapshot import Snapshot
from npstream.errors import BadEvent, SettingsError, StateCorrupt
from npstream.model import ALGORITHM, Model, Outcome, seeded
from npstream.partition.config import PartitionConfig
from npstream.partition.counters import Tally
from npstream.partition.dead_letter_cap import DeadLetterCap
from npstream.partition.merges import DECIDED, DueLabels, Marks
from npstream.partition.operations import Plan, all_labelled, rows_of
from npstream.partition.outputs import OutputBuilder
from npstream.partition.pending import ParkedObservation, Pending, id_hash
from npstream.partition.proof import Chain
from npstream.records import Merge, Output, Proof, Record


@dataclass(frozen=True, slots=True)
class Step:
    """What one batch produced. Nothing has left the process yet.

    `halted` says why the batch was cut short at `next_offset`: the partition
    must be paused there. `merges` are those that were made with the labels topic:
    the offset of an observation, and the label offset that was reached before it.
    """

    outputs: list[Output]
    next_offset: int
    halted: StateCorrupt | None = None
    merges: tuple[tuple[int, int], ...] = ()


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
        self.bad_events: Counter[tuple[str, str]] = Counter()
        """By reason and by the decision published all the same. Of this process alone: never part of the state."""
        self.pending = Pending(config.labels, config.params.d)
        self._chain = Chain()
        self._clock_ms = -1
        self._cap = DeadLetterCap(config.dead_letter_cap)
        self._adopt(config)

    def _adopt(self, config: PartitionConfig) -> None:
        self.config = config
        self._decoder = EventDecoder(config.events)
        topic, max_bytes = config.label_topic, config.events.max_bytes
        self._label_decoder = None if topic is None else LabelDecoder(topic, max_bytes)
        self._publisher = OutputBuilder(config, self.address[1], self.partition)
        if self._cap.share != config.dead_letter_cap:
            # A new block: what the old cap let through must not be held against the new one.
            self._cap = DeadLetterCap(config.dead_letter_cap)
        expire_s = config.labels.expire_seconds
        # One far-future timestamp may age the waiting observations by 1% of their time, no more.
        self._clock_step_ms = 0 if expire_s is None else max(1, int(expire_s * 10))

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
        return cls(config, group, topic, partition, fresh, next_offset)

    @property
    def next_offset(self) -> int:
        """Where the next event is expected: everything below is decided and learned."""
        return self._next_offset

    @property
    def next_label(self) -> int | None:
        """Labels of the labels topic below this offset are learned, 0: none yet; None when there is no such topic."""
        return self._next_label

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
        # While something waits, an event may let it expire, so the events must be taken one by one.
        if decoded.kinds.count(Kind.LABELLED) == len(records) and not len(self.pending) and not merges:
            step = self._process_labelled(records, decoded)
        else:
            step = self._process_mixed(records, decoded, DueLabels(merges, self._label_decoder, self._next_label))
        self._chain.extend(step.outputs)
        self._next_offset = step.next_offset
        return step

    def _process_labelled(self, records: Sequence[Record], decoded: Decoded) -> Step:
        """The commonest batch, every event with its label and nothing waiting: no Python step per event."""
        n = len(records)
        self._cap.count(n)
        self._age(records)
        self.tally.labels_with_event += n
        outcome = self.model.run(all_labelled(decoded.x, decoded.score, decoded.y), self.pending.decided)
        outputs = self._publish(records, decoded, outcome, range(n), n, Marks(self._next_label))
        return Step(outputs, records[-1].offset + 1)

    def _process_mixed(self, records: Sequence[Record], decoded: Decoded, labels: DueLabels) -> Step:
        """Any batch, up to the record that the cap, if any, was met at."""
        plan = Plan()  # first planned, then run: one compiled call per batch, not per event
        done, halted, marks = len(records), None, Marks(self._next_label)
        for event, (kind, record) in enumerate(zip(decoded.kinds, records, strict=True)):
            if labels and kind in DECIDED and (due := labels.take(record.offset)):
                halted = self._learn_labels(plan, due, event, record.offset, marks)
                if halted is not None:
                    done = event
                    break
            if kind != Kind.BAD:
                self._cap.count(1)
                self._age((record,))
                self._expire(plan)
                self._handle(plan, event, kind, record, decoded)
            elif self._cap.admits_one():
                self.tally.dead_letters += 1
            else:
                # The bad event is not taken, so that a raised cap goes on with it.
                done, halted = event, self._cap.exceeded(self.name, record.offset, decoded.errors[event].reason)
                break
        outcome = self.model.run(plan.operations(decoded.x, decoded.score), self.pending.decided)
        outputs = self._publish(records, decoded, rows_of(outcome, plan.deciding), plan.events, done, marks)
        next_offset = records[done].offset if done < len(records) else records[-1].offset + 1
        return Step(outputs, next_offset, halted, tuple(marks.merges))

    def _learn_labels(
        self, plan: Plan, due: Sequence[tuple[Record, Label | BadEvent]], event: int, offset: int, marks: Marks
    ) -> StateCorrupt | None:
        """Learn from a merge, all of it or, where the cap is met, nothing: then the reason to halt is returned."""
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
                self._label(plan, id_hash(label[0]), label[1])
        self._next_label = due[-1][0].offset + 1
        marks.reach(event, offset, self._next_label)
        return None

    def _handle(self, plan: Plan, event: int, kind: int, record: Record, decoded: Decoded) -> None:
        y = int(decoded.y[event])
        if kind == Kind.LABELLED:
            self.tally.labels_with_event += 1
            plan.decide_and_learn(event, y)
        elif kind == Kind.OBSERVATION:
            identity = decoded.ids[event]
            key = id_hash(default_id(self.address[1], self.partition, record.offset) if identity is None else identity)
            self._observe(plan, event, key, decoded)
        elif kind == Kind.LABEL:
            identity = decoded.ids[event]
            assert identity is not None
            self._label(plan, id_hash(identity), y)
        else:
            self._echo(plan, event, decoded.ids[event], y)

    def _observe(self, plan: Plan, event: int, key: bytes, decoded: Decoded) -> None:
        early = self.pending.take_early(key)
        if early:
            self.tally.labels_early += 1
            plan.decide_and_learn(event, early)
        elif self.pending.holds(key):
            # A producer's retry: it gets its decision, and the label will count for the first one.
            self.tally.observations_duplicate += 1
            plan.decide(event, -1)
        else:
            if self.pending.full():
                self._let_go(plan, self.pending.evict())  # memory is bounded: the oldest counts as expired
            slot = self.pending.park(
                key, decoded.x[event], float(decoded.score[event]), self.tally.events, self._clock_ms
            )
            plan.decide(event, slot)

    def _label(self, plan: Plan, key: bytes, y: int) -> None:
        if self.pending.holds(key):
            self.tally.labels_joined += 1
            plan.learn_parked(self.pending.take(key), y)
            return
        fate = self.pending.fate(key)
        if fate == "late":
            self.tally.labels_late += 1
        elif fate == "duplicate":
            self.tally.labels_duplicate += 1
        elif self.pending.keep_early(key, y):
            self.tally.labels_orphan += 1

    def _echo(self, plan: Plan, event: int, identity: str | int | None, y: int) -> None:
        """Learn from a label that brings its features along, whether its observation still waits or not."""
        key = None if identity is None else id_hash(identity)
        self.tally.labels_echoed += 1
        slot = self.pending.take(key).slot if key is not None and self.pending.holds(key) else -1
        plan.learn_echo(event, y, slot)

    def _age(self, records: Sequence[Record]) -> None:
        """Count good events and advance the partition's own event time, never backwards, never far."""
        self.tally.events += len(records)
        if self._clock_step_ms:
            for record in records:
                ahead = record.timestamp_ms - self._clock_ms
                if self._clock_ms < 0:
                    self._clock_ms = max(0, record.timestamp_ms)
                elif ahead > 0:
                    self._clock_ms += min(ahead, self._clock_step_ms)

    def _expire(self, plan: Plan) -> None:
        for entry in self.pending.expire(self.tally.events, self._clock_ms):
            self._let_go(plan, entry)

    def _let_go(self, plan: Plan, entry: ParkedObservation) -> None:
        self.tally.observations_expired += 1
        if self.config.labels.on_expiry == "negative":
            plan.learn_parked(entry, -1)
        else:
            plan.release(entry)

    def _publish(
        self,
        records: Sequence[Record],
        decoded: Decoded,
        outcome: Outcome,
        events: Sequence[int],
        done: int,
        marks: Marks,
    ) -> list[Output]:
        """Outputs in the order of their events: the chain, and readers, rely on it."""
        self.tally.count_decisions(outcome)
        next_labels = marks.before_each(done)
        decisions = self._publisher.decisions(records, decoded.ids, outcome, events, next_labels)
        if not decoded.errors and not marks.refused:
            return decisions
        by_event: dict[int, list[Output]] = {event: [output] for event, output in zip(events, decisions, strict=True)}
        for event, refused in marks.refused.items():
            by_event[event] = refused + by_event[event]
        for event in range(done):
            if event in decoded.errors:
                next_label = None if next_labels is None else next_labels[event]
                by_event[event] = outputs = self._publisher.bad(records[event], decoded, event, next_label)
                published = self.config.on_bad_event if len(outputs) > 1 else "none"
                self.bad_events[decoded.errors[event].reason, published] += 1
        return [output for event in sorted(by_event) for output in by_event[event]]

    def proof(self) -> Proof:
        """What a replay to `next_offset` must reproduce."""
        digest = blake2b(self.model.to_bytes(), digest_size=16)
        digest.update(orjson.dumps([self._meta(), len(self.pending)]))
        return Proof(self._chain.count, self._chain.hexdigest(), digest.hexdigest())

    def _meta(self) -> dict[str, Any]:
        return {
            "tally": self.tally.to_dict(),
            "clock_ms": self._clock_ms,
            "block": [self._cap.seen, self._cap.bad],
            "outputs": self._chain.count,
            **({} if self._next_label is None else {"next_label": self._next_label}),
        }

    def snapshot(self, ring_place: int = 0) -> Snapshot:
        """Everything `from_snapshot` needs to go on as if nothing had happened."""
        group, topic, partition = self.address
        digest, open_block = self._chain.dump()
        return Snapshot(
            algorithm=ALGORITHM,
            group=group,
            topic=topic,
            partition=partition,
            ring_place=ring_place,
            next_offset=self.next_offset,
            params=self.config.to_dict(),
            meta={**self._meta(), "chain": digest.hex(), **self._topic_meta()},
            blobs={"model": self.model.to_bytes(), **self.pending.dump(), "open_block": open_block},
            topic_id=self.topic_id,
        )

    def _topic_meta(self) -> dict[str, str]:
        """Not part of the proof: a log without topic ids must lead to the same one."""
        return {"label_topic_id": self.label_topic_id} if self.label_topic_id else {}

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """The one entrance for state. Raises `StateCorrupt` when the parts do not fit together."""
        try:
            config = PartitionConfig.from_dict(snapshot.params)
            model = Model.from_bytes(config.params, snapshot.blobs["model"])
            address = snapshot.group, snapshot.topic, snapshot.partition
            processor = cls(config, *address, model, snapshot.next_offset)
            processor.topic_id = snapshot.topic_id
            processor.pending = Pending.load(config.labels, config.params.d, snapshot.blobs)
            processor.tally = Tally(**snapshot.meta["tally"])
            processor._clock_ms = snapshot.meta["clock_ms"]
            if config.label_topic is not None:
                processor._next_label = snapshot.meta["next_label"]
                processor.label_topic_id = snapshot.meta.get("label_topic_id", "")
            processor._cap.seen, processor._cap.bad = snapshot.meta["block"]
            chain = bytes.fromhex(snapshot.meta["chain"])
            processor._chain = Chain.load(chain, snapshot.meta["outputs"], snapshot.blobs["open_block"])
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
            while len(self.pending) > config.labels.buffer_max:
                self._release_oldest()
            self.pending = Pending.load(config.labels, config.params.d, self.pending.dump())
        old, new = self.config.label_topic, config.label_topic
        self._adopt(config)
        if (None if old is None else old.name) != (None if new is None else new.name):
            self.forget_label_offset()

    def _release_oldest(self) -> None:
        plan = Plan()
        self._let_go(plan, self.pending.evict())
        empty = self._decoder.decode(())
        self.model.run(plan.operations(empty.x, empty.score), self.pending.decided)
