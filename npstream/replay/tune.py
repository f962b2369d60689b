"""The search: trials on every core, scored by prequential NP-score, each kept as soon as it ends.

Prequential: every event is decided by what was learned before it, so no part of
the data has to be set aside.
"""

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from npstream.errors import Fatal, SettingsError, UsageError
from npstream.model import Params
from npstream.model.params import Preset
from npstream.partition import PartitionConfig
from npstream.replay.candidates import Candidate, close_in, explore
from npstream.replay.replay import replay
from npstream.replay.source import ArraySource, RecordSource, Source, TopicSource
from npstream.replay.trials import Score, Trials, data_digest, trial_key

RECORDS_MAX = 2_000_000
"""Records of a topic that a search holds in memory, in every process: about a gigabyte."""

Data = ArraySource | RecordSource


@dataclass(frozen=True, slots=True)
class Trial:
    """A candidate and what it scored."""

    candidate: Candidate
    config: PartitionConfig
    score: Score

    @property
    def rank(self) -> tuple[float, int]:
        """Lower is better; of equal scores the smaller model."""
        return self.score.np_score, self.candidate.D


@dataclass(frozen=True, slots=True)
class Search:
    """What to search over, and with what means.

    `configure` makes the rules of a candidate and raises `SettingsError` for one
    that cannot be; such a candidate is passed over.
    """

    base: Params
    presets: Sequence[Preset]
    budget: int
    jobs: int
    configure: Callable[[Candidate], PartitionConfig]


def in_memory(source: Source) -> Data:
    """The source as something every process can have its own copy of. Raises `UsageError` when it is too long."""
    if isinstance(source, ArraySource | RecordSource):
        return source
    assert isinstance(source, TopicSource), source
    total = sum(end - begin for begin, end in source.ranges.values())
    if total > RECORDS_MAX:
        raise UsageError(f"{total} records are too many to search over; choose at most {RECORDS_MAX} with --from, --to")
    records = {partition: list(islice(reader, RECORDS_MAX)) for partition, reader in source.readers().items()}
    return RecordSource({partition: found for partition, found in records.items() if found}, source.topic)


def tune(search: Search, data: Data, kept: Trials, progress: Callable[[Trial], None]) -> list[Trial]:
    """All trials, the base first; `progress` is told each as it is known.

    Half of the budget explores, the other half closes in on the best so far.
    Raises `Fatal` when a process dies, `UsageError` without labels of both classes.
    """
    with _workers(search.jobs, data) as run:
        runner = _Runner(search, data_digest(data), kept, run, progress)
        trials = runner.run(explore(search.base, search.presets, max(1, (search.budget + 1) // 2)))
        number = 0
        while len(trials) < search.budget and number < search.budget:
            best = min(trials, key=lambda trial: trial.rank)
            proposed = close_in(best.candidate, search.base, number)[: search.budget - len(trials)]
            known = {trial.candidate for trial in trials}
            trials += runner.run([candidate for candidate in dict.fromkeys(proposed) if candidate not in known])
            number += 1
    return trials


_Run = Callable[[Sequence[PartitionConfig]], Iterator[tuple[int, Score]]]
"""Runs configs, in any order; yields the index of each as it ends."""


@dataclass(frozen=True, slots=True)
class _Runner:
    search: Search
    data: str
    kept: Trials
    execute: _Run
    progress: Callable[[Trial], None]

    def run(self, candidates: Sequence[Candidate]) -> list[Trial]:
        """The trials of those candidates that can be, in their order."""
        found: dict[int, Trial] = {}
        todo: list[tuple[int, Candidate, PartitionConfig, str]] = []
        for index, candidate in enumerate(candidates):
            try:
                config = self.search.configure(candidate)
            except SettingsError:
                continue
            key = trial_key(config, self.data)
            score = self.kept.find(key)
            if score is None:
                todo.append((index, candidate, config, key))
            else:
                found[index] = self._told(Trial(candidate, config, score))
        for at, score in self.execute([config for _, _, config, _ in todo]):
            index, candidate, config, key = todo[at]
            self.kept.keep(key, config, score)
            found[index] = self._told(Trial(candidate, config, score))
        return [found[index] for index in sorted(found)]

    def _told(self, trial: Trial) -> Trial:
        # Labels do not depend on settings: what one trial lacks no other has.
        for name, rate in (("non-target", trial.score.fpr), ("target", trial.score.tpr)):
            if rate != rate:
                raise UsageError(
                    f"none of {trial.score.events} events is a labelled {name}: there is nothing to rank settings by; "
                    "choose a longer range, or check labels.buffer_max when labels come late"
                )
        self.progress(trial)
        return trial


@contextmanager
def _workers(jobs: int, data: Data) -> Iterator[_Run]:
    """What runs configs over the data: this process, or `jobs` others that each have a copy of it."""
    if jobs == 1:
        yield lambda configs: ((index, _score(config, data)) for index, config in enumerate(configs))
        return
    # Spawned, not forked: a forked child of a process with threads may hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_adopt, initargs=(data,))
    try:
        yield lambda configs: _parallel(pool, configs)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _parallel(pool: ProcessPoolExecutor, configs: Sequence[PartitionConfig]) -> Iterator[tuple[int, Score]]:
    futures: dict[Future[Score], int] = {pool.submit(_score_adopted, c): index for index, c in enumerate(configs)}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool:
        raise Fatal(
            "a trial's process died, probably for want of memory; use fewer --jobs or a shorter range"
        ) from None


_adopted: list[Data] = []


def _adopt(data: Data) -> None:
    """In a worker process: keep the data, and leave Ctrl-C to the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _adopted[:] = [data]


def _score_adopted(config: PartitionConfig) -> Score:
    return _score(config, _adopted[0])


def _score(config: PartitionConfig, data: Data) -> Score:
    result = replay(config, data)
    rates = result.rates
    return Score(rates.np_score(config.params.tau), rates.fpr, rates.tpr, result.events, result.digest)
