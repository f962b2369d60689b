"""How long it takes to explain one decision of a large topic, found by its id."""

import time
import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from npstream.bench.bare import Replies
from npstream.bench.events import bench_config, bench_events
from npstream.bench.loops import LoopProcess, LoopSpec
from npstream.bench.scratch import fill, make_topics, try_remove
from npstream.errors import Retryable
from npstream.history.explain import explain
from npstream.history.find_decision import Sought, find_decisions
from npstream.history.rebuild import read_past
from npstream.kafka import KafkaConfig, KafkaLog
from npstream.port import Log
from npstream.records import Topics
from npstream.worker import Limits
from npstream.worker.warm import warm_up

STEP_MS = 1_000
"""Between two events, by their own time: a day of archived checkpoints is 86,400 events."""
_MINUTE_MS = 60_000
_PLACES = (0.02, 0.3, 0.5, 0.77, 0.99)
_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class ExplainBench:
    """Which broker, and how many events in the one partition."""

    bootstrap: str
    events: int = 1_000_000


def bench_explain(bench: ExplainBench, progress: Callable[[str], None]) -> dict[str, Any]:
    """Seconds to find and explain a decision, and with a time range of a minute: the slowest of several places.

    `cpu` is processor time of the same, all threads: what it takes when nothing else runs. The start of a program,
    half a second to a second, is not included. Raises `Retryable` or `Fatal` when the broker cannot be used.
    """
    name = f"npstream-bench-explain-{uuid.uuid4().hex[:8]}"
    topics = Topics(*(f"{name}.{kind}" for kind in ("events", "decisions", "dead", "checkpoints")))
    kafka = KafkaConfig(bench.bootstrap, name, "bench", topics, static_membership=False)
    config = bench_config("compact")
    first_ms = int(1000 * time.time()) - bench.events * STEP_MS
    warm_up(config)
    try:
        make_topics(kafka, 1)
        ends = fill(kafka, 1, bench_events(bench.events, "compact"), first_ms, STEP_MS)
        progress(f"{bench.events:,} events are written")
        nothing = Replies([], b"", "")
        spec = LoopSpec(kind="worker", kafka=kafka, config=config, replies=nothing, limits=Limits(), ends=ends)
        with LoopProcess(spec) as loop:
            loop.result(_PATIENCE_S + bench.events / 500)
        progress("and decided")
        with closing(KafkaLog(kafka)) as log:
            return _measured(log, kafka, bench.events, first_ms, progress)
    finally:
        try_remove(kafka, topics.names(), name)


def _measured(
    log: Log, kafka: KafkaConfig, events: int, first_ms: int, progress: Callable[[str], None]
) -> dict[str, Any]:
    slowest = {"topic": (0.0, 0.0), "minute": (0.0, 0.0)}
    for place in _PLACES:
        number = int(place * events)
        since_ms = first_ms + number * STEP_MS - _MINUTE_MS // 2
        for kind, sought in (
            ("topic", Sought(f"event-{number}")),
            ("minute", Sought(f"event-{number}", since_ms=since_ms, until_ms=since_ms + _MINUTE_MS)),
        ):
            found = _once(log, kafka, sought)
            progress(f"event {number:,}, {kind}: {found[0]:.2f} s, processor {found[1]:.2f} s")
            slowest[kind] = max(slowest[kind][0], found[0]), max(slowest[kind][1], found[1])
    return {
        "events": events,
        "topic_s": round(slowest["topic"][0], 2),
        "topic_cpu_s": round(slowest["topic"][1], 2),
        "minute_s": round(slowest["minute"][0], 2),
        "minute_cpu_s": round(slowest["minute"][1], 2),
    }


def _once(log: Log, kafka: KafkaConfig, sought: Sought) -> tuple[float, float]:
    """Seconds and seconds of processor time from the question to the explanation."""
    began, used = time.perf_counter(), time.process_time()
    past = read_past(log, kafka.group, kafka.topics.events, 0)
    *_, hit = find_decisions(log, 0, sought, past.history.resets)
    found = explain(past, hit.offset)
    spent = time.perf_counter() - began, time.process_time() - used
    if found.published is not True:
        raise Retryable(
            f"the decision on {sought.id} is not the published one: look at the brokers, then measure again"
        )
    return spent
