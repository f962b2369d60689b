"""Categories and missing numbers as inputs of the model, compared with what they replace.

Categories: sets that come with one-hot columns, as they are and folded back
(`npstream.study.folding`). Missing numbers: 5% and 30% deleted, completely at random
or twice as often from targets (`npstream.study.gaps`), then handed over as
missing, or replaced by the mean so far, with and without a flag beside it. Order and
protocol are those of the stream comparison.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from npstream.arrays import Features, Signs
from npstream.jobs import ResultRow
from npstream.model import Model, Outcome, Params
from npstream.study.datasets import DatasetSource, head, permuted
from npstream.study.folding import BUCKETS, Folded, fold
from npstream.study.gaps import delete, fill, fill_and_flag
from npstream.study.input_tables import FLAG, FOLDED, MEAN, MISSING, ONE_HOT, SETS, report
from npstream.study.results import FIGURES, digest, stream_figures
from npstream.study.streams import known_order
from npstream.study.study import Study

TAUS = (0.01, 0.1)
SHARES = (0.05, 0.3)
FACTORS = (1, 2)
_SETTING = ("set", "form", "deleted", "target_factor", "tau", "seed", "numbers", "values", "columns")
COLUMNS = (*_SETTING, *FIGURES, "us_per_event")
# Enough to have all machine code loaded before the clock starts, and no more.
_WARM_ROWS = 100


@dataclass(frozen=True, slots=True)
class InputTask:
    """The default classifier over one stream in one form."""

    source: DatasetSource
    name: str
    data: str
    rows: int | None
    ordered: bool
    form: str
    share: float
    factor: int
    tau: float
    seed: int

    @property
    def key(self) -> str:
        form = [self.form, self.share, self.factor]
        order = [self.data, self.rows, self.ordered, self.seed]
        # The kinds of the columns follow from the data; all else of the model is the same in every form.
        model = Params(d=1, tau=self.tau, seed=self.seed).fingerprint()
        return digest({"study": "inputs", "order": order, "form": form, "cells": BUCKETS, "model": model})

    def run(self) -> list[ResultRow]:
        whole = self.source.load(self.name)
        folded = Folded(whole.x, (0,) * whole.dims, ()) if self.form == ONE_HOT else fold(whole.x)
        whole = replace(whole, x=folded.x)
        data = head(whole, self.rows) if self.ordered else permuted(whole, self.seed, self.rows)
        x, buckets = self._in_form(data.x, data.y, folded)
        params = Params(d=len(buckets), buckets=buckets, tau=self.tau, seed=self.seed)
        outcome, seconds = _timed(params, x, data.y)
        return [
            {
                "set": self.name + "*" * self.ordered,
                "form": self.form,
                "deleted": self.share,
                "target_factor": self.factor,
                "tau": self.tau,
                "seed": self.seed,
                "numbers": folded.numbers,
                "values": " ".join(map(str, folded.values)),
                "columns": params.d,
                **stream_figures(outcome, data.y, self.tau),
                "us_per_event": 1e6 * seconds / data.rows,
            }
        ]

    def _in_form(self, x: Features, y: Signs, folded: Folded) -> tuple[Features, tuple[int, ...]]:
        if self.share == 0:
            return x, folded.buckets
        with_gaps = delete(x, y, folded.numbers, self.share, self.factor, self.seed)
        if self.form == MISSING:
            return with_gaps, folded.buckets
        if self.form == MEAN:
            return fill(with_gaps, folded.numbers), folded.buckets
        return fill_and_flag(with_gaps, folded.numbers), (0,) * folded.numbers + folded.buckets


def study(source: DatasetSource, *, names: Sequence[str] = (), seeds: int = 3, quick: bool = False) -> Study:
    """The sets of the folder that this study knows (or the named sets); generated ones without a folder."""
    chosen = list(names) or _default_names(source)
    if quick:
        chosen, seeds = chosen[:2], 1
    tasks = [task for name in chosen for task in _tasks(source, name, seeds, 6000 if quick else None)]
    return Study(name="inputs", file="inputs", columns=COLUMNS, tasks=tasks, report=report)


def _timed(params: Params, x: Features, y: Signs) -> tuple[Outcome, float]:
    Model.create(params).stream(x[:_WARM_ROWS], y[:_WARM_ROWS])
    model = Model.create(params)
    begin = perf_counter()
    outcome = model.stream(x, y)
    return outcome, perf_counter() - begin


def _default_names(source: DatasetSource) -> list[str]:
    if source.folder is None:
        return ["mixed", "gmm8"]
    there = source.in_folder()
    return [name for name in SETS if name in there] or there


def _tasks(source: DatasetSource, name: str, seeds: int, cut: int | None) -> Iterator[InputTask]:
    data = source.load(name)
    known_rows, ordered = known_order(name)
    rows = min(filter(None, (known_rows, cut)), default=None)
    for form, share, factor in _forms(fold(data.x)):
        for tau in TAUS:
            for seed in range(seeds):
                yield InputTask(source, name, data.digest, rows, ordered, form, share, factor, tau, seed)


def _forms(folded: Folded) -> Iterator[tuple[str, float, int]]:
    """Form, share of deleted numbers and factor for targets, of every run of a set."""
    if folded.values:
        yield ONE_HOT, 0.0, 1
    yield FOLDED, 0.0, 1
    if np.ptp(folded.x[:, : folded.numbers], axis=0).any():  # a constant column has nothing to lose
        yield from ((form, share, factor) for share in SHARES for factor in FACTORS for form in (MISSING, MEAN, FLAG))
