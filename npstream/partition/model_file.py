"""Model files, which end in .npstream: what `train` and `inspect --export` write for `start_from`."""

from npstream.codec.snapshot import decode_snapshot, encode_snapshot
from npstream.model import Model
from npstream.partition.config import PartitionConfig
from npstream.partition.processor import PartitionProcessor


def model_file(processor: PartitionProcessor, config: PartitionConfig) -> bytes:
    """A snapshot with the model alone: no waiting observations, no ids, no counters, nothing of single events.

    `config` are the rules to name in it.
    """
    model = processor.model.with_params(config.params)
    bare = PartitionProcessor(config, *processor.address, model, processor.next_offset)
    return encode_snapshot(bare.snapshot())


def model_of(data: bytes) -> Model:
    """The model in the bytes of a model file. Raises `StateCorrupt`."""
    return PartitionProcessor.from_snapshot(decode_snapshot(data)).model
