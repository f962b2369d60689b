"""The oracle of waiting observations: dictionaries and plain steps, one event at a time."""

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

from npstream.codec.event import Kind
from npstream.model import Op
from npstream.partition import LabelConfig


class Event(NamedTuple):
    """One decoded event; its number is its only feature. An id of None is its own."""

    kind: Kind
    identity: int | None
    y: int
    stamp: int


class Asked(NamedTuple):
    """One operation: what, with the features of which event, under which label, for which waiting observation."""

    op: Op
    row: int
    y: int
    waiting: int | None


@dataclass
class Parked:
    """A waiting observation: the event it came with, and when that was."""

    row: int
    count: int
    clock: int


@dataclass
class PlainBuffer:
    """What waits by id in order of arrival, ids that are gone, labels that came early."""

    rules: LabelConfig
    waiting: OrderedDict[int, Parked] = field(default_factory=OrderedDict)
    gone: OrderedDict[int, bool] = field(default_factory=OrderedDict)
    early: OrderedDict[int, int] = field(default_factory=OrderedDict)
    counts: Counter[str] = field(default_factory=Counter)
    events: int = 0
    clock: int = -1
    row: int = -1

    def take(self, event: Event) -> list[Asked]:
        """What this event asks for, in order."""
        self.row += 1
        if event.kind == Kind.BAD:
            return []
        self.events += 1
        self._age(event.stamp)
        asked: list[Asked] = []
        while self.waiting and self._is_due(next(iter(self.waiting.values()))):
            asked.append(self._let_go())
        if event.kind == Kind.LABELLED:
            self.counts["labels_with_event"] += 1
            return [*asked, Asked(Op.SCORE_LEARN, self.row, event.y, None)]
        if event.kind == Kind.OBSERVATION:
            identity = -1 - self.row if event.identity is None else event.identity
            return asked + self._observe(identity)
        if event.kind == Kind.LABEL:
            assert event.identity is not None
            return asked + self._label(event.identity, event.y)
        self.counts["labels_echoed"] += 1
        waits = event.identity is not None and event.identity in self.waiting
        slot = self._leave(event.identity, labelled=True).row if waits and event.identity is not None else None
        return [*asked, Asked(Op.LEARN, self.row, event.y, slot)]

    def _observe(self, identity: int) -> list[Asked]:
        if identity in self.early:
            self.counts["labels_early"] += 1
            y = self.early.pop(identity)
            self._remember(identity, labelled=True)
            return [Asked(Op.SCORE_LEARN, self.row, y, None)]
        if identity in self.waiting:
            self.counts["observations_duplicate"] += 1
            return [Asked(Op.SCORE, self.row, 0, None)]
        pushed_out = [self._let_go()] if len(self.waiting) == self.rules.buffer_max else []
        self.waiting[identity] = Parked(self.row, self.events, self.clock)
        return [*pushed_out, Asked(Op.SCORE, self.row, 0, self.row)]

    def _label(self, identity: int, y: int) -> list[Asked]:
        if identity in self.waiting:
            self.counts["labels_joined"] += 1
            row = self._leave(identity, labelled=True).row
            return [Asked(Op.LEARN, row, y, row)]
        if identity in self.gone:
            self.counts["labels_duplicate" if self.gone[identity] else "labels_late"] += 1
        elif identity in self.early:
            self.counts["labels_duplicate"] += 1
        else:
            self.early[identity] = y
            if len(self.early) > self.rules.early_max:
                self.early.popitem(last=False)
                self.counts["labels_orphan"] += 1
        return []

    def _let_go(self) -> Asked:
        self.counts["observations_expired"] += 1
        row = self._leave(next(iter(self.waiting)), labelled=False).row
        if self.rules.on_expiry == "negative":
            return Asked(Op.LEARN, row, -1, row)
        return Asked(Op.RELEASE, row, 0, row)

    def _leave(self, identity: int, *, labelled: bool) -> Parked:
        self._remember(identity, labelled=labelled)
        return self.waiting.pop(identity)

    def _remember(self, identity: int, *, labelled: bool) -> None:
        self.gone.pop(identity, None)
        self.gone[identity] = labelled
        if len(self.gone) > self.rules.remembered_max:
            self.gone.popitem(last=False)

    def _age(self, stamp: int) -> None:
        seconds = self.rules.expire_seconds
        if seconds is None:
            return
        if self.clock < 0:
            self.clock = max(0, stamp)
        elif stamp > self.clock:
            self.clock += min(stamp - self.clock, max(1, int(10 * seconds)))

    def _is_due(self, parked: Parked) -> bool:
        events, seconds = self.rules.expire_events, self.rules.expire_seconds
        too_many = events is not None and self.events - parked.count > events
        return too_many or (seconds is not None and self.clock - parked.clock > 1000 * seconds)
