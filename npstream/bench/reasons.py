"""What reasons of alarms cost: the same events through a partition without and with them, batch by batch in turns."""

import math
import time
from collections.abc import Sequence
from typing import Any

from npstream.bench.events import FIRST_MS, bench_config, bench_events
from npstream.bench.kernel import Clock
from npstream.model import Params
from npstream.partition import PartitionConfig, PartitionProcessor
from npstream.records import Record

REASONS = 3
_ALARM_RATE = 0.01
_BATCH = 1_000


def bench_reasons(
    *, events: int = 50_000, rounds: int = 5, tau: float = _ALARM_RATE, clock: Clock = time.process_time
) -> dict[str, Any]:
    """Microseconds per event from bytes to bytes, without a broker, when about a share tau is an alarm.

    `throughput` is the share of it that is left with reasons. Processor time, and the best round of each batch, so
    that other load on the machine disturbs both little and alike.
    """
    params = Params(d=8, D=100, tau=tau, control="alarm_rate")
    plain = PartitionConfig(params=params, events=bench_config("compact").events)
    both = plain, PartitionConfig(params=params, events=plain.events, reasons=REASONS)
    batches = _batches(events)
    best = [[math.inf] * len(batches) for _ in both]
    alarms = 0
    for turn in range(rounds):
        machines = [PartitionProcessor.cold(config, "bench", "events", 0, 0, None) for config in both]
        for at, batch in enumerate(batches):
            for side in (0, 1) if (at + turn) % 2 == 0 else (1, 0):
                began = clock()
                machines[side].process(batch)
                best[side][at] = min(best[side][at], clock() - began)
        alarms = machines[0].tally.alarms
    without, reasoned = (sum(seconds) for seconds in best)
    return {
        "events": events,
        "alarm_share": round(alarms / events, 4),
        "us_per_event": round(1e6 * without / events, 3),
        "us_with_reasons": round(1e6 * reasoned / events, 3),
        "us_per_alarm": round(1e6 * (reasoned - without) / max(alarms, 1), 1),
        "throughput": round(without / reasoned, 4),
    }


def _batches(events: int) -> Sequence[list[Record]]:
    values = bench_events(events, "compact")
    records = [Record(i, FIRST_MS + i, b"%d" % i, value, headers) for i, (value, headers) in enumerate(values)]
    return [records[at : at + _BATCH] for at in range(0, events, _BATCH)]
