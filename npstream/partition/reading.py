"""A partition as a value for whoever shows it: a worker's page and metrics, and the commands that look from outside."""

from npstream.partition.processor import PartitionProcessor
from npstream.records import Phase, Reading


def reading_of(processor: PartitionProcessor, phase: Phase, replay_to: int, saved_offset: int) -> Reading:
    """The partition as it is between two events, as a value that does not change with it."""
    model, params = processor.model, processor.config.params
    return Reading(
        partition=processor.partition,
        phase=phase,
        next_offset=processor.next_offset,
        replay_to=replay_to,
        saved_offset=saved_offset,
        counts=processor.tally.to_dict(),
        bad_events=dict(processor.bad_events),
        preset=params.preset,
        control=params.control,
        learning=params.learning,
        d=params.d,
        features=processor.config.events.columns,
        tau=params.tau,
        t=model.t,
        negatives=model.negatives,
        positives=model.positives,
        false_alarms=model.false_alarms,
        detections=model.detections,
        threshold=model.threshold,
        gamma=model.gamma,
        budget_left=model.budget_left,
        outstanding=model.outstanding,
        pending=processor.pending.waiting,
        correctable=processor.pending.labelled,
        warming_up=model.warming_up,
        warmup=model.warmup,
        next_label=processor.next_label,
        sample=processor.review.labels(),
        rates=processor.rates(),
        tiers=model.tiers,
        challenger=None if processor.challenger is None else processor.challenger.rates(),
        timeline=processor.timeline.copy(),
    )
