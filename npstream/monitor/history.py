"""What came of the events over time, as a JSON document: what `/history` returns and the page draws."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Literal

import numpy as np
import orjson

from npstream.arrays import Ints
from npstream.monitor.http import JSON, Query, Response, text
from npstream.monitor.status import PartitionStatus
from npstream.records import COUNTED_OVER_TIME, CountsOverTime

Span = Literal["day", "month"]
SPANS: dict[str, Span] = {"day": "day", "month": "month"}
"""What may be asked for, by its name in a query."""
_UNIT_MS = {"day": 60_000, "month": 3_600_000}


def history_document(timelines: Iterable[CountsOverTime | None], span: Span) -> dict[str, Any]:
    """The sum of these, by the minute of the last day or by the hour of the last month, of event time.

    It begins where the first of them does and ends with the newest event of any.
    `counts` has a list of each kind of `COUNTED_OVER_TIME`, `unit_ms` is what one of
    its numbers covers, `begin_ms` when the first of them begins.
    """
    known = [timeline for timeline in timelines if timeline is not None and timeline.newest_ms]
    unit = _UNIT_MS[span]
    newest = max((timeline.newest_ms for timeline in known), default=0)
    rows = [_unrolled(timeline, span, newest // unit) for timeline in known]
    total = np.sum(rows, axis=0) if rows else np.zeros((0, len(COUNTED_OVER_TIME)), np.int64)
    used = np.flatnonzero(total.any(axis=1))
    begin = int(used[0]) if len(used) else len(total)
    return {
        "span": span,
        "unit_ms": unit,
        "begin_ms": (newest // unit - len(total) + 1 + begin) * unit if len(used) else None,
        "newest_ms": newest or None,
        "counts": dict(zip(COUNTED_OVER_TIME, total[begin:].T.tolist(), strict=True)),
    }


def history_response(owned: Mapping[int, PartitionStatus], query: Query) -> Response:
    """`/history`: of one partition, or of all of these. An unknown one, or another span, is refused in words."""
    span, number = SPANS.get(query.get("span", "day")), query.get("partition")
    if span is None:
        return text(HTTPStatus.NOT_FOUND, f"?span= must be one of {', '.join(SPANS)}")
    wanted = [known for known in owned.values() if number in (None, str(known.partition))]
    if number is not None and not wanted:
        return text(HTTPStatus.NOT_FOUND, f"?partition= must name one of {', '.join(map(str, owned)) or 'none'}")
    timelines = [None if known.reading is None else known.reading.timeline for known in wanted]
    return Response(HTTPStatus.OK, JSON, orjson.dumps(history_document(timelines, span)))


def _unrolled(timeline: CountsOverTime, span: Span, newest: int) -> Ints:
    """A ring in the order of time; its last row is that of `newest`, which may lie after its own."""
    ring = timeline.minutes if span == "day" else timeline.hours
    wanted = np.arange(newest - len(ring) + 1, newest + 1)
    rows = ring[wanted % len(ring)].astype(np.int64)
    rows[wanted > timeline.newest_ms // _UNIT_MS[span]] = 0
    return rows
