"""What event rate, label delay, expiry and buffer will do together, in words, before it happens."""

from dataclasses import dataclass
from typing import NamedTuple

from npstream.model.threshold import rule_of
from npstream.partition.config import PartitionConfig

_PATIENT_S = 3600.0
"""A desk may wait this long for its first alarm without being warned."""

_UNITS = ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute"), (1.0, "second"))


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one partition gets: observations per second, and how late labels come, where that is known."""

    per_s: float
    label_delay_s: float | None = None


class Foreseen(NamedTuple):
    """One thing that will hurt, and what to do about it."""

    problem: str
    fix: str


def wait_s(config: PartitionConfig, per_s: float) -> float:
    """Seconds that an observation waits for its label, at most: until it expires or others need its place."""
    labels = config.labels
    limits = [labels.buffer_max / per_s]
    limits += [] if labels.expire_seconds is None else [labels.expire_seconds]
    limits += [] if labels.expire_events is None else [labels.expire_events / per_s]
    return min(limits)


def enough_per_s(config: PartitionConfig) -> float | None:
    """Observations per second up to which the buffer holds them until they expire; None without such an expiry."""
    expiry = config.labels.expire_seconds
    return None if expiry is None else config.labels.buffer_max / expiry


def foresee(config: PartitionConfig, traffic: Traffic, *, seeded: bool) -> list[Foreseen]:
    """What will hurt. `seeded`: the model begins with a threshold, from a file or a checkpoint."""
    found = [_room(config, traffic.per_s), _delay(config, traffic)]
    return [problem for problem in (*found, None if seeded else _first_alarm(config, traffic)) if problem is not None]


def _room(config: PartitionConfig, per_s: float) -> Foreseen | None:
    labels = config.labels
    enough = enough_per_s(config)
    if enough is None or labels.expire_seconds is None or per_s <= enough:
        return None
    needed = per_s * labels.expire_seconds
    share = 1.0 - labels.buffer_max / needed
    return Foreseen(
        f"labels.buffer_max: at {per_s:g} observations/s and an expiry of {duration(labels.expire_seconds)} a "
        f"partition needs room for {_count(needed)}, and has it for {_count(labels.buffer_max)}: "
        f"{_percent(share)} of them will be {_fate(config)} within {duration(labels.buffer_max / per_s)}",
        "raise it, shorten labels.expire_seconds, spread the topic over more partitions, or send features back with "
        "labels (kind: label)",
    )


def _delay(config: PartitionConfig, traffic: Traffic) -> Foreseen | None:
    delay, wait = traffic.label_delay_s, wait_s(config, traffic.per_s)
    if delay is None or delay <= wait:
        return None
    return Foreseen(
        f"labels: those that come after {duration(delay)} find nothing: observations wait for {duration(wait)} at most "
        f"and are then {_fate(config)}",
        "raise labels.buffer_max or the expiry, or send features back with labels (kind: label)",
    )


def _first_alarm(config: PartitionConfig, traffic: Traffic) -> Foreseen | None:
    """With control fpr the threshold waits for labelled non-targets."""
    params = config.params
    if params.preset == "paper" or params.control != "fpr":
        return None
    firsts = [] if traffic.label_delay_s is None else [traffic.label_delay_s]
    firsts += [wait_s(config, traffic.per_s)] if config.labels.on_expiry == "negative" else []
    warmup = rule_of(params.tau, params.budget, params.charge, params.control).warmup
    if not firsts or min(firsts) + warmup / traffic.per_s < _PATIENT_S:
        return None
    return Foreseen(
        f"model.control: no alarm within the first {duration(min(firsts) + warmup / traffic.per_s)}: the threshold "
        f"waits for {warmup} labelled non-targets, and the first come after {duration(min(firsts))}",
        "use `model.control: alarm_rate`, or `start_from` a model that was trained on past events",
    )


def _fate(config: PartitionConfig) -> str:
    """Of observations whose label has not come in time."""
    return "learned as non-targets" if config.labels.on_expiry == "negative" else "forgotten without their labels"


def duration(seconds: float) -> str:
    """In the largest unit that it has at least one of."""
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), (1.0, "second"))
    amount = f"{seconds / size:.1f}".removesuffix(".0")
    return f"{amount} {unit}" if amount == "1" else f"{amount} {unit}s"


def _count(number: float) -> str:
    return f"{number / 1e6:,.0f} million" if number >= 10e6 else f"{number:,.0f}"


def _percent(share: float) -> str:
    """Rounded down: nearly all is not all."""
    return f"{int(share * 1000) / 10:g}%"
