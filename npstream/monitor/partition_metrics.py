"""The label children of one partition: bound when it is assigned, removed when it is released."""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

from npstream.codec.event import REASONS
from npstream.monitor.lag import Lag
from npstream.monitor.status import PartitionStatus
from npstream.observe import METRICS, Metric
from npstream.records import ChallengerRates, Counted, Phase, Reading, SampleLabels, Spans, Tier, TierRates
from npstream.report.intervals import sampled, wilson

FATES = ("with_event", "joined", "echoed", "early", "late", "duplicate", "orphan", "corrected")
_DECISIONS = (("1", "score"), ("-1", "score"), ("-1", "warmup"), ("-1", "budget"), ("1", "invalid"), ("-1", "invalid"))
_OUTCOMES = (("target", "1"), ("target", "-1"), ("non_target", "1"), ("non_target", "-1"))

_Child = TypeVar("_Child", Counter, Gauge, Histogram)


class Families:
    """Every family of ours, registered, by name."""

    def __init__(self, registry: CollectorRegistry) -> None:
        ours = [metric for metric in METRICS if metric.name.startswith("npstream_")]
        self._by_name = {metric.name: _family(metric, registry) for metric in ours}

    def child(self, kind: type[_Child], name: str, labels: Sequence[str]) -> _Child:
        """The series of these label values, made at the first call."""
        family = self._by_name[name]
        assert isinstance(family, kind), name
        return family.labels(*labels)

    def remove(self, name: str, labels: Sequence[str]) -> None:
        """Export a series no longer."""
        self._by_name[name].remove(*labels)


class PartitionMetrics:
    """The label children of one partition."""

    def __init__(self, families: Families, labels: Sequence[str]) -> None:
        """`labels` are group, topic and partition."""
        self._families = families
        self._bound: list[tuple[str, tuple[str, ...]]] = []

        def bind(kind: type[_Child], name: str, *further: str) -> _Child:
            values = (*labels, *further)
            self._bound.append((name, values))
            return families.child(kind, name, values)

        def counter(name: str, *further: str) -> Counter:
            return bind(Counter, name, *further)

        def gauge(name: str, *further: str) -> Gauge:
            return bind(Gauge, name, *further)

        self._events = counter("npstream_events_total")
        self._decisions = {kind: counter("npstream_decisions_total", *kind) for kind in _DECISIONS}
        self._labels = {fate: counter("npstream_labels_total", fate) for fate in FATES}
        self._outcomes = {kind: counter("npstream_outcomes_total", *kind) for kind in _OUTCOMES}
        self._observations = {fate: counter("npstream_observations_total", fate) for fate in ("expired", "duplicate")}
        self._dead = {reason: counter("npstream_dead_letters_total", reason) for reason in REASONS}
        self._rates = {
            (rate, span): tuple(gauge(f"npstream_{rate}{end}_ratio", span) for end in ("", "_lower", "_upper"))
            for rate in ("fpr", "tpr")
            for span in ("window", "lifetime")
        }
        self._weighted = {
            rate: tuple(gauge(f"npstream_weighted_{rate}{end}_ratio") for end in ("", "_lower", "_upper"))
            for rate in ("fpr", "tpr")
        }
        self._alarm_rates = {span: gauge("npstream_alarm_ratio", span) for span in ("window", "lifetime")}
        self._alarms_per_day = gauge("npstream_alarms_per_day")
        self._tau = gauge("npstream_tau_ratio")
        self._control = gauge("npstream_alarm_rate_control")
        self._threshold = gauge("npstream_threshold")
        self._gamma = gauge("npstream_gamma")
        self._pinned = gauge("npstream_threshold_pinned")
        self._budget = gauge("npstream_budget_left_alarms")
        self._outstanding = gauge("npstream_outstanding_alarms")
        self._pending = gauge("npstream_pending_observations")
        self._lag_records = gauge("npstream_lag_records")
        self._lag_seconds = gauge("npstream_lag_seconds")
        self._label_lag = gauge("npstream_label_lag_records")
        self._phases = {phase: gauge("npstream_partition_phase", phase) for phase in Phase}
        self._replay_left = gauge("npstream_replay_left_records")
        self._stuck = gauge("npstream_stuck_transaction")
        self._checkpoints = counter("npstream_checkpoints_total")
        self._checkpoint_written = counter("npstream_checkpoint_written_bytes_total")
        self._checkpoint_bytes = gauge("npstream_checkpoint_bytes")
        self._checkpoint_age = gauge("npstream_checkpoint_age_seconds")
        self.batch = bind(Histogram, "npstream_batch_records")
        self._bind_gauge, self._bind_counter = gauge, counter
        self._tiers: dict[str, _TierMetrics] = {}
        self._challenger: dict[tuple[str, ...], Gauge] = {}
        self._seen: Reading | None = None

    def remove(self) -> None:
        """Export this partition no longer."""
        for name, values in self._bound:
            self._families.remove(name, values)

    def start_from(self, reading: Reading) -> None:
        """Count from here on: what was replayed was counted by the worker that decided it. Rates go on."""
        self._seen = reading
        self._show(reading)

    def count_checkpoint(self, saved_bytes: int) -> None:
        """Count a committed snapshot."""
        self._checkpoints.inc()
        self._checkpoint_written.inc(saved_bytes)

    def update(self, status: PartitionStatus) -> None:
        """Count what was added since the last reading, and show the partition's state."""
        after = status.reading
        assert after is not None
        self._count(self._seen or after, after)
        self._seen = after
        self._pinned.set(status.pinned)
        self._checkpoint_bytes.set(status.checkpoint_bytes)
        self._show(after)

    def _count(self, before: Reading, after: Reading) -> None:
        added = {name: count - before.counts[name] for name, count in after.counts.items()}
        self._events.inc(added["events"] + added["dead_letters"])
        withheld = added["withheld_warmup"] + added["withheld_budget"]
        self._decisions["1", "score"].inc(added["alarms"])
        self._decisions["-1", "score"].inc(added["decisions"] - added["alarms"] - withheld)
        self._decisions["-1", "warmup"].inc(added["withheld_warmup"])
        self._decisions["-1", "budget"].inc(added["withheld_budget"])
        for (reason, decision), count in after.bad_events.items():
            fresh = count - before.bad_events.get((reason, decision), 0)
            self._dead[reason].inc(fresh)
            if decision != "none":
                self._decisions[decision, "invalid"].inc(fresh)
        for fate, child in self._labels.items():
            child.inc(added[f"labels_{fate}"])
        for fate, child in self._observations.items():
            child.inc(added[f"observations_{fate}"])
        detections, false_alarms = after.detections - before.detections, after.false_alarms - before.false_alarms
        self._outcomes["target", "1"].inc(detections)
        self._outcomes["target", "-1"].inc(after.positives - before.positives - detections)
        self._outcomes["non_target", "1"].inc(false_alarms)
        self._outcomes["non_target", "-1"].inc(after.negatives - before.negatives - false_alarms)
        known = {tier.name: tier.alarms for tier in before.tiers}
        for tier in after.tiers:
            self._tier(tier.name).alarms.inc(tier.alarms - known.get(tier.name, tier.alarms))

    def _tier(self, name: str) -> "_TierMetrics":
        """The series of a tier, bound when it is first seen: which tiers there are is known with the state."""
        if name not in self._tiers:
            self._tiers[name] = _TierMetrics(self._bind_counter, self._bind_gauge, name)
        return self._tiers[name]

    def _show(self, reading: Reading) -> None:
        self._tau.set(reading.tau)
        self._control.set(reading.control == "alarm_rate")
        self._threshold.set(reading.threshold)
        self._gamma.set(reading.gamma)
        self._budget.set(reading.budget_left)
        self._outstanding.set(reading.outstanding)
        self._pending.set(reading.pending)
        self._set_weighted(reading.sample)
        rates = reading.rates
        for span, alarms in rates.alarm_rate._asdict().items():
            self._alarm_rates[span].set(_known(alarms.share))
            self._set_rate("fpr", span, getattr(rates.fpr, span))
            self._set_rate("tpr", span, getattr(rates.tpr, span))
        self._alarms_per_day.set(_known(rates.alarms_per_day))
        for tier, found in zip(reading.tiers, rates.tiers, strict=True):
            self._tier(tier.name).show(tier, found)

        if reading.challenger is not None:
            self._show_challenger(reading.challenger)
        else:
            for gauge in self._challenger.values():
                gauge.set(math.nan)

    def _show_challenger(self, rates: ChallengerRates) -> None:
        """The series of a challenger, bound when one is first seen."""
        shown: dict[tuple[str, ...], float | None] = {("tau",): rates.tau}
        for name, spans in (("alarm", rates.alarm_rate), ("fpr", rates.fpr), ("tpr", rates.tpr)):
            shown |= {(name, span): counted.share for span, counted in spans._asdict().items()}
        for (name, *further), value in shown.items():
            if (name, *further) not in self._challenger:
                bound = self._bind_gauge(f"npstream_challenger_{name}_ratio", *further)
                self._challenger[name, *further] = bound
            self._challenger[name, *further].set(_known(value))

    def _set_rate(self, rate: str, span: str, counted: Counted) -> None:
        value, lower, upper = self._rates[rate, span]
        low, high = wilson(counted.hits, counted.trials)
        value.set(_known(counted.share))
        lower.set(low)
        upper.set(high)

    def _set_weighted(self, sample: SampleLabels | None) -> None:
        unknown = math.nan, (math.nan, math.nan)
        fpr = unknown if sample is None else sampled(sample.false_alarms, sample.other_non_targets)
        tpr = unknown if sample is None else sampled(sample.detections, sample.other_targets)
        for rate, (value, ends) in (("fpr", fpr), ("tpr", tpr)):
            for child, number in zip(self._weighted[rate], (value, *ends), strict=True):
                child.set(number)

    def refresh(self, status: PartitionStatus, lag: Lag | None, now: float) -> None:
        """Bring up to date what changes without a commit."""
        for phase, child in self._phases.items():
            child.set(phase is status.phase)
        self._lag_records.set(math.nan if lag is None else lag.records)
        self._lag_seconds.set(math.nan if lag is None else lag.seconds)
        self._label_lag.set(math.nan if lag is None or lag.labels is None else lag.labels)
        self._stuck.set(lag is not None and lag.stuck)
        reading = status.reading
        if reading is not None:
            self._replay_left.set(max(0, reading.replay_to - reading.next_offset))
            self._checkpoint_age.set(status.checkpoint_age(now))


class _TierMetrics:
    """The series of one tier."""

    def __init__(self, counter: Callable[..., Counter], gauge: Callable[..., Gauge], name: str) -> None:
        self.alarms = counter("npstream_tier_alarms_total", name)
        self._tau = gauge("npstream_tier_tau_ratio", name)
        self._fpr = {span: gauge("npstream_tier_fpr_ratio", name, span) for span in Spans._fields}
        self._tpr = {span: gauge("npstream_tier_tpr_ratio", name, span) for span in Spans._fields}
        self._threshold = gauge("npstream_tier_threshold", name)
        self._budget = gauge("npstream_tier_budget_left_alarms", name)

    def show(self, tier: Tier, rates: TierRates) -> None:
        """All but the alarms, which are counted."""
        self._tau.set(tier.rate)
        for series, spans in ((self._fpr, rates.fpr), (self._tpr, rates.tpr)):
            for span, counted in spans._asdict().items():
                series[span].set(_known(counted.share))
        self._threshold.set(tier.threshold)
        self._budget.set(tier.budget_left)


def _known(value: float | None) -> float:
    return math.nan if value is None else value


def _family(metric: Metric, registry: CollectorRegistry) -> MetricWrapperBase:
    if metric.kind == "counter":
        return Counter(metric.name, metric.help, metric.labels, registry=registry)
    if metric.kind == "gauge":
        return Gauge(metric.name, metric.help, metric.labels, registry=registry)
    return Histogram(metric.name, metric.help, metric.labels, buckets=metric.buckets, registry=registry)
