"""What a process does once before its first event."""

import gc
import time

import numpy as np

from npstream.codec.decoder import EventDecoder
from npstream.codec.digest import keys_of
from npstream.model import Model, Op, Operations
from npstream.partition import PartitionConfig
from npstream.partition.counters import JOINING
from npstream.partition.operations import columns_of, new_state, operations_of, rules_of
from npstream.partition.pending import Pending, Widths
from npstream.partition.timeline import Timeline

_YOUNG_MAX = 50_000
"""New objects before the collector looks: some batches. The default, 700, looks a dozen times per batch for nothing."""


def warm_up(config: PartitionConfig) -> float:
    """Compile the kernel and the reader of events before a partition is owned; return the seconds it took.

    What is loaded by then stays, so the garbage collector is made to leave it alone.
    """
    started = time.monotonic()
    model = Model.create(config.params)
    code = np.array([Op.SCORE, Op.LEARN, Op.SCORE_LEARN], np.int8)
    x = np.zeros((3, config.params.d), np.float32)
    y, slot = np.array([0, -1, 1], np.int8), np.array([0, 0, -1], np.int32)
    operations = Operations(code, x, np.zeros(3), y, slot)
    outcome = model.run(operations, np.zeros(1, np.int8))
    decoder = EventDecoder(config.events)
    decoder.warm_up()
    _join_nothing(config, decoder)
    timeline = Timeline()
    timeline.count(np.zeros(3, np.int64), operations, outcome)
    Timeline.load(timeline.dump())
    _calm_collector()
    return time.monotonic() - started


def _join_nothing(config: PartitionConfig, decoder: EventDecoder) -> None:
    """Have the compiled code ready that joins labels, and the one that makes keys of ids."""
    keys_of(["warm"])
    nothing = columns_of((), decoder.decode(()), "", 0)
    counts = np.zeros(len(JOINING), np.int64)
    list(
        operations_of(nothing, Pending(config.labels, Widths.of(config)), rules_of(config.labels), new_state(), counts)
    )


def _calm_collector() -> None:
    """Make the collector ignore what is loaded by now, and look at the rest less often.

    What was loaded stays: walking the compiler's objects would cost a microsecond
    per event, and looking at the objects of each batch another.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_MAX, 10, 10)
