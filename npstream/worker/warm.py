"""What a process does once before its first event."""

import time

import numpy as np

from npstream.codec.decoder import EventDecoder
from npstream.model import Model, Op, Operations
from npstream.partition import PartitionConfig
from npstream.worker.collector import calm_collector


def warm_up(config: PartitionConfig) -> float:
    """Compile the kernel and the reader of events before a partition is owned; return the seconds it took.

    What is loaded by then stays, so the garbage collector is made to leave it alone.
    """
    started = time.monotonic()
    model = Model.create(config.params)
    code = np.array([Op.SCORE, Op.LEARN, Op.SCORE_LEARN], np.int8)
    x = np.zeros((3, config.params.d), np.float32)
    y, slot = np.array([0, -1, 1], np.int8), np.array([0, 0, -1], np.int32)
    model.run(Operations(code, x, np.zeros(3), y, slot), np.zeros(1, np.int8))
    EventDecoder(config.events).warm_up()
    calm_collector()
    return time.monotonic() - started
