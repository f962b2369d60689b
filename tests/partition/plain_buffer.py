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
    """An observation that waits, or has a label (else 0) and may be corrected; the event it came with, and when."""

    row: int
    count: int
    clock: int
    y: int = 0


@dataclass
class PlainBuffer:
    """What is parked by id in order of arrival, ids that are gone and under which label, labels that came early."""

    rules: LabelConfig
    parked: OrderedDict[int, Parked] = field(default_factory=OrderedDict)
    gone: OrderedDict[int, int] = field(default_factory=OrderedDict)
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
        while self.parked and self._is_due(next(iter(self.parked.values()))):
            asked += self._let_go(next(iter(self.parked)))
        if event.kind == Kind.LABELLED:
            self.counts["labels_with_event"] += 1
            parked = event.identity is not None and self._park_labelled(event.identity, event.y)
            return [*asked, Asked(Op.SCORE_LEARN, self.row, event.y, self.row if parked else None)]
        if event.kind == Kind.OBSERVATION:
            identity = -1 - self.row if event.identity is None else event.identity
            return asked + self._observe(identity)
        if event.kind == Kind.LABEL:
            assert event.identity is not None
            return asked + self._label(event.identity, event.y)
        return asked + self._echo(event.identity, event.y)

    def _observe(self, identity: int) -> list[Asked]:
        if identity in self.early:
            self.counts["labels_early"] += 1
            y = self.early.pop(identity)
            parked = identity >= 0 and self._park_labelled(identity, y)
            if not parked:
                self._remember(identity, y)
            return [Asked(Op.SCORE_LEARN, self.row, y, self.row if parked else None)]
        if identity in self.parked:
            self.counts["observations_duplicate"] += 1
            return [Asked(Op.SCORE, self.row, 0, None)]
        pushed_out = []
        if len(self.parked) == self.rules.buffer_max:
            pushed_out = self._let_go(next(iter([*self._labelled(), *self.parked])))
        self.parked[identity] = Parked(self.row, self.events, self.clock)
        return [*pushed_out, Asked(Op.SCORE, self.row, 0, self.row)]

    def _park_labelled(self, identity: int, y: int) -> bool:
        """Keep it under its label, should that be corrected, unless only those that wait could make room."""
        if not self.rules.corrections or identity in self.parked:
            return False
        if len(self.parked) == self.rules.buffer_max:
            if not self._labelled():
                return False
            self._let_go(self._labelled()[0])
        self.parked[identity] = Parked(self.row, self.events, self.clock, y)
        return True

    def _labelled(self) -> list[int]:
        """Those that have their label, the oldest first."""
        return [identity for identity, parked in self.parked.items() if parked.y]

    def _label(self, identity: int, y: int) -> list[Asked]:
        if identity in self.parked:
            row = self.parked[identity].row
            return [Asked(op, row, y, row) for op in self._join(identity, y, "joined")]
        if identity in self.gone:
            self.counts["labels_duplicate" if self.gone[identity] == y else "labels_late"] += 1
        elif identity in self.early:
            corrects = self.rules.corrections and self.early[identity] != y
            self.counts["labels_corrected" if corrects else "labels_duplicate"] += 1
            self.early[identity] = y if corrects else self.early[identity]
        else:
            self.early[identity] = y
            if len(self.early) > self.rules.early_max:
                self.early.popitem(last=False)
                self.counts["labels_orphan"] += 1
        return []

    def _join(self, identity: int, y: int, fate: str) -> list[Op]:
        """What a label does to its observation, which is parked."""
        before = self.parked[identity].y
        if before == y:
            self.counts["labels_duplicate"] += 1
            return []
        self.counts["labels_corrected" if before else f"labels_{fate}"] += 1
        if self.rules.corrections:
            self.parked[identity].y = y
        else:
            self._leave(identity, y)
        return [Op.CORRECT if before else Op.LEARN]

    def _echo(self, identity: int | None, y: int) -> list[Asked]:
        if identity in self.parked:
            assert identity is not None
            slot = self.parked[identity].row
            return [Asked(op, self.row, y, slot) for op in self._join(identity, y, "echoed")]
        if identity is not None and self.gone.get(identity) == y:
            self.counts["labels_duplicate"] += 1
            return []
        if identity is not None:
            self._remember(identity, y)
        self.counts["labels_echoed"] += 1
        return [Asked(Op.LEARN, self.row, y, None)]

    def _let_go(self, identity: int) -> list[Asked]:
        parked = self._leave(identity, self.parked[identity].y)
        if parked.y:
            return []
        self.counts["observations_expired"] += 1
        if self.rules.on_expiry == "negative":
            return [Asked(Op.LEARN, parked.row, -1, parked.row)]
        return [Asked(Op.RELEASE, parked.row, 0, parked.row)]

    def _leave(self, identity: int, y: int) -> Parked:
        self._remember(identity, y)
        return self.parked.pop(identity)

    def _remember(self, identity: int, y: int) -> None:
        self.gone.pop(identity, None)
        self.gone[identity] = y
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
