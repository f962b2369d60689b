"""The search: trials on every core, scored by prequential NP-score, each kept on disk as soon as it ends.

Prequential: every event is decided by what was learned before it, so no part of
the data has to be set aside.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from npstream.errors import SettingsError, UsageError
from npstream.jobs import Results, Workers
from npstream.model import Params
from npstream.model.params import Preset
from npstream.partition import PartitionConfig
from npstream.replay.candidates import Candidate, close_in, explore
from npstream.replay.source import ArraySource, RecordSource, Source, TopicSource, size_of
from npstream.replay.trials import Data, Score, TrialJob, data_digest, load_data, score_of, trial_key

RECORDS_MAX = 2_000_000
"""Records of a topic that a search holds in memory, in every process: about a gigabyte."""


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
    trials: int
    jobs: int
    configure: Callable[[Candidate], PartitionConfig]


def in_memory(source: Source) -> Data:
    """The source as something every process can have its own copy of. Raises `UsageError` when it is too long."""
    if isinstance(source, ArraySource | RecordSource):
        return source
    assert isinstance(source, TopicSource), source
    total = size_of(source)
    if total > RECORDS_MAX:
        raise UsageError(f"{total} records are too many to search over; choose at most {RECORDS_MAX} with --from, --to")
    records = {partition: list(islice(reader, RECORDS_MAX)) for partition, reader in source.readers().items()}
    labels = {partition: list(islice(source.labels(partition) or (), RECORDS_MAX)) for partition in records}
    kept = {partition: found for partition, found in records.items() if found}
    return RecordSource(kept, source.topic, label_records=labels if source.has_labels else None)


def tune(search: Search, data: Data, kept: Results, progress: Callable[[Trial], None]) -> list[Trial]:
    """All trials, the base first; `progress` gets each as it is known.

    Half of the trials explore, the other half close in on the best so far.
    Raises `Fatal` when a process dies, `UsageError` without labels of both classes.
    """
    with Workers(search.jobs, partial(load_data, data)) as workers:
        runner = _Runner(search, data_digest(data), kept, workers, progress)
        trials = runner.run(explore(search.base, search.presets, max(1, (search.trials + 1) // 2)))
        number = 0
        while len(trials) < search.trials and number < search.trials:
            best = min(trials, key=lambda trial: trial.rank)
            proposed = close_in(best.candidate, search.base, number)[: search.trials - len(trials)]
            known = {trial.candidate for trial in trials}
            trials += runner.run([candidate for candidate in dict.fromkeys(proposed) if candidate not in known])
            number += 1
    return trials


@dataclass(frozen=True, slots=True)
class _Runner:
    search: Search
    data: str
    kept: Results
    workers: Workers
    progress: Callable[[Trial], None]

    def run(self, candidates: Sequence[Candidate]) -> list[Trial]:
        """The trials of those candidates that can be, in their order."""
        jobs = {candidate: job for candidate in candidates if (job := self._job(candidate)) is not None}
        todo = {job.key: candidate for candidate, job in jobs.items() if job.key not in self.kept}
        for candidate, job in jobs.items():
            if job.key not in todo:
                self._report(self._trial(candidate, job))
        for job in self.workers.run([jobs[candidate] for candidate in todo.values()], self.kept):
            self._report(self._trial(todo[job.key], job))
        return [self._trial(candidate, job) for candidate, job in jobs.items()]

    def _job(self, candidate: Candidate) -> TrialJob | None:
        try:
            config = self.search.configure(candidate)
        except SettingsError:
            return None
        return TrialJob(config, trial_key(config, self.data))

    def _trial(self, candidate: Candidate, job: TrialJob) -> Trial:
        return Trial(candidate, job.config, score_of(*self.kept.rows([job.key])))

    def _report(self, trial: Trial) -> None:
        # Labels do not depend on settings: what one trial lacks no other has.
        for name, rate in (("non-target", trial.score.fpr), ("target", trial.score.tpr)):
            if rate != rate:
                raise UsageError(
                    f"none of {trial.score.events} events is a labelled {name}: there is nothing to rank settings by; "
                    "choose a longer range, or check labels.buffer_max when labels come late"
                )
        self.progress(trial)
