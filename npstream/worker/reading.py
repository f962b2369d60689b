"""What an observer is told of one partition, taken between two events."""

from npstream.observe import Reading
from npstream.worker.partition_task import PartitionTask


def reading_of(task: PartitionTask) -> Reading:
    """The partition as it stands now, as a value that does not change with it."""
    processor = task.processor
    model, params = processor.model, processor.config.params
    return Reading(
        partition=task.partition,
        live=task.live,
        next_offset=processor.next_offset,
        replay_to=task.replay_to,
        saved_offset=task.saved_offset,
        counts=processor.tally.to_dict(),
        preset=params.preset,
        learning=params.learning,
        d=params.d,
        features=processor.config.events.features,
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
        pending=len(processor.pending),
        warming_up=model.warming_up,
    )
