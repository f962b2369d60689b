"""One owned partition, from its assignment to its first live decision and on.

While it replays, a partition adds nothing to any transaction: no offsets, no
snapshot, no checkpoint on revoke. Before its first live decision it may have to
commit a snapshot of its own: on a first start, and when settings have changed.
The phases are drawn in `records.Phase`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from npstream import failpoints
from npstream.codec.position import MERGES_MAX, merges_text
from npstream.errors import StateCorrupt
from npstream.partition import PartitionConfig, PartitionProcessor, Step
from npstream.partition.archive import ArchiveRules
from npstream.partition.checkpoint import change_record, checkpoint_share
from npstream.partition.config import check_change
from npstream.records import LabelPosition, Merge, Output, Phase, Pointer, Position, Record, Share


@dataclass(frozen=True, slots=True)
class Cadence:
    """How often a snapshot is written, how many are kept, and which for longer. Never influences a decision."""

    every_events: int = 10_000
    every_seconds: float = 10.0
    keep: int = 4
    archives: ArchiveRules = field(default_factory=ArchiveRules)

    def due(self, events: int, seconds: float) -> bool:
        """Whether this much progress since the last snapshot asks for a new one."""
        return events > 0 and (events >= self.every_events or seconds >= self.every_seconds)


class PartitionTask:
    """A partition's phase; once it is restored, its processor and what of it is committed."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.phase = Phase.RESTORING
        self.reason = ""
        """Why it is paused."""
        self.committed_offset: int | None = None
        self.replayed = 0
        self.unreported = False
        """Whether it has committed something that `Progress` has not reported yet."""
        self._processor: PartitionProcessor | None = None
        self._goal: Position | None = None
        self._pointer: Pointer | None = None

    def restored(
        self,
        processor: PartitionProcessor,
        goal: Position | None,
        wanted: PartitionConfig,
        cadence: Cadence,
        now: float,
        merges: Sequence[Merge] = (),
        label_topic_id: str = "",
    ) -> None:
        """The state is loaded; `goal` is the committed position it must first reach, None on a first start.

        `merges` are those that were made on the way to the goal, `label_topic_id`
        is that of the labels topic now. Raises `StateCorrupt` when the goal is
        reached already and is not what was committed.
        """
        self._processor = processor
        self._goal = goal
        self._recorded = merges
        self._label_topic_id = label_topic_id
        self._labels = None if processor.next_label is None else LabelPosition(processor.next_label)
        if goal is not None:
            self._labels = goal.labels
        if goal is not None:
            self._pointer = goal.pointer
            self.committed_offset = goal.next_offset
        self._wanted = wanted
        self._cadence = cadence
        self._saved_at = now
        self._saved_offset = processor.next_offset
        self.phase = Phase.REPLAYING
        self._maybe_end_replay()

    def pause(self, reason: str) -> None:
        """Nothing more is read or published until the partition is assigned again."""
        self.phase = Phase.PAUSED
        self.reason = reason
        self._processor = None

    @property
    def processor(self) -> PartitionProcessor:
        """The processor of a partition that is restored and not paused."""
        assert self._processor is not None, (self.partition, self.phase)
        return self._processor

    @property
    def is_restored(self) -> bool:
        """Whether it has a processor."""
        return self._processor is not None

    @property
    def is_live(self) -> bool:
        """Whether its replay is over, so that it may publish."""
        return self.phase in (Phase.FIRST_COMMIT_DUE, Phase.LIVE)

    @property
    def replay_to(self) -> int:
        """The committed offset the replay must reach; the own offset on a first start."""
        return self.processor.next_offset if self._goal is None else self._goal.next_offset

    @property
    def saved_offset(self) -> int:
        """The offset of the newest snapshot: a restore would begin here."""
        return self._saved_offset

    def replay(self, records: list[Record]) -> list[Record]:
        """Process silently what was decided before; return the records that are new.

        Raises `StateCorrupt` when the replay does not end on the recorded proof,
        or skips the committed offset.
        """
        assert self._goal is not None
        goal = self._goal.next_offset
        cut = next((i for i, record in enumerate(records) if record.offset >= goal), len(records))
        failpoints.hit("replay")
        self.processor.process(records[:cut], self._recorded)
        self.replayed += cut
        if cut < len(records) and self.processor.next_offset != goal:
            raise StateCorrupt(
                f"{self.processor.name}: events below the committed offset {goal} are gone (the replay is at "
                f"{self.processor.next_offset}); their retention was too short. Roll back to a kept checkpoint or "
                "start a new group"
            )
        self._maybe_end_replay()
        return records[cut:]

    def _maybe_end_replay(self) -> None:
        if self._goal is not None:
            if self.processor.next_offset != self._goal.next_offset:
                return
            self._check_proof(self._goal)
        due = self._pointer is None or self.processor.config != self._wanted
        self.phase = Phase.FIRST_COMMIT_DUE if due else Phase.LIVE

    def _check_proof(self, goal: Position) -> None:
        proof = self.processor.proof()
        if proof != goal.proof:
            raise StateCorrupt(
                f"{self.processor.name}: replay to offset {goal.next_offset} gave {proof}, recorded was {goal.proof}. "
                "The events, the snapshot or the program changed. Run the version that wrote the checkpoint, roll back "
                "to a kept checkpoint, or start a new group"
            )

    def first_commit(self, now: float) -> Share:
        """The share that must be committed before the first live decision.

        On a first start it makes the cold or seeded state durable; when settings
        changed it applies them; either leaves a change record. Raises `SettingsError`
        for a change that cannot be made, with the ways out.
        """
        assert self.phase is Phase.FIRST_COMMIT_DUE
        old, new = self.processor.config, self._wanted
        if old != new:
            check_change(old, new)
            self.processor.reconfigure(new)
            self.processor.label_topic_id = self._label_topic_id
        change = change_record(self.processor, None if self._pointer is None else old)
        return replace(self._share((), now, snapshot=True), changes=(change,))

    def process(self, records: list[Record], labels: Sequence[Record] = ()) -> Step:
        """Learn from these labels, before the first observation; decide and learn. `share` publishes what comes out."""
        assert self.phase is Phase.LIVE
        step = self.processor.process(records, [Merge(records[0].offset, labels)] if labels else ())
        if step.merges:
            assert self._labels is not None
            self._labels = replace(self._labels, merges=(*self._labels.merges, *step.merges))
        return step

    def share(self, step: Step, now: float) -> Share:
        """This partition's share of the transaction that publishes the last step.

        The transaction before it must be committed: only then is it known where the newest snapshot is.
        """
        return self._share(step.outputs, now, snapshot=self._cadence.due(self._unsaved(), now - self._saved_at))

    def _unsaved(self) -> int:
        """Events and labels since the newest snapshot."""
        labels = 0 if self._labels is None else self._labels.next_label - self._labels.saved
        return self.processor.next_offset - self._saved_offset + labels

    def checkpoint(self, now: float, *, forced: bool) -> Share | None:
        """A share with a snapshot and nothing else, if there is progress that none covers yet.

        Unless forced, only when the cadence says that it is time.
        """
        if not self.is_live:
            return None
        events = self._unsaved()
        if events == 0 or not (forced or self._cadence.due(events, now - self._saved_at)):
            return None
        return self._share((), now, snapshot=True)

    def _share(self, outputs: Sequence[Output], now: float, *, snapshot: bool) -> Share:
        processor, pointer, keep = self.processor, self._pointer, self._cadence.keep
        if pointer is not None and not snapshot and not self._has_many_merges(pointer):
            position = Position(processor.next_offset, pointer, processor.proof(), self._labels)
            return Share(processor.partition, tuple(outputs), position)
        self._saved_at, self._saved_offset = now, processor.next_offset
        ring_place, after = (0, 0) if pointer is None else ((pointer.ring_place + 1) % keep, pointer.offset)
        share = checkpoint_share(processor, outputs, ring_place, after, keep, self._cadence.archives)
        self._labels = share.position.labels
        return share

    def _has_many_merges(self, pointer: Pointer) -> bool:
        """Whether the merges since the newest snapshot would soon not fit the committed position any more."""
        return self._labels is not None and len(merges_text(self._labels, pointer.next_offset)) > MERGES_MAX

    def committed(self, share: Share, pointer: Pointer) -> None:
        """The transaction with this share is committed; remember where the newest snapshot is."""
        self._pointer = pointer
        self.committed_offset = share.position.next_offset
        self.unreported = self.is_restored  # it may have been paused since
        if self.phase is Phase.FIRST_COMMIT_DUE:
            self.phase = Phase.LIVE
