"""The status as a JSON document: what `/status` returns and the live page draws."""

from collections.abc import Mapping
from typing import Any

from npstream.monitor.lag import Lag
from npstream.monitor.status import Identity, PartitionStatus, WorkerStatus
from npstream.records import ChallengerRates, Counted, Reading, SampleLabels, Spans, Tier, TierRates
from npstream.report.intervals import sampled, wilson


def status_document(
    identity: Identity, status: WorkerStatus, lags: Mapping[int, Lag], now: float, ready: bool
) -> dict[str, Any]:
    """Everything an operator may see; plain JSON values. Ages are in seconds."""
    return {
        "group": identity.group,
        "topic": identity.topic,
        "instance": identity.instance,
        "version": identity.version,
        "algorithm": identity.algorithm,
        "ready": ready,
        "transactions": status.transactions,
        "aborts": status.aborts,
        "session_restarts": status.session_restarts,
        "last_restart": status.last_restart,
        "restores": status.restores,
        "replayed_events": status.replayed,
        "rebalances": status.rebalances,
        "partitions": [_partition(known, lags.get(number), now) for number, known in status.partitions.items()],
    }


def _partition(known: PartitionStatus, lag: Lag | None, now: float) -> dict[str, Any]:
    document: dict[str, Any] = {
        "partition": known.partition,
        "phase": known.phase,
        "phase_age_s": round(now - known.since, 1),
        "reason": known.reason,
        "restore_s": _rounded(known.restore_seconds, 3),
        "committed_age_s": None if known.committed_at is None else round(now - known.committed_at, 1),
        "end_offset": None if lag is None else lag.end,
        "lag_records": None if lag is None else lag.records,
        "lag_s": None if lag is None else round(lag.seconds, 1),
        "label_lag": None if lag is None else lag.labels,
        "stuck_transaction": lag is not None and lag.stuck,
        "checkpoint_bytes": known.checkpoint_bytes,
        "checkpoint_age_s": round(known.checkpoint_age(now), 1),
    }
    return document | ({} if known.reading is None else _reading(known, known.reading))


def _reading(known: PartitionStatus, reading: Reading) -> dict[str, Any]:
    counts = reading.counts
    return {
        "next_offset": reading.next_offset,
        "checkpoint_offset": reading.saved_offset,
        "replay_left": max(0, reading.replay_to - reading.next_offset),
        "events": counts["events"] + counts["dead_letters"],
        "decisions": counts["decisions"],
        "alarms": counts["alarms"],
        "withheld": {"warmup": counts["withheld_warmup"], "budget": counts["withheld_budget"]},
        "labels": {name.removeprefix("labels_"): n for name, n in counts.items() if name.startswith("labels_")},
        "expired": counts["observations_expired"],
        "dead_letters": counts["dead_letters"],
        "pending": reading.pending,
        "correctable": reading.correctable,
        "preset": reading.preset,
        "d": reading.d,
        "features": reading.features,
        "learning": reading.learning,
        "learned": reading.t,
        "control": reading.control,
        "tau": reading.tau,
        "alarm_rate": _rate(reading.rates.alarm_rate),
        "alarms_per_day": reading.rates.alarms_per_day,
        "fpr": _rate(reading.rates.fpr),
        "tpr": _rate(reading.rates.tpr),
        "weighted": _weighted(reading.sample),
        "threshold": reading.threshold,
        "gamma": reading.gamma,
        "pinned": known.pinned,
        "warming_up": reading.warming_up,
        "warmup": {"seen": reading.warmup.hits, "of": reading.warmup.trials},
        "budget_left": reading.budget_left,
        "outstanding": reading.outstanding,
        "tiers": [_tier(tier, found) for tier, found in zip(reading.tiers, reading.rates.tiers, strict=True)],
        "challenger": None if reading.challenger is None else _challenger(reading.challenger),
    }


def _challenger(rates: ChallengerRates) -> dict[str, Any]:
    """The second model, whose decisions are not published."""
    return {
        "began": rates.began,
        "control": rates.control,
        "tau": rates.tau,
        "alarm_rate": _rate(rates.alarm_rate),
        "fpr": _rate(rates.fpr),
        "tpr": _rate(rates.tpr),
    }


def _tier(tier: Tier, rates: TierRates) -> dict[str, Any]:
    """One of several rates, with what it holds and what came of it."""
    return {
        "name": tier.name,
        "tau": tier.rate,
        "alarms": tier.alarms,
        "alarm_rate": _rate(rates.alarm_rate),
        "fpr": _rate(rates.fpr),
        "tpr": _rate(rates.tpr),
        "threshold": tier.threshold,
        "budget_left": tier.budget_left,
        "outstanding": tier.outstanding,
        "withheld": {"warmup": tier.held, "budget": tier.withheld},
    }


def _rate(spans: Spans) -> dict[str, Any]:
    return {"window": _interval(spans.window), "lifetime": _interval(spans.lifetime)}


def _weighted(sample: SampleLabels | None) -> dict[str, Any] | None:
    """Rates of all observations by the review sample, over the partition's life."""
    if sample is None:
        return None
    found = {
        "fpr": sampled(sample.false_alarms, sample.other_non_targets),
        "tpr": sampled(sample.detections, sample.other_targets),
    }
    return {
        name: {"value": value if value == value else None, "lower": lower, "upper": upper}
        for name, (value, (lower, upper)) in found.items()
    }


def _interval(counted: Counted) -> dict[str, Any]:
    lower, upper = wilson(counted.hits, counted.trials)
    return {"value": counted.share, "lower": lower, "upper": upper, "hits": counted.hits, "of": counted.trials}


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
