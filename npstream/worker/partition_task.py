"""One owned partition on its way from a snapshot to live decisions.

    restored ──► REPLAYING ──(next_offset = O, proof holds)──► LIVE
       │             │                                          │
       └── C = O ────┼──────────────────────────────────────────┘
                     └── proof differs: StateCorrupt, the worker pauses it

While it replays a partition adds nothing to any transaction: no offsets, no
snapshot, no checkpoint on revoke. The first thing a live partition may publish
is a snapshot of its own: on a first start, and when settings have changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from npstream import failpoints
from npstream.errors import StateCorrupt
from npstream.partition import PartitionConfig, PartitionProcessor, Step
from npstream.partition.checkpoint import change_record, snapshot_chunks
from npstream.partition.config import check_change
from npstream.records import Output, Pointer, Position, Record, Share


@dataclass(frozen=True, slots=True)
class Cadence:
    """How often a snapshot is written, and how many are kept. Never influences a decision."""

    every_events: int = 10_000
    every_seconds: float = 10.0
    keep: int = 4

    def due(self, events: int, seconds: float) -> bool:
        """Whether this much progress since the last snapshot asks for a new one."""
        return events > 0 and (events >= self.every_events or seconds >= self.every_seconds)


class PartitionTask:
    """A processor, the position it must first reach, and what of it is already committed."""

    def __init__(
        self,
        processor: PartitionProcessor,
        goal: Position | None,
        wanted: PartitionConfig,
        cadence: Cadence,
        now: float,
    ) -> None:
        self.processor = processor
        self._goal = goal
        self._pointer = goal.pointer if goal else None
        # The same object where they are equal: they are compared every turn, and that costs a hundred times less.
        self._wanted = processor.config if processor.config == wanted else wanted
        self._cadence = cadence
        self._saved_at = now
        self._saved_offset = processor.next_offset
        self.live = False
        self.replayed = 0
        self.halted: StateCorrupt | None = None
        self._maybe_go_live()

    @property
    def partition(self) -> int:
        """The input partition's number."""
        return self.processor.partition

    @property
    def is_known(self) -> bool:
        """Whether it was restored from a committed position; else this is its first start."""
        return self._goal is not None

    @property
    def replay_to(self) -> int:
        """The committed offset the replay must reach; the own offset on a first start."""
        return self.processor.next_offset if self._goal is None else self._goal.next_offset

    @property
    def saved_offset(self) -> int:
        """Where the newest snapshot stands: a restore would begin here."""
        return self._saved_offset

    def replay(self, records: list[Record]) -> list[Record]:
        """Process silently what was decided before; answer the records that are new.

        Raises `StateCorrupt` when the replay does not end on the recorded proof,
        or skips the committed offset.
        """
        if self.live:
            return records
        assert self._goal is not None
        goal = self._goal.next_offset
        cut = next((i for i, record in enumerate(records) if record.offset >= goal), len(records))
        failpoints.hit("replay")
        self.processor.process(records[:cut])
        self.replayed += cut
        if cut < len(records) and self.processor.next_offset != goal:
            raise StateCorrupt(
                f"{self.processor.name}: events below the committed offset {goal} are gone (replay stands at "
                f"{self.processor.next_offset}); their retention was too short. Roll back to a kept checkpoint or "
                "start a new group"
            )
        self._maybe_go_live()
        return records[cut:]

    def _maybe_go_live(self) -> None:
        if self._goal is not None:
            if self.processor.next_offset != self._goal.next_offset:
                return
            self._check_proof(self._goal)
        self.live = True

    def _check_proof(self, goal: Position) -> None:
        proof = self.processor.proof()
        if proof != goal.proof:
            raise StateCorrupt(
                f"{self.processor.name}: replay to offset {goal.next_offset} gave {proof}, recorded was {goal.proof}. "
                "The events, the snapshot or the program changed. Run the version that wrote the checkpoint, roll back "
                "to a kept checkpoint, or start a new group"
            )

    @property
    def debuts(self) -> bool:
        """Whether a transaction must come before the first live decision: the first state, or changed settings."""
        return self.live and (self._pointer is None or self.processor.config != self._wanted)

    def debut(self, now: float) -> Share | None:
        """That transaction's share, None when none is needed.

        On a first start it makes the cold or seeded state durable; when settings
        changed it applies them; either leaves a change record. Raises `SettingsError`
        for a change that cannot be made, with the ways out.
        """
        if not self.debuts:
            return None
        old, new = self.processor.config, self._wanted
        first = self._pointer is None
        if old != new:
            check_change(old, new)
            self.processor.reconfigure(new)
        change = change_record(self.processor, None if first else old)
        return replace(self._share((), now, snapshot=True), changes=(change,))

    def process(self, records: list[Record]) -> Step:
        """Decide and learn. What it answers is published by `share`."""
        assert self.live
        step = self.processor.process(records)
        self.halted = step.halted
        return step

    def share(self, step: Step, now: float) -> Share:
        """This partition's share of the transaction that publishes the last step.

        The transaction before it must stand: only then is it known where the newest snapshot lies.
        """
        events = step.next_offset - self._saved_offset
        return self._share(step.outputs, now, snapshot=self._cadence.due(events, now - self._saved_at))

    def checkpoint(self, now: float, *, forced: bool) -> Share | None:
        """A share with a snapshot and nothing else, if there is progress that none covers yet.

        Unless forced, only when the cadence says that it is time.
        """
        events = self.processor.next_offset - self._saved_offset
        if not self.live or events == 0 or not (forced or self._cadence.due(events, now - self._saved_at)):
            return None
        return self._share((), now, snapshot=True)

    def _share(self, outputs: Sequence[Output], now: float, *, snapshot: bool) -> Share:
        processor = self.processor
        chunks: list[tuple[bytes, bytes]] = []
        pointer = self._pointer
        if snapshot or pointer is None:
            slot = 0 if pointer is None else (pointer.slot + 1) % self._cadence.keep
            chunks, pointer = snapshot_chunks(processor, slot)
            self._saved_at = now
            self._saved_offset = processor.next_offset
        position = Position(processor.next_offset, pointer, processor.proof())
        return Share(processor.partition, tuple(outputs), position, tuple(chunks))

    def committed(self, pointer: Pointer) -> None:
        """The transaction with the last share stands; remember where the newest snapshot is."""
        self._pointer = pointer
