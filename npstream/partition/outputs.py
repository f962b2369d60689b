"""Turns the kernel's outcome of a batch into records to publish, in the order of their events."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import repeat
from typing import cast

from npstream.codec.dead_letters import dead_letter
from npstream.codec.decision_columns import DecisionColumns
from npstream.codec.decisions import Decision, default_id, encode_decision, encode_decisions, model_name
from npstream.codec.envelope import decision_headers, many_decision_headers, published_timestamp
from npstream.codec.event import Decoded, EventId
from npstream.errors import BadEvent
from npstream.model import ALGORITHM, Outcome
from npstream.partition.config import PartitionConfig
from npstream.records import Channel, Output, Record

_OUTPUT: Callable[[tuple[object, ...]], Output] = partial(tuple.__new__, Output)
"""An `Output` of its fields as one tuple: what its constructor does, without a Python call for each record."""


class OutputBuilder:
    """Knows the words of one partition's decisions under one set of parameters."""

    def __init__(self, config: PartitionConfig, topic: str, partition: int) -> None:
        self._topic = topic
        self._partition = partition
        self._tau = config.params.tau
        self._review = config.labels.review
        self._tiers = config.params.tier_names
        self._features = config.feature_names
        self._on_bad_event = config.on_bad_event
        self._schema = config.decision_schema
        self._label_topic = None if config.label_topic is None else config.label_topic.name
        self._model = model_name(ALGORITHM, config.params.fingerprint(), config.events.contract)

    def decisions(
        self,
        records: Sequence[Record],
        ids: Sequence[EventId | None],
        outcome: Outcome,
        events: Sequence[int],
        next_labels: Sequence[int] | None = None,
        reviewed: Collection[int] = (),
    ) -> list[Output]:
        """One decision for each event in `events`; row i of the outcome is for `events[i]`.

        `next_labels` says for every record how far labels of a topic were learned before it. The rows in `reviewed`
        ask for a review.
        """
        if not events:
            return []
        # Events come in order and once each, so as many as there are records are all of them.
        if len(events) != len(records):
            records, ids = [records[event] for event in events], [ids[event] for event in events]
            next_labels = None if next_labels is None else [next_labels[event] for event in events]
        offsets, stamps, keys, _, headers = zip(*records, strict=True)
        named = self._named(ids, offsets)
        common = self._tau, self._model, reviewed, self._review, self._tiers, self._features
        columns = DecisionColumns(named, *outcome[:-1], *common)
        values = encode_decisions(columns, self._schema)
        if min(stamps) <= 0:
            stamps = tuple(map(published_timestamp, stamps))
        added = many_decision_headers(offsets, headers, next_labels)
        return list(map(_OUTPUT, zip(repeat(Channel.DECISIONS), keys, values, added, stamps, strict=False)))

    def _named(self, ids: Sequence[EventId | None], offsets: Sequence[int]) -> Sequence[EventId]:
        if None not in ids:
            return cast(Sequence[EventId], ids)
        topic, partition = self._topic, self._partition
        return [
            default_id(topic, partition, offset) if identity is None else identity
            for identity, offset in zip(ids, offsets, strict=True)
        ]

    def bad_label(self, record: Record, error: BadEvent, before: int) -> Output:
        """The dead letter of a bad record of the labels topic, read before the event at offset `before`."""
        assert self._label_topic is not None
        return dead_letter(record, error, self._label_topic, self._partition, before)

    def bad(self, record: Record, decoded: Decoded, event: int, next_label: int | None = None) -> list[Output]:
        """The dead letter of a bad event and, where it is asked for and the id is known, a decision all the same."""
        refused = dead_letter(record, decoded.errors[event], self._topic, self._partition)
        identity = decoded.bad_ids.get(event)
        if self._on_bad_event == "none" or identity is None:
            return [refused]
        # No model took part, so it has learned nothing for this decision: t is 0 however the events were batched.
        default = int(self._on_bad_event)
        decision = Decision(identity, default, "invalid", None, None, self._tau, None, None, 0, self._model)
        headers = decision_headers(record.offset, record.headers, next_label)
        timestamp_ms = published_timestamp(record.timestamp_ms)
        value = encode_decision(decision, self._schema)
        return [refused, Output(Channel.DECISIONS, record.key, value, headers, timestamp_ms)]
