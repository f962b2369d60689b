"""What a challenger costs per event: a processor with one beside the same without, measured in the same run."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from npstream.bench.events import FIRST_MS, bench_config, bench_events
from npstream.bench.kernel import Clock, fastest
from npstream.codec.decoder import EventConfig
from npstream.codec.features import Feature
from npstream.partition import PartitionConfig, PartitionProcessor
from npstream.partition.config import ChallengerConfig
from npstream.records import Record

_WAY = 20_000
"""Events that each processor has learned before the clock begins: no warm-up is measured."""


def bench_challenger(*, batch: int = 2_000, rounds: int = 30, clock: Clock = time.perf_counter) -> list[dict[str, Any]]:
    """One row per processor: `us_per_event`, and that to the one `without` a challenger. The best of `rounds` counts.

    Every event is decoded, decided, learned and made a decision of.
    """
    cases = _cases()
    machines = [PartitionProcessor.cold(config, "g", "t", 0, 0, None) for config in cases.values()]
    for machine in machines:
        for begin in range(0, _WAY, batch):
            machine.process(_records(begin, batch))
    work = [_further(machine, batch) for machine in machines]
    found = [1e6 * seconds / batch for seconds in fastest(work, rounds, clock)]
    return [
        {"challenger": name, "batch": batch, "us_per_event": round(us, 3), "to_without": round(us / found[0], 3)}
        for name, us in zip(cases, found, strict=True)
    ]


def _cases() -> dict[str, PartitionConfig]:
    alone = bench_config("compact")
    same, params = alone.events, alone.params
    columns = tuple(Feature(name=f"x{i}", kind="number", path=f"x[{i}]") for i in range(params.d))
    rivals = {
        "another tau": ChallengerConfig(params=replace(params, tau=0.02), events=same),
        "twice the units": ChallengerConfig(params=replace(params, D=2 * params.D), events=same),
        "other features": ChallengerConfig(params=params, events=EventConfig(d=params.d, mapping=columns)),
    }
    return {"without": alone} | {name: replace(alone, challenger=rival) for name, rival in rivals.items()}


def _records(begin: int, count: int) -> list[Record]:
    events = bench_events(count, "compact", seed=begin)
    return [Record(begin + i, FIRST_MS + i, b"%d" % i, value, headers) for i, (value, headers) in enumerate(events)]


def _further(machine: PartitionProcessor, batch: int) -> Callable[[], object]:
    """The same events at later offsets, each time it is called."""
    events = _records(0, batch)

    def once() -> None:
        begin = machine.next_offset
        machine.process([record._replace(offset=begin + i) for i, record in enumerate(events)])

    return once
