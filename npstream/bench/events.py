"""Events to measure with: eight features, a label, an id; as JSON and as raw float32."""

from collections.abc import Sequence

import numpy as np
import orjson

from npstream.codec.decoder import EventConfig
from npstream.codec.event import PlainFormat
from npstream.model import Params
from npstream.partition import PartitionConfig, PartitionProcessor
from npstream.records import Headers, Record

D_FEATURES = 8
D_HIDDEN = 100
FIRST_MS = 1_700_000_000_000


def bench_config(format_: PlainFormat) -> PartitionConfig:
    """The classifier that is measured: it learns from every event."""
    params = Params(d=D_FEATURES, D=D_HIDDEN, tau=0.05)
    return PartitionConfig(params=params, events=EventConfig(d=D_FEATURES, format=format_))


def bench_events(count: int, format_: PlainFormat, seed: int = 0) -> list[tuple[bytes, Headers]]:
    """Values and headers of `count` events: targets lie shifted, a quarter of all."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(count) < 0.25, 1, -1)
    x = (rng.normal(size=(count, D_FEATURES)) + (y > 0)[:, None]).round(4)
    rows = zip(x.tolist(), y.tolist(), strict=True)
    if format_ == "json":
        return [(orjson.dumps({"id": f"event-{i}", "x": row, "y": label}), ()) for i, (row, label) in enumerate(rows)]
    return [
        (np.array(row, "<f4").tobytes(), [("id", b"event-%d" % i), ("y", b"%d" % label)])
        for i, (row, label) in enumerate(rows)
    ]


def sample_decisions(events: Sequence[tuple[bytes, Headers]], config: PartitionConfig) -> list[bytes]:
    """The values a worker would publish for these events, for somebody who must write as much without thinking."""
    processor = PartitionProcessor.cold(config, "bench", "events", 0, 0, None)
    records = [Record(i, FIRST_MS + i, b"%d" % i, value, headers) for i, (value, headers) in enumerate(events)]
    return [output.value or b"" for output in processor.process(records).outputs]
