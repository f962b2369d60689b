"""Finished trials on disk, so that an interrupted search goes on where it stopped.

One CSV, one line a trial, written through as each one ends. `key` is a digest of
all that determines a trial: settings, data, algorithm. A torn last line is dropped.
"""

import csv
import io
import os
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from npstream.errors import UsageError
from npstream.model import ALGORITHM
from npstream.partition import PartitionConfig
from npstream.replay.source import ArraySource, RecordSource


class Score(NamedTuple):
    """What one trial found. Lower `np_score` is better; a rate is NaN without labelled events of its class."""

    np_score: float
    fpr: float
    tpr: float
    events: int
    digest: str


_COLUMNS = ("key", "preset", "D", "g", "eta", "tau", *Score._fields)


def data_digest(source: ArraySource | RecordSource) -> str:
    """Sixteen hex digits of everything a source hands out."""
    digest = blake2b(digest_size=8)
    if isinstance(source, ArraySource):
        digest.update(orjson.dumps([source.x.shape, source.partitions, source.delay]))
        digest.update(np.ascontiguousarray(source.x, "<f4").tobytes())
        digest.update(source.y.tobytes())
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


class Trials:
    """The trials of one file. Reads what is there when built; every `keep` is on disk when it returns."""

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        """Open or create `path`; `fresh` forgets what it holds. Raises `UsageError` when it cannot be used."""
        self._path = path
        self._scores: dict[str, Score] = {}
        self._lines: list[str] = []
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not fresh:
                self._read()
            self._rewrite()
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}; choose another place with --out") from None

    def find(self, key: str) -> Score | None:
        """The score of a finished trial."""
        return self._scores.get(key)

    def keep(self, key: str, config: PartitionConfig, score: Score) -> None:
        """Remember a finished trial."""
        params = config.params
        settings: dict[str, Any] = {name: getattr(params, name) for name in ("preset", "D", "g", "eta", "tau")}
        with self._path.open("a", newline="") as file:
            file.write(_line({"key": key, **settings, **score._asdict()}))
            file.flush()
            os.fsync(file.fileno())
        self._scores[key] = score

    def _read(self) -> None:
        text = self._path.read_text(errors="replace")
        whole = text[: text.rfind("\n") + 1]
        reader = csv.DictReader(io.StringIO(whole))
        if reader.fieldnames is not None and tuple(reader.fieldnames) != _COLUMNS:
            raise UsageError(f"{self._path}: is not a list of trials of this version; start over with --fresh")
        for row in reader:
            score = _score_of(row)
            if score is not None:
                self._scores[row["key"]] = score
                self._lines.append(_line(row))

    def _rewrite(self) -> None:
        beside = self._path.with_name(f"{self._path.name}.part")
        beside.write_text(",".join(_COLUMNS) + "\n" + "".join(self._lines))
        beside.replace(self._path)


def _score_of(row: Mapping[str, str]) -> Score | None:
    """None when the line is torn."""
    try:
        fpr, tpr = float(row["fpr"]), float(row["tpr"])
        return Score(float(row["np_score"]), fpr, tpr, int(row["events"]), row["digest"])
    except (TypeError, ValueError):
        return None


def _line(row: Mapping[str, Any]) -> str:
    buffer = io.StringIO()
    csv.DictWriter(buffer, _COLUMNS, lineterminator="\n", extrasaction="ignore").writerow(row)
    return buffer.getvalue()
