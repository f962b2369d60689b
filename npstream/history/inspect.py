"""A checkpoint in words and numbers: what one partition knows."""

from typing import Any

import numpy as np

from npstream.codec.snapshot import Snapshot, encode_snapshot
from npstream.model import Model
from npstream.model.network import SHARE
from npstream.partition.review import ReviewSample
from npstream.records import ChallengerRates, Spans, Tier, TierRates
from npstream.report.intervals import sampled, wilson
from npstream.state import processor_of

_DIRECTIONS = 5
_FEATURES = 3


def describe(snapshot: Snapshot) -> dict[str, Any]:
    """Everything worth knowing about a snapshot, ready for JSON. Raises `StateCorrupt` when it cannot be used."""
    processor = processor_of(snapshot)
    model, params = processor.model, processor.config.params
    rates = processor.rates()
    return {
        "group": snapshot.group,
        "topic": snapshot.topic,
        "partition": snapshot.partition,
        "next_offset": snapshot.next_offset,
        "ring_place": snapshot.ring_place,
        "algorithm": snapshot.algorithm,
        "bytes": len(encode_snapshot(snapshot)),
        "settings": processor.config.to_dict(),
        "preset": params.preset,
        "learning": params.learning,
        "control": params.control,
        "tau": params.tau,
        "events": processor.tally.events,
        "learned": model.t,
        "negatives": model.negatives,
        "positives": model.positives,
        "false_alarms": model.false_alarms,
        "detections": model.detections,
        "warming_up": model.warming_up,
        "threshold": model.threshold,
        "gamma": model.gamma,
        "alarm_rate": _rate(rates.alarm_rate),
        "alarms_per_day": rates.alarms_per_day,
        "fpr": _rate(rates.fpr),
        "tpr": _rate(rates.tpr),
        "weighted": _weighted(processor.review),
        "budget_left": _number(model.budget_left),
        "outstanding_alarms": model.outstanding,
        "pending_labels": processor.pending.waiting,
        "correctable_labels": processor.pending.labelled,
        "tiers": [_tier(tier, found) for tier, found in zip(model.tiers, rates.tiers, strict=True)],
        "challenger": None if processor.challenger is None else _challenger(processor.challenger.rates()),
        "tally": processor.tally.to_dict(),
        **_network(model, processor.config.feature_names),
    }


def _rate(spans: Spans) -> dict[str, Any]:
    """Since the warm-up, with the interval of that, and of the newest events."""
    lifetime, window = spans.lifetime, spans.window
    interval = wilson(lifetime.hits, lifetime.trials)
    return {"lifetime": lifetime.share, "interval": list(interval), "recent": window.share, "recent_of": window.trials}


def _challenger(rates: ChallengerRates) -> dict[str, Any]:
    """The second model, whose decisions are not published."""
    found = {name: _rate(getattr(rates, name)) for name in ("alarm_rate", "fpr", "tpr")}
    return {"began": rates.began, "control": rates.control, "tau": rates.tau, **found}


def _tier(tier: Tier, rates: TierRates) -> dict[str, Any]:
    """One of several rates."""
    return {
        "name": tier.name,
        "tau": tier.rate,
        "alarms": tier.alarms,
        "alarm_rate": _rate(rates.alarm_rate),
        "fpr": _rate(rates.fpr),
        "tpr": _rate(rates.tpr),
        "threshold": tier.threshold,
        "budget_left": tier.budget_left,
        "outstanding_alarms": tier.outstanding,
        "withheld": {"warmup": tier.held, "budget": tier.withheld},
    }


def _weighted(review: ReviewSample) -> dict[str, Any] | None:
    """Rates of all observations by the review sample."""
    sample = review.labels()
    if sample is None:
        return None
    fpr, tpr = (
        sampled(sample.false_alarms, sample.other_non_targets),
        sampled(sample.detections, sample.other_targets),
    )
    return {
        "reviews_requested": review.requested,
        "fpr": {"lifetime": _number(fpr[0]), "interval": list(fpr[1])},
        "tpr": {"lifetime": _number(tpr[0]), "interval": list(tpr[1])},
    }


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _network(model: Model, names: list[str]) -> dict[str, Any]:
    if model.params.preset == "external":
        return {"directions": [], "kernel": None, "bandwidths": {}}
    kernel = model.learned_kernel()
    widths = np.sqrt(np.diag(kernel))
    return {
        "directions": _largest_directions(model, names),
        "bandwidths": dict(zip(names, widths.tolist(), strict=True)),
        "kernel": kernel.tolist(),
    }


def _largest_directions(model: Model, names: list[str]) -> list[dict[str, Any]]:
    """The units with the largest output weights, as they score: which features they look along, and how finely."""
    arrays = {name: np.asarray(array, np.float64) for name, array in model.arrays().items()}
    alpha = arrays["alpha"]
    wc, ws = arrays["wc"], arrays["ws"]
    if "slow_c" in arrays:
        share = arrays["head"][SHARE]
        wc, ws = wc + share * (arrays["slow_c"] - wc), ws + share * (arrays["slow_s"] - ws)
    weight = np.hypot(wc, ws)
    found = []
    for unit in np.argsort(-weight, kind="stable")[:_DIRECTIONS].tolist():
        along = alpha[:, unit]
        largest = np.argsort(-np.abs(along), kind="stable")[:_FEATURES].tolist()
        found.append(
            {
                "unit": unit,
                "weight": float(weight[unit]),
                "length": float(np.sqrt((along**2).sum())),
                "features": {names[i]: float(along[i]) for i in largest},
            }
        )
    return found
