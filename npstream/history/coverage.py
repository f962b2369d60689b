"""What an audit can cover: which published decisions can be recomputed, and what is in the way of the others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from npstream.codec.history import Kept, find_damage
from npstream.codec.resets import Reset
from npstream.history.published import event_offset, kept_from, oldest_event_offset, passes, published
from npstream.history.rebuild import Past, usable_snapshots
from npstream.model import ALGORITHM
from npstream.records import Channel
from npstream.state import LABELS_RECREATED, checkpoint_records, is_recreated

_CHANNELS = (Channel.DECISIONS, Channel.DEAD_LETTERS)
_NAMED_MAX = 3

Cause = Literal["events", "reset", "labels", "checkpoints", "decisions"]
"""What is gone: the events, the way across a reset, labels or their merge, checkpoints, the decisions themselves."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Input offsets from `begin` to `end` that an audit does not reach, with so many published records, and why."""

    begin: int
    end: int
    records: int
    cause: Cause
    why: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """Of the input offsets asked for: the first published, from where to where they can be recomputed, the gaps.

    From `kept_from` on, retention has taken nothing of a topic.
    """

    published_begin: int
    begin: int
    end: int
    gaps: tuple[Gap, ...]
    kept_from: Mapping[Channel, int]

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be recomputed."""
        return self.begin >= self.end

    @property
    def is_whole(self) -> bool:
        """Whether every published record that was asked for can be recomputed."""
        return not self.gaps


@dataclass(frozen=True, slots=True)
class Superseded:
    """Records for the input offsets from `first` to `last` that no longer count since a reset."""

    reset: Reset
    first: int
    last: int
    decisions: int
    dead_letters: int


def cover(past: Past, begin: int | None, end: int, decided: int) -> Coverage | None:
    """What can be audited of the input offsets from `begin` (None: the first published) to `end`.

    Everything below `decided` has been decided. None when nothing of what was asked for is, or ever was, published.
    """
    log, resets, end = past.log, past.history.resets, min(end, decided)
    kept = {channel: kept_from(log, channel, past.partition, decided, resets) for channel in _CHANNELS}
    oldest = oldest_event_offset(log, past.partition, resets)
    first = max(begin or 0, decided if oldest is None else oldest)
    gaps = [] if begin is None else _taken(past, begin, min(end, kept[Channel.DECISIONS]))
    if first >= end and not gaps:
        return None
    start = min(max(first, _reach(past, kept[Channel.DECISIONS])), end)
    gaps += _gaps(past, first, start, kept[Channel.DECISIONS])
    return Coverage(first, start, end, tuple(gaps), kept)


def _taken(past: Past, begin: int, end: int) -> list[Gap]:
    """Decisions that were asked for and that retention has taken."""
    birth = past.history.birth
    begin = begin if birth is None or past.history.resets else max(begin, birth.offset)
    why = "the decisions are gone: retention of their topic has taken them"
    return [Gap(begin, end, 0, "decisions", why)] if begin < end else []


def _reach(past: Past, decisions_from: int) -> int:
    """The lowest offset from which on everything can be recomputed; beyond all offsets when there is none."""
    first, labels = _first_state(past, past.log.ends(Channel.EVENTS, past.partition).begin), _labels_begin(past)
    if past.label_topic is None or (decisions_from == labels == 0 and not _labels_recreated(past)):
        return first
    usable = usable_snapshots(past)
    return min((kept.next_offset for kept in usable if _merges_kept(past, kept, decisions_from, labels)), default=2**63)


def _labels_begin(past: Past) -> int:
    return 0 if past.label_topic is None else past.log.ends(Channel.LABELS, past.partition).begin


def _labels_recreated(past: Past) -> bool:
    """Whether some of what still counts was learned from a labels topic that is no more."""
    return is_recreated(past.first_label_topic_id, past.label_topic_id)


def _merges_kept(past: Past, kept: Kept, decisions_from: int, labels_begin: int) -> bool:
    """Whether the labels learned since a snapshot are there, and the decisions that say how they were merged."""
    if is_recreated(kept.snapshot.meta["label_topic_id"], past.label_topic_id):
        return False
    next_label = kept.snapshot.meta["next_label"] or 0
    # A reset may have given up the labels that were gone: then it goes on with the first that was there.
    given_up = next_label == 0 and any(reset.to == kept.next_offset for reset in past.history.resets)
    return kept.next_offset >= decisions_from and (next_label >= labels_begin or given_up)


def _gaps(past: Past, begin: int, end: int, decisions_from: int) -> list[Gap]:
    """Why nothing between these offsets can be recomputed, cause by cause; only where something was published."""
    events = past.log.ends(Channel.EVENTS, past.partition).begin
    over = max((reset.to for reset in past.history.resets if reset.starts_over), default=0)
    reasons: list[tuple[int, Cause, Callable[[], str]]] = [
        (events, "events", lambda: f"the events are gone: those from offset {events} on are kept"),
        (over, "reset", lambda: f"a reset started over at offset {over}: what led there is given up"),
        (_first_state(past, events), "checkpoints", lambda: _no_checkpoint(past)),
        (end, "labels", lambda: _no_merges(past, decisions_from)),
    ]
    gaps = []
    for until, cause, why in reasons:
        until = min(until, end)
        records = _count(past, begin, until) if begin < until else 0
        if records:
            gaps.append(Gap(begin, until, records, cause, why()))
        begin = max(begin, until)
    return gaps


def _first_state(past: Past, events_begin: int) -> int:
    """The lowest offset whose state can be had, whatever became of labels; beyond all offsets when there is none."""
    birth = past.history.birth
    if birth is not None and events_begin <= birth.offset:
        return birth.offset
    return min((kept.next_offset for kept in usable_snapshots(past)), default=2**63)


def _no_checkpoint(past: Past) -> str:
    """The events are there and nothing leads to them: never kept, replaced, damaged, or another algorithm's."""
    found = "the events are there, no checkpoint that leads to them is"
    others = sorted({kept.snapshot.algorithm for kept in past.history.snapshots} - {ALGORITHM})
    if others:
        found += f"; some were written by algorithm version {others[0]}, this is {ALGORITHM}: run the version of then"
    records = checkpoint_records(past.log, past.partition)
    damaged = [*find_damage(records, past.group, past.topic, past.partition)]
    if damaged:
        names = ", ".join(key.encode().decode() for key in damaged[:_NAMED_MAX])
        found += f"; damaged in the checkpoint topic: {names}"
    if past.history.incomplete:
        found += f"; those at {', '.join(map(str, past.history.incomplete[:_NAMED_MAX]))} have lost their segments"
    return found


def _no_merges(past: Past, decisions_from: int) -> str:
    labels = _labels_begin(past)
    if _labels_recreated(past):
        return f"the labels that were learned are gone: {LABELS_RECREATED}"
    if labels:
        return f"the labels that were learned are gone: those from label offset {labels} on are kept"
    return (
        "how labels were merged with the events is not known: the decisions that say so are gone, those from input "
        f"offset {decisions_from} on are kept"
    )


def _count(past: Past, begin: int, end: int) -> int:
    return sum(
        item.event_offset >= 0
        for channel in _CHANNELS
        for item in published(past.log, channel, past.partition, begin, end, past.history.resets)
    )


def superseded(past: Past) -> tuple[Superseded, ...]:
    """What was published and no longer counts, by the reset after which its events were decided again."""
    found: dict[int, Superseded] = {}
    for channel in _CHANNELS if past.history.resets else ():
        runs = passes(past.log, channel, past.partition, 0, past.history.resets)
        for number, part in enumerate(runs):
            if part.below == 2**63:
                continue
            for record in past.log.read(channel, past.partition, part.begin, part.end):
                offset = event_offset(record.headers)
                later = next((run for run in runs[number + 1 :] if run.first <= offset), None)
                if later is not None and later.reset is not None:
                    _add(found, later.reset, channel, offset)
    return tuple(found[number] for number in sorted(found))


def _add(found: dict[int, Superseded], reset: Reset, channel: Channel, offset: int) -> None:
    old = found.get(reset.number, Superseded(reset, offset, offset, 0, 0))
    found[reset.number] = Superseded(
        reset,
        min(old.first, offset),
        max(old.last, offset),
        old.decisions + (channel is Channel.DECISIONS),
        old.dead_letters + (channel is Channel.DEAD_LETTERS),
    )
