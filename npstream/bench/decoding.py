"""Speed of the decoder beside a JSON parser that makes Python objects of the same bytes, measured in the same run."""

import time
from collections.abc import Callable
from typing import Any

import orjson

from npstream.bench.events import FIRST_MS, Event, Shape, bench_config, bench_events
from npstream.bench.kernel import Clock, fastest
from npstream.codec.decoder import EventDecoder
from npstream.records import Record

DECODED: tuple[Shape, ...] = ("compact", "mapped", "delayed")
_ODD_EVERY = 100


def bench_decode(*, batch: int = 2_000, rounds: int = 50, clock: Clock = time.perf_counter) -> list[dict[str, Any]]:
    """One row per shape: `us_per_event`, the same with 1% odd events and how much more that is, `orjson_us_per_event`.

    The best of `rounds` counts.
    """
    return [_row(shape, batch, rounds, clock) for shape in DECODED]


def _row(shape: Shape, batch: int, rounds: int, clock: Clock) -> dict[str, Any]:
    events = bench_events(batch, shape)
    odd = [_made_odd(event, at // _ODD_EVERY) if at % _ODD_EVERY == 0 else event for at, event in enumerate(events)]
    decoder = EventDecoder(bench_config(shape).events)
    decoder.warm_up()
    plain, mixed, values = _records(events), _records(odd), [value for value, _ in events]
    work: list[Callable[[], object]] = [
        lambda: decoder.decode(plain),
        lambda: decoder.decode(mixed),
        lambda: [*map(orjson.loads, values)],
    ]
    decode, with_odd, parse = (1e6 * seconds / batch for seconds in fastest(work, rounds, clock))
    return {
        "shape": shape,
        "batch": batch,
        "us_per_event": round(decode, 3),
        "orjson_us_per_event": round(parse, 3),
        "to_orjson": round(decode / parse, 3),
        "us_with_1%_odd": round(with_odd, 3),
        "odd_to_plain": round(with_odd / decode, 3),
    }


def _made_odd(event: Event, number: int) -> Event:
    """The same event with an escape in its id, a negative zero, or 25 digits, in turn."""
    value, headers = event
    if number % 3 == 0:
        return value.replace(b"event-", b"\\u0065vent-", 1), headers
    first = max(value.find(b'"x":[') + 5, value.find(b'"amount": ') + 10)
    last = first + min(place for place in (value[first:].find(b","), value[first:].find(b"]")) if place >= 0)
    return value[:first] + (b"-0.0" if number % 3 == 1 else b"1.123456789012345678901234") + value[last:], headers


def _records(events: list[Event]) -> list[Record]:
    return [Record(i, FIRST_MS + i, b"%d" % i, value, headers) for i, (value, headers) in enumerate(events)]
