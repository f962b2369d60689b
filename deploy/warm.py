"""Compile all that a worker runs, into the cache that NUMBA_CACHE_DIR names.

Run while the image is built. A worker of that image then loads machine code
instead of making it. Small models are enough: machine code depends on the types
of arrays, not on their sizes.
"""

import numpy as np

from npstream.codec.decoder import EventConfig, EventDecoder
from npstream.codec.features import Feature
from npstream.model import Model, Params
from npstream.partition import PartitionConfig
from npstream.worker.warm import warm_up

MAPPED = EventConfig(
    d=4,
    mapping=(
        Feature(name="a", kind="number", path="a", scale="log"),
        Feature(name="b", kind="category", path="b", buckets=64),
        Feature(name="c", kind="time", path="c", cycle="day"),
    ),
)
MODELS = (Params(d=2), Params(d=2, preset="paper"), Params(d=2, one_class=True), Params(preset="external"))


def warm() -> None:
    """Do with every kind of model what a worker does before it joins its group, and what `explain` does."""
    for params in MODELS:
        events = EventConfig(d=params.d, external=params.preset == "external")
        warm_up(PartitionConfig(params=params, events=events))
        if params.preset != "external":
            Model.create(params).contributions(np.zeros(params.d))
    EventDecoder(MAPPED).warm_up()


if __name__ == "__main__":
    warm()
