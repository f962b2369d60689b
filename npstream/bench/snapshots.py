"""How large a partition's state is, and how long a checkpoint of it and its restore take, without broker or disk."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from npstream.bench.events import FIRST_MS
from npstream.bench.kernel import Clock, clouds, fastest
from npstream.codec.decoder import EventConfig
from npstream.model import Params
from npstream.partition import PartitionConfig, PartitionProcessor
from npstream.partition.checkpoint import checkpoint_share
from npstream.records import KeyValue, Record
from npstream.state import processor_of, snapshot_of

FEATURES = (8, 29, 120)


def bench_snapshots(
    *, events: int = 2_000, rounds: int = 100, clock: Clock = time.perf_counter
) -> list[dict[str, Any]]:
    """One row per number of features: bytes of the model and of its checkpoint's records, microseconds to make them
    and to bring them in again. The best of `rounds` counts.

    Beside the model a checkpoint holds the decisions of a block that is not full yet: 208 of them here.
    """
    return [_row(d, events, rounds, clock) for d in FEATURES]


def _row(d: int, events: int, rounds: int, clock: Clock) -> dict[str, Any]:
    processor = _learned(d, events)
    chunks = _checkpoint(processor)
    work: list[Callable[[], object]] = [lambda: _checkpoint(processor), lambda: _restored(chunks)]
    make, restore = (1e6 * seconds for seconds in fastest(work, rounds, clock))
    return {
        "d": d,
        "D": processor.config.params.D,
        "model_bytes": len(processor.model.to_bytes()),
        "checkpoint_bytes": sum(len(chunk.key) + len(chunk.value or b"") for chunk in chunks),
        "checkpoint_us": round(make, 1),
        "restore_us": round(restore, 1),
    }


def _learned(d: int, events: int) -> PartitionProcessor:
    config = PartitionConfig(params=Params(d=d, D=100, tau=0.05), events=EventConfig(d=d))
    processor = PartitionProcessor.cold(config, "npstream-bench", "events", 0, 0, None)
    x, y = clouds(events, d)
    rows = zip(x.round(4).tolist(), y.tolist(), strict=True)
    values = [orjson.dumps({"x": row, "y": label}) for row, label in rows]
    processor.process([Record(i, FIRST_MS + i, None, value, ()) for i, value in enumerate(values)])
    return processor


def _checkpoint(processor: PartitionProcessor) -> list[KeyValue]:
    """As a worker makes it, up to the records that it would send."""
    share = checkpoint_share(processor, (), ring_place=0, after=0, keep=1)
    return [KeyValue(at, *chunk) for at, chunk in enumerate(share.chunks)]


def _restored(chunks: Sequence[KeyValue]) -> PartitionProcessor:
    """As a worker brings it in, from the records that it has read."""
    snapshot, _ = snapshot_of(chunks)
    return processor_of(snapshot)
