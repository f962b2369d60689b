"""One trial of a search as a job, and its row in the file of trials."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import orjson

from npstream.jobs import ResultRow
from npstream.model import ALGORITHM
from npstream.partition import PartitionConfig
from npstream.replay.replay import replay
from npstream.replay.source import ArraySource, RecordSource

Data = ArraySource | RecordSource


class Score(NamedTuple):
    """What one trial found. Lower `np_score` is better; a rate is NaN without labelled events of its class."""

    np_score: float
    fpr: float
    tpr: float
    events: int
    digest: str


_SETTINGS = ("preset", "D", "g", "eta", "tau")
COLUMNS = (*_SETTINGS, *Score._fields)
"""Of the file of trials, after the key."""


def data_digest(source: Data) -> str:
    """Sixteen hex digits of everything a source hands out."""
    digest = blake2b(digest_size=8)
    if isinstance(source, ArraySource):
        digest.update(orjson.dumps([source.x.shape, source.partitions, source.delay]))
        digest.update(np.ascontiguousarray(source.x, "<f4").tobytes())
        digest.update(source.y.tobytes())
        digest.update(orjson.dumps(None if source.ids is None else [*source.ids]))
    else:
        for partition, records in source.records.items():
            digest.update(b"%d:%d;" % (partition, len(records)))
            for record in records:
                digest.update(repr(tuple(record)).encode())
    return digest.hexdigest()


def trial_key(config: PartitionConfig, data: str) -> str:
    """Sixteen hex digits that change with any setting, with the data and with the algorithm."""
    text = orjson.dumps([ALGORITHM, data, config.to_dict()], option=orjson.OPT_SORT_KEYS)
    return blake2b(text, digest_size=8).hexdigest()


_data: list[Data] = []


def load_data(data: Data) -> None:
    """Once in each process that runs trials."""
    _data[:] = [data]


@dataclass(frozen=True, slots=True)
class TrialJob:
    """A replay of the data under one set of rules."""

    config: PartitionConfig
    key: str

    def run(self) -> list[ResultRow]:
        """One row: the settings that are searched over, and the score."""
        params = self.config.params
        result = replay(self.config, _data[0])
        rates = result.rates
        score = Score(rates.np_score(params.tau), rates.fpr, rates.tpr, result.events, result.digest)
        return [{**{name: getattr(params, name) for name in _SETTINGS}, **score._asdict()}]


def score_of(row: Mapping[str, str]) -> Score:
    """The score of a row that was read back."""
    fpr, tpr = float(row["fpr"]), float(row["tpr"])
    return Score(float(row["np_score"]), fpr, tpr, int(row["events"]), row["digest"])
