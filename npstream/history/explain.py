"""One decision explained: recomputed where it was made, with what moved its score."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import Any

from npstream.codec.decisions import Decision, decode_decision
from npstream.codec.decoder import Decoded, EventDecoder, Kind
from npstream.errors import UsageError
from npstream.history.published import Published, event_offset, published
from npstream.history.rebuild import Past, Walk, start_before, walk_to
from npstream.records import Channel, Record, Tier
from npstream.report.page import text_table

_WORDS = {
    "score": "the score against the threshold decided",
    "warmup": "the score is above the threshold, but too few {counted} to trust it: no alarm yet",
    "budget": "the score is above the threshold, but the budget of {alarms} is spent: the alarm was withheld",
    "invalid": "the event could not be read: the decision is the one set by events.on_bad_event",
}
_HELD = {
    "fpr": {"counted": "non-targets were labelled", "alarms": "false alarms"},
    "alarm_rate": {"counted": "observations were decided", "alarms": "alarms"},
}
_KINDS = {
    Kind.BAD: "bad event",
    Kind.OBSERVATION: "observation",
    Kind.LABELLED: "observation with its label",
    Kind.LABEL: "label",
    Kind.ECHO: "label with its features",
}


@dataclass(frozen=True, slots=True)
class Part:
    """One feature's part in a score; `z` is its standardised value."""

    feature: str
    value: float
    z: float
    gradient: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """What became of one event, and why.

    `decision` is None for an event that gets none. `published` says whether the
    same bytes are in the decisions topic, None when there is nothing to compare.
    `tiers` are as they were before the event.
    """

    partition: int
    offset: int
    kind: str
    problem: str | None
    decision: Decision | None
    published: bool | None
    parts: tuple[Part, ...]
    recomputed_from: int
    control: str
    tiers: tuple[Tier, ...] = ()

    @property
    def why(self) -> str | None:
        """What its reason means under the control in force; None without a decision."""
        return None if self.decision is None else _WORDS[self.decision.reason].format(**_HELD[self.control])


def explain(past: Past, offset: int) -> Explanation:
    """Recompute the decision on the event at `offset`. Raises `UsageError` when there is no such event."""
    record = next(past.log.read(Channel.EVENTS, past.partition, offset, offset + 1), None)
    if record is None:
        ends = past.log.ends(Channel.EVENTS, past.partition)
        kept = f"kept are offsets {ends.begin} to {ends.stable - 1}" if ends.begin < ends.stable else "none are kept"
        raise UsageError(f"{past.name}: no event at offset {offset}; {kept}")
    walk = start_before(past, offset)
    origin = walk.processor.next_offset
    walk_to(past, walk, offset)
    decoded = EventDecoder(walk.processor.config.events).decode([record])
    kind, error = Kind(decoded.kinds[0]), decoded.errors.get(0)
    parts = _parts(walk, decoded) if kind in (Kind.OBSERVATION, Kind.LABELLED) else []
    control, tiers = walk.processor.config.params.control, tuple(walk.processor.model.tiers)
    decision, same = _decide(past, walk, record)
    return Explanation(
        partition=past.partition,
        offset=offset,
        kind=_KINDS[kind],
        problem=None if error is None else str(error),
        decision=decision,
        published=same,
        parts=tuple(sorted(parts, key=lambda part: -abs(part.contribution))),
        recomputed_from=origin,
        control=control,
        tiers=tiers,
    )


def _parts(walk: Walk, decoded: Decoded) -> list[Part]:
    """What each feature does to the score, by the model as it was before the event."""
    found = walk.processor.model.contributions(decoded.x[0])
    columns = (decoded.x[0].tolist(), found.z.tolist(), found.gradient.tolist(), found.contribution.tolist())
    return [Part(*row) for row in zip(walk.processor.config.feature_names, *columns, strict=True)]


def _decide(past: Past, walk: Walk, record: Record) -> tuple[Decision | None, bool | None]:
    outputs = [output for output in walk.take([record]) if output.channel == Channel.DECISIONS]
    if not outputs:
        return None, None
    (output,) = outputs
    offset = event_offset(output.headers)
    values = [item.record.value for item in _published_from(past, offset) if item.event_offset == offset]
    return decode_decision(output.value), values[-1] == output.value if values else None


def _published_from(past: Past, offset: int) -> Iterator[Published]:
    """Decisions on this event and what is published behind them: after a reset it may come again at the very end."""
    resets = past.history.resets
    found = published(past.log, Channel.DECISIONS, past.partition, offset, offset + 1 if resets else 2**63 - 1, resets)
    return found if resets else takewhile(lambda item: item.event_offset <= offset, found)


def explain_json(found: Explanation) -> dict[str, Any]:
    """Everything, for scripts."""
    decision = found.decision
    return {
        "partition": found.partition,
        "offset": found.offset,
        "kind": found.kind,
        "problem": found.problem,
        "decision": None if decision is None else asdict(decision),
        "why": found.why,
        "published": found.published,
        "features": [{name: getattr(part, name) for name in part.__slots__} for part in found.parts],
        "tiers": [{"name": tier.name, "tau": tier.rate, "threshold": tier.threshold} for tier in found.tiers],
        "recomputed_from": found.recomputed_from,
    }


def explain_text(found: Explanation, limit: int = 10) -> str:
    """The same in words; at most `limit` features, the ones that moved the score most."""
    lines = [f"partition {found.partition}, input offset {found.offset}: {found.kind}"]
    if found.problem is not None:
        lines.append(f"  {found.problem}; the event is in the dead-letter topic")
    decision = found.decision
    if decision is None:
        lines.append("  no decision was asked for" if found.problem is None else "  no decision was published")
        return "\n".join(lines)
    lines.append(f"  decision   {decision.decision:+d} ({decision.reason}): {found.why}")
    if decision.score is not None and decision.threshold is not None:
        margin = decision.score - decision.threshold
        lines.append(
            f"  score      {decision.score:.6g}, threshold in force {decision.threshold:.6g}, margin {margin:+.6g}"
        )
        lines += [
            f"  tier       {tier.name}: threshold {tier.threshold:.6g}, margin {decision.score - tier.threshold:+.6g}"
            + (", the strictest one reached" if tier.name == decision.tier else "")
            for tier in found.tiers
        ]
    lines.append(f"  model      {decision.model} after {decision.t} labels, tau {decision.tau:g}")
    state = {True: "is in the topic, byte for byte", False: "DIFFERS from the published one", None: "is not published"}
    lines.append(f"  recomputed from offset {found.recomputed_from}; the decision {state[found.published]}")
    if found.parts:
        rows = [
            [part.feature, f"{part.value:.6g}", f"{part.z:+.3f}", f"{part.gradient:+.4f}", f"{part.contribution:+.4f}"]
            for part in found.parts[:limit]
        ]
        table = text_table(("feature", "value", "standardised", "gradient", "moved the score by"), rows)
        lines += ["", *(f"  {line}" for line in table.splitlines())]
        if len(found.parts) > limit:
            lines.append(f"  and {len(found.parts) - limit} more features")
    return "\n".join(lines)
