"""A partition's challenger as its champion: planned first, with the rates of both, then written in one transaction."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from npstream.errors import StateCorrupt, UsageError
from npstream.history.rebuild import Past, start_before, walk_to
from npstream.partition import PartitionConfig
from npstream.partition.checkpoint import checkpoint_share, promotion_record
from npstream.records import AlarmRates, ChallengerRates, Position, Share


@dataclass(frozen=True, slots=True)
class Promotion:
    """One partition's promotion before its event at `offset`, ready to be committed.

    `published` and `challenger` are the rates of both, `replayed` events were processed in silence to get there.
    """

    partition: int
    offset: int
    replayed: int
    published: AlarmRates
    challenger: ChallengerRates
    warming_up: bool
    committed: Position
    share: Share


def plan_promotion(past: Past, committed: Position | None, keep: int, wanted: PartitionConfig) -> Promotion | None:
    """Promote where the partition is; None where it has not begun, or has been promoted to these settings.

    `wanted` are the settings that workers will start with, `keep` is the size of the ring of snapshots. Raises
    `UsageError` where there is no such challenger, `StateCorrupt` when the state is not what was committed.
    """
    if committed is None:
        return None
    past.check_topic()
    walk = start_before(past, committed.next_offset)
    began = walk.processor.next_offset
    walk_to(past, walk, committed.next_offset)
    processor = walk.processor
    if processor.proof() != committed.proof:
        raise StateCorrupt(
            f"{past.name}: recomputed to offset {committed.next_offset} the state is not what was committed: run "
            "`npstream audit`, which says what differs"
        )
    old, challenger = processor.config, processor.challenger
    if challenger is None:
        if not [*_differences(old, wanted)]:
            return None
        raise UsageError(f"{past.name}: has no challenger: give it one (`challenger` in the settings) and let it learn")
    differing = [*_differences(old.promoted, wanted)]
    if differing:
        raise UsageError(
            f"{past.name}: the settings are not those of the challenger: {'; '.join(differing)}. Put what `challenger` "
            "says into `model` (and events.features), take `challenger` out, and run it again with this file"
        )
    if challenger.began == processor.next_offset:
        raise UsageError(f"{past.name}: its challenger has met no event yet: let it learn first")
    rates, published, warming_up = challenger.rates(), processor.rates(), challenger.model.warming_up
    processor.promote(old.promoted)
    processor.topic_id = past.log.topic_id()
    processor.archive.adopt(past.history.archives)
    pointer = committed.pointer
    share = checkpoint_share(processor, (), (pointer.ring_place + 1) % keep, pointer.offset, keep)
    share = replace(share, changes=(promotion_record(processor, old),))
    offset = committed.next_offset
    return Promotion(past.partition, offset, offset - began, published, rates, warming_up, committed, share)


def _differences(has: PartitionConfig, wanted: PartitionConfig) -> Iterator[str]:
    """What of model and features is other than in the settings."""
    for rule in fields(has.params):
        theirs, ours = getattr(has.params, rule.name), getattr(wanted.params, rule.name)
        if theirs != ours:
            yield f"model.{rule.name} is {ours!r}, the challenger has {theirs!r}"
    if has.events.contract != wanted.events.contract:
        yield "events.features are others than the challenger reads"
