"""Turns the kernel's outcome of a batch into records to publish, in the order of their events."""

from collections.abc import Sequence

from npstream.codec.dead_letters import dead_letter
from npstream.codec.decisions import Decision, default_id, encode_decision, encode_decisions, model_name
from npstream.codec.envelope import decision_headers, published_timestamp
from npstream.codec.event import Decoded, EventId
from npstream.model import ALGORITHM, Outcome
from npstream.partition.config import PartitionConfig
from npstream.records import Channel, Output, Record


class Publisher:
    """Knows the words of one partition's decisions under one set of parameters."""

    def __init__(self, config: PartitionConfig, topic: str, partition: int) -> None:
        self._topic = topic
        self._partition = partition
        self._tau = config.params.tau
        self._on_bad_event = config.on_bad_event
        self._model = model_name(ALGORITHM, config.params.fingerprint())

    def decisions(
        self, records: Sequence[Record], ids: Sequence[EventId | None], outcome: Outcome, events: Sequence[int]
    ) -> list[Output]:
        """One decision for each event in `events`; row i of the outcome answers `events[i]`."""
        topic, partition = self._topic, self._partition
        # Events come in order and once each, so as many as there are records are all of them.
        asked = records if len(events) == len(records) else [records[event] for event in events]
        named = [
            default_id(topic, partition, record[0]) if (identity := ids[event]) is None else identity
            for event, record in zip(events, asked, strict=True)
        ]
        values = encode_decisions(
            named,
            outcome.decision,
            outcome.reason,
            outcome.score,
            outcome.threshold,
            outcome.gamma,
            outcome.fpr,
            outcome.t,
            tau=self._tau,
            model=self._model,
        )
        decisions = Channel.DECISIONS
        return [
            Output(decisions, key, value, decision_headers(offset, headers), timestamp_ms if timestamp_ms > 0 else 1)
            for (offset, timestamp_ms, key, _, headers), value in zip(asked, values, strict=True)
        ]

    def bad(self, record: Record, decoded: Decoded, event: int) -> list[Output]:
        """The dead letter of a bad event and, where it is asked for and the id is known, a decision all the same."""
        letter = dead_letter(record, decoded.errors[event], self._topic, self._partition)
        identity = decoded.bad_ids.get(event)
        if self._on_bad_event == "none" or identity is None:
            return [letter]
        # No model took part, so it has learned nothing for this decision: t is 0 however the events were batched.
        answer = int(self._on_bad_event)
        decision = Decision(identity, answer, "invalid", None, None, self._tau, None, None, 0, self._model)
        headers = decision_headers(record.offset, record.headers)
        timestamp_ms = published_timestamp(record.timestamp_ms)
        return [letter, Output(Channel.DECISIONS, record.key, encode_decision(decision), headers, timestamp_ms)]
