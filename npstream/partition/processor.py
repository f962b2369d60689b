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

import numpy as np
import orjson

from npstream.codec.decisions import default_id
from npstream.codec.decoder import Decoded, EventDecoder, Kind
from npstream.codec.event import EventId
from npstream.codec.snapshot import Snapshot
from npstream.errors import SettingsError, StateCorrupt
from npstream.model import ALGORITHM, Model, Outcome, seeded
from npstream.partition.config import PartitionConfig
from npstream.partition.counters import Tally
from npstream.partition.dead_letter_cap import DeadLetterCap
from npstream.partition.operations import Plan, all_labelled, rows_of
from npstream.partition.outputs import OutputBuilder
from npstream.partition.pending import ParkedObservation, Pending, id_hash
from npstream.partition.proof import Chain
from npstream.partition.review import ReviewSample
from npstream.records import Output, Proof, Record


@dataclass(frozen=True, slots=True)
class Step:
    """What one batch produced. Nothing has left the process yet.

    `halted` says why the batch was cut short at `next_offset`: the partition
    must be paused there.
    """

    outputs: list[Output]
    next_offset: int
    halted: StateCorrupt | None = None


class PartitionProcessor:
    """Owns the model state of one input partition."""

    def __init__(
        self, config: PartitionConfig, group: str, topic: str, partition: int, model: Model, next_offset: int = 0
    ) -> None:
        self.address = (group, topic, partition)
        self.partition = partition
        self.name = f"{topic}/{partition}"
        self.topic_id = ""
        self._next_offset = next_offset
        self.model = model
        self.tally = Tally()
        self.bad_events: Counter[tuple[str, str]] = Counter()
        """By reason and by the decision published all the same. Of this process alone: never part of the state."""
        self.pending = Pending(config.labels, config.params.d)
        self.review = ReviewSample()
        self._chain = Chain()
        self._clock_ms = -1
        self._cap = DeadLetterCap(config.dead_letter_cap)
        self._adopt(config)

    def _adopt(self, config: PartitionConfig) -> None:
        self.config = config
        self.review.adopt(config.labels.review, config.params.seed, config.params.tau)
        self._decoder = EventDecoder(config.events)
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

    def skip_to(self, offset: int) -> None:
        """Go on at a later offset: those in between hold no event, or an operator gives them up."""
        assert offset >= self._next_offset, (self.name, offset, self._next_offset)
        self._next_offset = offset

    def process(self, records: Sequence[Record]) -> Step:
        """Decode, decide, park and learn, one event after another."""
        if not records:
            return Step([], self._next_offset)
        assert records[0].offset >= self._next_offset, (self.name, records[0].offset, self._next_offset)
        decoded = self._decoder.decode(records)
        # While something waits, an event may let it expire, so the events must be taken one by one.
        if decoded.kinds.count(Kind.LABELLED) == len(records) and not len(self.pending):
            outputs, done = self._process_labelled(records, decoded), len(records)
        else:
            outputs, done = self._process_mixed(records, decoded)
        self._chain.extend(outputs)
        if done == len(records):
            self._next_offset = records[-1].offset + 1
            return Step(outputs, self._next_offset)
        # Cut short by the cap: the bad event is not taken, so that a raised cap goes on with it.
        self._next_offset = records[done].offset
        reason = decoded.errors[done].reason
        return Step(outputs, self._next_offset, self._cap.exceeded(self.name, self._next_offset, reason))

    def _process_labelled(self, records: Sequence[Record], decoded: Decoded) -> list[Output]:
        """The commonest batch, every event with its label and nothing waiting: no Python step per event."""
        n = len(records)
        self._cap.count(n)
        self._age(records)
        self.tally.labels_with_event += n
        operations = all_labelled(decoded.x, decoded.score, decoded.y)
        outcome = self.model.run(operations, self.pending.decided, self.review.sampling)
        return self._publish(records, decoded, outcome, range(n), n, ())

    def _process_mixed(self, records: Sequence[Record], decoded: Decoded) -> tuple[list[Output], int]:
        """Any batch; returns the outputs and how many records were taken before the cap, if any, was met."""
        plan = Plan()  # first planned, then run: one compiled call per batch, not per event
        done = len(records)
        for event, (kind, record) in enumerate(zip(decoded.kinds, records, strict=True)):
            if kind != Kind.BAD:
                self._cap.count(1)
                self._age((record,))
                self._expire(plan)
                self._handle(plan, event, kind, record, decoded)
            elif self._cap.admits_one():
                self.tally.dead_letters += 1
            else:
                done = event
                break
        operations = plan.operations(decoded.x, decoded.score)
        outcome = self.model.run(operations, self.pending.decided, self.review.sampling)
        rows, sampled = rows_of(outcome, plan.deciding), np.flatnonzero(operations.y[plan.deciding] < -1)
        return self._publish(records, decoded, rows, plan.events, done, sampled.tolist()), done

    def _handle(self, plan: Plan, event: int, kind: int, record: Record, decoded: Decoded) -> None:
        y = int(decoded.y[event])
        if kind == Kind.LABELLED:
            self.tally.labels_with_event += 1
            plan.decide_and_learn(event, y)
        elif kind == Kind.OBSERVATION:
            identity = decoded.ids[event]
            if identity is None:
                identity = default_id(self.address[1], self.partition, record.offset)
            self._observe(plan, event, identity, decoded)
        elif kind == Kind.LABEL:
            identity = decoded.ids[event]
            assert identity is not None
            self._label(plan, id_hash(identity), y)
        else:
            self._echo(plan, event, decoded.ids[event], y)

    def _observe(self, plan: Plan, event: int, identity: EventId, decoded: Decoded) -> None:
        key, review = id_hash(identity), self.review.code_of(identity)
        early = self.pending.take_early(key)
        if early:
            self.tally.labels_early += 1
            plan.decide_and_learn(event, early)
        elif self.pending.holds(key):
            # A producer's retry: it gets its decision, and the label will count for the first one.
            self.tally.observations_duplicate += 1
            plan.decide(event, -1, review)
        else:
            if self.pending.full():
                self._let_go(plan, self.pending.evict())  # memory is bounded: the oldest counts as expired
            slot = self.pending.park(
                key, decoded.x[event], float(decoded.score[event]), self.tally.events, self._clock_ms
            )
            plan.decide(event, slot, review)

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
        sampled: Sequence[int],
    ) -> list[Output]:
        """Outputs in the order of their events: the chain, and readers, rely on it."""
        self.tally.count_decisions(outcome)
        reviewed = frozenset(row for row in sampled if outcome.decision[row] < 0)
        self.review.requested += len(reviewed)
        decisions = self._publisher.decisions(records, decoded.ids, outcome, events, reviewed)
        if not decoded.errors:
            return decisions
        by_event: dict[int, list[Output]] = {event: [output] for event, output in zip(events, decisions, strict=True)}
        for event in range(done):
            if event in decoded.errors:
                by_event[event] = outputs = self._publisher.bad(records[event], decoded, event)
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
            **({"review": self.review.dump()} if self.review.used else {}),
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
            meta={**self._meta(), "chain": digest.hex()},
            blobs={"model": self.model.to_bytes(), **self.pending.dump(), "open_block": open_block},
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
            processor.pending = Pending.load(config.labels, config.params.d, snapshot.blobs)
            processor.tally = Tally(**snapshot.meta["tally"])
            processor._clock_ms = snapshot.meta["clock_ms"]
            processor._cap.seen, processor._cap.bad = snapshot.meta["block"]
            if "review" in snapshot.meta:
                processor.review.restore(snapshot.meta["review"])
                processor._adopt(config)
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
        self._adopt(config)

    def _release_oldest(self) -> None:
        plan = Plan()
        self._let_go(plan, self.pending.evict())
        empty = self._decoder.decode(())
        self.model.run(plan.operations(empty.x, empty.score), self.pending.decided, self.review.sampling)
