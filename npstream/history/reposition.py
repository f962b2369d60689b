"""A partition's new position, chosen by hand: planned first, with all that follows, then written in one transaction.

rollback   as it was at a kept checkpoint, an offset or a time; later events are decided again
fresh      a new model, or one from a file, at a place of choice
kept       the model it has, at a later place; the events in between are never learned
recover    the position is computed again after the group's offsets were lost, or the state after all
           checkpoints were
"""

from dataclasses import dataclass, replace

from npstream.codec.changes import Change, encode_change
from npstream.codec.resets import How, Reset, encode_reset
from npstream.errors import StateCorrupt, UsageError
from npstream.history.audit import Difference, compare_on_the_way
from npstream.history.from_start import begin_again, nothing_leads_to, require_proof
from npstream.history.published import decided_below
from npstream.history.rebuild import Past, Walk, cold, kept_at, start_before, walk_to
from npstream.partition import PartitionConfig, PartitionProcessor
from npstream.partition.checkpoint import change_record, checkpoint_share
from npstream.port import Start
from npstream.records import Channel, Position, Share
from npstream.state import is_recreated, processor_of


@dataclass(frozen=True, slots=True)
class Order:
    """What the operator says beside the place: why, when, and how many snapshots are kept in the ring."""

    why: str
    at_ms: int
    keep: int


@dataclass(frozen=True, slots=True)
class Reposition:
    """One partition's new position and state, ready to be committed.

    `committed` is the position it was planned from, None when there was none or it
    could not be read. `replayed` events were processed in silence to get there.
    """

    partition: int
    how: How
    origin: int
    to: int
    replayed: int
    note: str
    committed: Position | None
    share: Share


def plan_rollback(
    past: Past, committed: Position | None, order: Order, checkpoint: int | None, offset: int | None
) -> Reposition:
    """Back to a kept checkpoint, or to any offset that one leads to. Raises `UsageError` when none does."""
    past.check_topic()
    origin = decided_below(past.log, past.partition, committed)
    to = checkpoint if checkpoint is not None else offset
    assert to is not None
    if to > origin:
        raise UsageError(
            f"{past.name}: offset {to} is not decided yet (decided below {origin}); a rollback goes back only"
        )
    if checkpoint is not None:
        walk = Walk(past, processor_of(kept_at(past, checkpoint).snapshot, past.log.topic_id()), ())
    else:
        walk = start_before(past, to)
    began = walk.processor.next_offset
    walk_to(past, walk, to)
    note = f"what was learned from offset {to} on is forgotten"
    return _planned(past, "rollback", walk.processor, origin, to - began, note, committed, order)


def plan_fresh(past: Past, committed: Position | None, order: Order, config: PartitionConfig, to: int) -> Reposition:
    """Start over at an offset with a random start, or with the seed of `past`."""
    origin = decided_below(past.log, past.partition, committed)
    processor = cold(past, config, to)
    note = "everything learned so far is forgotten" + ("" if past.seed is None else "; the model file takes its place")
    return _planned(past, "fresh", processor, origin, 0, note, committed, order)


def plan_kept(past: Past, committed: Position | None, order: Order, to: int) -> Reposition:
    """Go on at a later offset with the model as it is. Raises `UsageError` for an earlier one."""
    origin = decided_below(past.log, past.partition, committed)
    newest = kept_at(past, None)
    if past.is_recreated:
        # The one case in which a model is meant to outlive its topic: the offsets of the old one are given up.
        processor = processor_of(replace(newest.snapshot, next_offset=to))
        note = "the model is kept; the events topic is a new one, read from here on"
        return _planned(past, "kept", processor, origin, 0, note, committed, order)
    if to < origin:
        raise UsageError(
            f"{past.name}: offset {to} lies before what is decided ({origin}); a model cannot learn events twice: "
            "use `npstream rollback`, or leave --keep-model out"
        )
    begin = past.log.ends(Channel.EVENTS, past.partition).begin
    labels_gone = is_recreated(newest.snapshot.meta["label_topic_id"], past.label_topic_id)
    if newest.next_offset >= begin and not (labels_gone and newest.next_offset < origin):
        walk = start_before(past, origin)
        began = walk.processor.next_offset
        walk_to(past, walk, origin)
        processor, replayed, lost = walk.processor, origin - began, 0
    else:
        # The events that lead from the newest checkpoint to the position, or their labels, are gone: the model
        # misses them.
        processor, replayed = processor_of(newest.snapshot, past.log.topic_id()), 0
        lost = origin - newest.next_offset
    processor.skip_to(to)
    note = f"the model is kept; {to - origin} offsets are skipped: never decided, never learned"
    gone = "labels" if labels_gone else "events"
    note += f"; it also misses {lost} offsets since its checkpoint, whose {gone} are gone" if lost else ""
    return _planned(past, "kept", processor, origin, replayed, note, committed, order)


def plan_recovery(
    past: Past, committed: Position | None, order: Order, assumed: PartitionConfig, start: Start
) -> Reposition | None:
    """Bring back a lost position, or a state whose checkpoints are all lost; None when neither is.

    `assumed` and `start` are how the partition began, where that is not on record.
    Raises `StateCorrupt` when the result is not what was committed or published,
    `UsageError` when it cannot be recomputed.
    """
    past.check_topic()
    if committed is None:
        return _recover_position(past, order, assumed, start)
    kept = past.history.at_or_before(committed.next_offset)
    if kept is not None and (committed.labels is None or kept.next_offset == committed.pointer.next_offset):
        return None  # a worker finds it; with labels only the newest, whose merges are in the position
    return _recover_state(past, committed, order, assumed, start)


def _recover_position(past: Past, order: Order, assumed: PartitionConfig, start: Start) -> Reposition | None:
    """Everything on the way is compared with the outputs that are there; None when nothing ever was."""
    newest = past.history.newest
    decided = decided_below(past.log, past.partition, None)
    goal = max(decided, 0 if newest is None else newest.next_offset)
    if newest is None and decided == 0:
        return None
    end = past.log.ends(Channel.EVENTS, past.partition).stable
    if goal > end:
        raise StateCorrupt(
            f"{past.name}: something was published for offset {goal - 1}, the events end at {end}: the topic was "
            "deleted and created again, or the outputs are another group's. Choose the place by `npstream reset`"
        )
    walk, birth = _towards(past, goal, assumed, start)
    began = walk.processor.next_offset
    compared = compare_on_the_way(past, walk, began, goal)
    if compared.difference is not None:
        raise StateCorrupt(_cannot_recover(past, compared.difference))
    if walk.halted is not None:
        raise walk.halted
    note = f"{compared.equal} published records since offset {began} were reproduced on the way"
    return _planned(past, "recover", walk.processor, goal, goal - began, note, None, order, birth)


def _recover_state(past: Past, committed: Position, order: Order, assumed: PartitionConfig, start: Start) -> Reposition:
    """The state that the committed position proves, from the partition's first event."""
    goal = committed.next_offset
    walk, birth = _towards(past, goal, assumed, start)
    began = walk.processor.next_offset
    require_proof(past, walk, _towards(past, goal, assumed, start)[0], committed)
    note = (
        f"no checkpoint is left: the state was rebuilt from the first event (offset {began}), and its outputs and "
        "digest are those of the committed position"
    )
    return _planned(past, "recover", walk.processor, goal, goal - began, note, committed, order, birth)


def _towards(past: Past, goal: int, assumed: PartitionConfig, start: Start) -> tuple[Walk, Change | None]:
    """A walk that can reach the goal, and the record of its beginning when that must be written again."""
    if not nothing_leads_to(past):
        return start_before(past, goal), None
    walk = begin_again(past, assumed, start, goal)
    return walk, Change(walk.processor.next_offset, {}, assumed.to_dict())


def _cannot_recover(past: Past, found: Difference) -> str:
    return (
        f"{past.name}: the {found.channel.name.lower()} record for input offset {found.offset} {found.what}, so the "
        "position cannot be computed from what was published: use the settings and the version that published it, "
        "or give the group up and start another"
    )


def _planned(
    past: Past,
    how: How,
    processor: PartitionProcessor,
    origin: int,
    replayed: int,
    note: str,
    committed: Position | None,
    order: Order,
    birth: Change | None = None,
) -> Reposition:
    newest = past.history.newest
    processor.topic_id = past.log.topic_id()
    processor.archive.adopt(past.history.archives)
    _place_labels(past, processor)
    reset = Reset(len(past.history.resets), origin, processor.next_offset, how, order.at_ms, order.why)
    records = [encode_reset(reset, *processor.address)]
    # Where it stands it may have been promoted; what is on record of later offsets counts no more.
    here = [change for change in past.history.changes if change.promoted and change.offset == processor.next_offset]
    records += [encode_change(change, *processor.address) for change in here if how not in ("fresh", "kept")]
    if birth is not None:
        records.append(encode_change(birth, *processor.address))
    elif how == "fresh":
        records.append(change_record(processor, None))
    elif how != "kept":
        old = processor.config if newest is None else PartitionConfig.from_dict(newest.snapshot.params)
        records.append(change_record(processor, old))
    ring_place = 0 if newest is None else (_newest_place(past, committed) + 1) % order.keep
    # Where the position is lost, so is the place of the newest checkpoint: segments are then read from the beginning.
    share = checkpoint_share(processor, (), ring_place, after=0, keep=order.keep)
    share = replace(share, changes=tuple(records))
    return Reposition(past.partition, how, origin, processor.next_offset, replayed, note, committed, share)


def _place_labels(past: Past, processor: PartitionProcessor) -> None:
    """Where the labels of the processor's offset are gone, go on with those that are there."""
    topic = processor.config.label_topic
    if topic is None or topic.name != past.label_topic:
        return
    ends, now = past.log.ends(Channel.LABELS, past.partition), past.label_topic_id
    if is_recreated(processor.label_topic_id, now) or (
        processor.next_label and not ends.begin <= processor.next_label <= ends.stable
    ):
        processor.forget_label_offset()
    processor.label_topic_id = now


def _newest_place(past: Past, committed: Position | None) -> int:
    """The ring place written last, which must not be overwritten before the new one is there."""
    if committed is not None:
        return committed.pointer.ring_place
    return max(past.history.snapshots, key=lambda kept: kept.offset).snapshot.ring_place
