"""Learning from history: one model from all of it, and what starting from that model is worth."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from npstream.errors import plural
from npstream.model import Model
from npstream.partition import PartitionConfig, PartitionProcessor
from npstream.replay.merged import MergedRun
from npstream.replay.replay import FILE_TOPIC, Result, adapt, replay
from npstream.replay.source import ArraySource, Source
from npstream.replay.split import as_one


def train(
    config: PartitionConfig,
    source: Source,
    *,
    group: str = "train",
    progress: Callable[[int], None] = lambda records: None,
) -> PartitionProcessor:
    """One processor after everything in the source, its partitions taken as one; frozen settings do not stop it.

    Raises `StateCorrupt` when too many events are bad.
    """
    merged = as_one(source)
    config = config.with_params(replace(config.params, learning=True))
    ((partition, (begin, _)),) = merged.ranges.items()
    topic = source.topic or FILE_TOPIC
    processor = PartitionProcessor.cold(adapt(config, source), group, topic, partition, begin, None)
    run = MergedRun(processor, merged.merger(partition))
    for (batch,) in merged.rounds():
        step = run.process(batch.records)
        if step.halted is not None:
            raise step.halted
        progress(len(batch.records))
    return processor


def compare(
    config: PartitionConfig, source: Source, model: Model, partitions: Sequence[int], progress: Callable[[int], None]
) -> list[tuple[str, Result]]:
    """Events that `model` has not seen, each time by random starts and by starts from it; named results.

    A data set is spread over each of these numbers of partitions; a topic has its own.
    """
    counts = partitions if isinstance(source, ArraySource) else [len(source.ranges)]
    found = []
    for count in counts:
        spread = replace(source, partitions=count) if isinstance(source, ArraySource) else source
        models = plural(count, "model")
        found.append((f"{models}, cold", replay(config, spread, progress=progress)))
        found.append((f"{models}, warm", replay(config, spread, seed=model, progress=progress)))
    return found
