"""One replay: fresh processors over a source, and what became of every partition.

The processors are those of the worker, so a replay of a topic from its first
event gives the live decisions, byte for byte; `chain` proves it. `digest` is over
the values alone, without keys and times, which files do not have: a file and a
topic of the same rows have the same one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import pairwise

from npstream.errors import StateCorrupt
from npstream.model import Model
from npstream.partition import PartitionConfig, PartitionProcessor
from npstream.partition.counters import Tally
from npstream.partition.merges import Merger
from npstream.records import Batch, Channel, Output, Record, Tier
from npstream.replay.margins import Margins
from npstream.replay.merged import MergedRun
from npstream.replay.source import Source
from npstream.report.rates import Rates

FILE_TOPIC = "file"
"""The topic name in default ids when events come from a file that names none."""

QUARTERS = 4
_NUMBER_BYTES = 4


@dataclass(frozen=True, slots=True)
class Sample:
    """A partition after so many records: what was decided so far, and with what."""

    records: int
    decisions: int
    alarms: int
    rates: Rates
    threshold: float
    gamma: float


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """One partition from its first to its last record; `quarters` are rates within each quarter of its range."""

    partition: int
    samples: Sequence[Sample]
    quarters: Sequence[Rates]
    tally: Tally
    digest: str
    chain: str
    halted: str | None
    tiers: Sequence[Tier] = ()
    margins: Margins = field(default_factory=Margins, compare=False, repr=False)

    @property
    def rates(self) -> Rates:
        """Over the whole range."""
        return self.samples[-1].rates if self.samples else Rates(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Result:
    """One run of one set of rules over one source."""

    config: PartitionConfig
    partitions: Sequence[PartitionResult]

    @property
    def rates(self) -> Rates:
        """All partitions together: the whole group's rates."""
        return _sum([partition.rates for partition in self.partitions])

    @property
    def quarters(self) -> list[Rates]:
        """All partitions together, by quarter of each one's range."""
        return [_sum([partition.quarters[q] for partition in self.partitions]) for q in range(QUARTERS)]

    @property
    def tiers(self) -> dict[str, tuple[float, int, Rates]]:
        """Of each tier, the strictest first: its rate, the alarms and the rates of all partitions together."""
        found: dict[str, tuple[float, int, Rates]] = {}
        for tier in (tier for partition in self.partitions for tier in partition.tiers):
            _, alarms, rates = found.get(tier.name, (tier.rate, 0, Rates(0, 0, 0, 0)))
            own = Rates(tier.negatives, tier.positives, tier.false_alarms, tier.detections)
            found[tier.name] = tier.rate, alarms + tier.alarms, rates + own
        return found

    @property
    def events(self) -> int:
        """Events that were decided or learned from, and dead letters."""
        return sum(partition.tally.events + partition.tally.dead_letters for partition in self.partitions)

    @property
    def digest(self) -> str:
        """Equal digests mean that every decision and dead letter says the same, byte for byte, on every partition."""
        text = ",".join(f"{partition.partition}:{partition.digest}" for partition in self.partitions)
        return blake2b(text.encode(), digest_size=16).hexdigest()


def replay(
    config: PartitionConfig,
    source: Source,
    *,
    group: str = "backtest",
    seed: Model | None = None,
    progress: Callable[[int], None] = lambda records: None,
) -> Result:
    """Run a source through fresh processors; `progress` gets the number of records of each round."""
    config = adapt(config, source)
    topic = source.topic or FILE_TOPIC
    lanes = {
        p: _Lane(PartitionProcessor.cold(config, group, topic, p, begin, seed), source.merger(p), begin, end)
        for p, (begin, end) in source.ranges.items()
    }
    for batches in source.rounds():
        for batch in batches:
            lanes[batch.partition].take(batch)
        progress(sum(len(batch.records) for batch in batches))
    return Result(config, [lane.finish() for lane in lanes.values()])


def adapt(config: PartitionConfig, source: Source) -> PartitionConfig:
    """The rules with the source's own event format, when it has one."""
    if source.format is None:
        return config
    events = config.events
    room = max(events.max_bytes, _NUMBER_BYTES * max(1, events.d))
    return replace(config, events=replace(events, format=source.format, max_bytes=room))


class _Lane:
    """One partition on its way through the source, sampled after every batch and at its quarters."""

    def __init__(self, processor: PartitionProcessor, merger: Merger, begin: int, end: int) -> None:
        self._processor = processor
        self._run = MergedRun(processor, merger)
        self._cuts = [begin + (end - begin) * q // QUARTERS for q in range(1, QUARTERS)]
        self._marks: list[Rates] = []
        self._samples: list[Sample] = []
        self._records = 0
        self._halted: StateCorrupt | None = None
        self._said = blake2b(digest_size=16)
        self._margins = Margins()
        processor.on_learned = self._margins.note

    def take(self, batch: Batch) -> None:
        records = batch.records
        while self._cuts and records and records[-1].offset >= self._cuts[0]:
            cut = next(i for i, record in enumerate(records) if record.offset >= self._cuts[0])
            self._process(records[:cut])
            self._marks.append(self._rates())
            self._cuts.pop(0)
            records = records[cut:]
        self._process(records)

    def _process(self, records: list[Record]) -> None:
        if not records or self._halted is not None:
            return
        step = self._run.process(records)
        self._halted = step.halted
        self._said.update(b"".join([_said(output) for output in step.outputs]))
        self._records += len(records)
        model, tally = self._processor.model, self._processor.tally
        counts = self._records, tally.decisions, tally.alarms
        self._samples.append(Sample(*counts, self._rates(), model.threshold, model.gamma))

    def _rates(self) -> Rates:
        model = self._processor.model
        return Rates(model.negatives, model.positives, model.false_alarms, model.detections)

    def finish(self) -> PartitionResult:
        end = self._rates()
        marks = [Rates(0, 0, 0, 0), *self._marks, *[end] * (QUARTERS - len(self._marks))]
        quarters = [_minus(after, before) for before, after in pairwise(marks)]
        processor = self._processor
        halted = None if self._halted is None else str(self._halted)
        return PartitionResult(
            processor.partition,
            self._samples,
            quarters,
            processor.tally,
            self._said.hexdigest(),
            processor.proof().chain,
            halted,
            processor.model.tiers,
            self._margins,
        )


def _said(output: Output) -> bytes:
    """What an output says, so that no two sequences of outputs give the same bytes: a decision is one line."""
    channel, _, value, _, _ = output
    if channel is Channel.DECISIONS:
        return (value or b"") + b"\n"
    return b"%d %d " % (channel, -1 if value is None else len(value)) + (value or b"")


def _sum(parts: Sequence[Rates]) -> Rates:
    return sum(parts, Rates(0, 0, 0, 0))


def _minus(after: Rates, before: Rates) -> Rates:
    return Rates(
        after.negatives - before.negatives,
        after.positives - before.positives,
        after.false_positives - before.false_positives,
        after.true_positives - before.true_positives,
    )
