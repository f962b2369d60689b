"""Small data sets and rules for the replay tests."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from npstream.codec.decoder import EventConfig
from npstream.model import Params
from npstream.partition import LabelConfig, PartitionConfig
from npstream.partition.merges import Merger
from npstream.records import Batch, Record
from npstream.replay.source import Source

Rows = tuple[npt.NDArray[np.float32], npt.NDArray[np.int8]]


def rows(n: int, d: int = 3, seed: int = 0) -> Rows:
    """Two overlapping clouds, three negatives to a target."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.25, 1, -1).astype(np.int8)
    return (rng.normal(size=(n, d)) + 1.5 * (y > 0)[:, None]).astype(np.float32), y


def write_npz(path: Path, n: int = 600, d: int = 3, seed: int = 0) -> Path:
    """A data set as an archive."""
    x, y = rows(n, d, seed)
    np.savez(path, X=x, y=y)
    return path


def config(d: int = 3, buffer_max: int = 500, **params: Any) -> PartitionConfig:
    """Small rules; `params` are fields of `Params`."""
    return PartitionConfig(
        params=Params(**{"d": d, "D": 8, "tau": 0.1, **params}),
        events=EventConfig(d=d),
        labels=LabelConfig(buffer_max=buffer_max),
    )


def event_lines(n: int, d: int = 3, seed: int = 0) -> list[bytes]:
    """Events as JSON: every other one without its label, which comes ten events later."""
    x, y = rows(n, d, seed)
    lines = []
    for i in range(n + 10):
        if i < n:
            event = {"id": f"e{i}", "x": [round(float(v), 4) for v in x[i]]}
            lines.append(event if i % 2 else {**event, "y": int(y[i])})
        if i >= 10 and (i - 10) % 2:
            lines.append({"id": f"e{i - 10}", "y": int(y[i - 10])})
    return [orjson.dumps(line) for line in lines]


def late_lines(n: int, delay: int, d: int = 3) -> list[bytes]:
    """Events as JSON without labels, which all come `delay` events later."""
    x, y = rows(n, d)
    lines: list[dict[str, Any]] = []
    for i in range(n + delay):
        if i < n:
            lines.append({"id": f"e{i}", "x": [round(float(v), 4) for v in x[i]]})
        if i >= delay:
            lines.append({"id": f"e{i - delay}", "y": int(y[i - delay])})
    return [orjson.dumps(line) for line in lines]


def write_lines(path: Path, lines: list[bytes]) -> Path:
    """A JSONL file."""
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def records(lines: list[bytes], first: int = 0) -> list[Record]:
    """The same events as a log would hold them, a millisecond apart."""
    return [Record(first + i, 1000 + i, b"k%d" % i, line, ()) for i, line in enumerate(lines)]


@dataclass(frozen=True, slots=True)
class Rebatched:
    """Another source in batches of `size`."""

    source: Source
    size: int

    @property
    def format(self) -> Any:
        return self.source.format

    @property
    def topic(self) -> str | None:
        return self.source.topic

    @property
    def ranges(self) -> Any:
        return self.source.ranges

    def merger(self, partition: int) -> Merger:
        return self.source.merger(partition)

    def rounds(self) -> Iterator[list[Batch]]:
        whole: dict[int, list[Record]] = {}
        for batches in self.source.rounds():
            for batch in batches:
                whole.setdefault(batch.partition, []).extend(batch.records)
        for partition, found in whole.items():
            for at in range(0, len(found), self.size):
                yield [Batch(partition, found[at : at + self.size])]


def tau(using: PartitionConfig, value: float) -> PartitionConfig:
    """The same rules for another rate."""
    return using.with_params(replace(using.params, tau=value))
