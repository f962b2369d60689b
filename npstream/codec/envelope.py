"""What surrounds the value of a published record: its timestamp, and headers that lead back to the event."""

from collections.abc import Sequence
from itertools import chain
from operator import itemgetter

from npstream.codec.cells import cells
from npstream.records import Headers

OFFSET_HEADER = "npstream-offset"
"""The input offset, in decimal: with it progress can be found again from the outputs alone."""

LABELS_HEADER = "npstream-labels"
"""On decisions, where labels have a topic: the offset of that topic below which labels were learned before it."""

BEFORE_HEADER = "npstream-before"
"""On dead letters of the labels topic: the offset of the observation that they were read before."""

TRACE_HEADERS = (
    "traceparent",
    "tracestate",
    "baggage",
    "b3",
    "x-b3-traceid",
    "x-b3-spanid",
    "x-b3-parentspanid",
    "x-b3-sampled",
    "x-b3-flags",
)
"""Headers of the event that its decision carries on, compared without regard to case (W3C and Zipkin)."""

_TRACE_HEADERS = frozenset(TRACE_HEADERS)


def published_timestamp(timestamp_ms: int) -> int:
    """The event's own time; at or below zero becomes 1, because Kafka clients read 0 as "now"."""
    return timestamp_ms if timestamp_ms > 0 else 1


def many_decision_headers(
    offsets: Sequence[int], event_headers: Sequence[Headers], next_labels: Sequence[int] | None = None
) -> list[list[tuple[str, bytes | None]]]:
    """`decision_headers` of many events, without a look at each when none of them is traced."""
    headers: list[list[tuple[str, bytes | None]]] = [[(OFFSET_HEADER, text)] for text in cells(offsets)]
    if next_labels is not None:
        for made, text in zip(headers, cells(next_labels), strict=True):
            made.append((LABELS_HEADER, text))
    names = {*map(itemgetter(0), chain.from_iterable(event_headers))} if any(event_headers) else ()
    if any(name.lower() in _TRACE_HEADERS for name in names):
        for made, own in zip(headers, event_headers, strict=True):
            made.extend(header for header in own if header[0].lower() in _TRACE_HEADERS)
    return headers


def decision_headers(
    offset: int, event_headers: Headers, next_label: int | None = None
) -> list[tuple[str, bytes | None]]:
    """The input offset, the label offset where labels have a topic, then the event's trace headers as they came."""
    headers: list[tuple[str, bytes | None]] = [(OFFSET_HEADER, b"%d" % offset)]
    if next_label is not None:
        headers.append((LABELS_HEADER, b"%d" % next_label))
    for header in event_headers:
        if header[0].lower() in _TRACE_HEADERS:
            headers.append(header)
    return headers
