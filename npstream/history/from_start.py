"""A partition's state from its first event on, for when no checkpoint is left.

The record of where it began and of every change of settings went with the
checkpoints. What is assumed instead is proven afterwards: by the chain and the
digest in the committed position, or by what was published.
"""

from npstream.errors import StateCorrupt, UsageError
from npstream.history.audit import compare_on_the_way
from npstream.history.published import oldest_event_offset
from npstream.history.rebuild import Past, Walk, cold, usable_snapshots, walk_to
from npstream.partition import PartitionConfig
from npstream.port import Start
from npstream.records import Channel, Position


def nothing_leads_to(past: Past) -> bool:
    """Whether neither a usable checkpoint nor the record of the partition's beginning is left."""
    return past.history.birth is None and not usable_snapshots(past)


def begin_again(past: Past, assumed: PartitionConfig, start: Start, goal: int) -> Walk:
    """A walk from the partition's first event, with the settings given. Raises `UsageError` when that event is gone."""
    begin = past.log.ends(Channel.EVENTS, past.partition).begin
    first = oldest_event_offset(past.log, past.partition)
    if goal < begin or (first is not None and first < begin):
        raise UsageError(
            f"{past.name}: no checkpoint is left and the first events are gone: events are kept from offset {begin} "
            f"on, those before it were learned from. The state cannot be rebuilt. {ways_out(past, goal)}"
        )
    if start == "latest":  # nobody knows any more where that was; the first decision is the nearest guess
        began = begin if first is None else first
    else:
        began = past.log.offset_at(past.partition, start)
    return Walk(past, cold(past, assumed, min(began, goal)), past.history.changes)


def require_proof(past: Past, walk: Walk, again: Walk, committed: Position) -> None:
    """Walk to the committed position and compare. Raises `StateCorrupt` when it is not what was committed.

    `again` is the same walk a second time, to find the first difference.
    """
    began = walk.processor.next_offset
    walk_to(past, walk, committed.next_offset)
    if walk.processor.proof() == committed.proof:
        return
    first = oldest_event_offset(past.log, past.partition)
    compared = compare_on_the_way(past, again, max(began, first or 0), committed.next_offset)
    found = compared.difference
    where = (
        "what was published is reproduced, the state is not"
        if found is None
        else f"the {found.channel.name.lower()} record for input offset {found.offset} is the first that differs"
    )
    raise StateCorrupt(
        f"{past.name}: no checkpoint is left, and from offset {began} on these settings do not lead to the committed "
        f"state at offset {committed.next_offset}: {where}. Use the settings, the model file (start_from) and the "
        "version that decided. If settings changed on the way or the partition was moved by hand, the state cannot be "
        f"rebuilt: the records of that were lost with the checkpoints. {ways_out(past, committed.next_offset)}"
    )


def ways_out(past: Past, goal: int) -> str:
    """What works without the old state."""
    to = max(goal, past.log.ends(Channel.EVENTS, past.partition).begin)
    return (
        f"What works: `npstream reset --to {to}` goes on with a new model; or `npstream train`, which learns from the "
        f"events that are kept, then `npstream reset --to {to} --start-from MODEL` with the file it wrote"
    )
