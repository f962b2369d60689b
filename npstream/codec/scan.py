"""The commonest JSON events read by compiled code, without a Python object for each number.

    {"id":"a1","x":[0.3,-1.25e-3],"y":-1}

Exactly this shape and no other: these keys in this order, no spaces, a plain
ASCII id, `y` one of 1, 0, -1, null or left out. Whatever else JSON allows is
left to a parser that knows all of it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from npstream.codec.decimal import to_double
from npstream.jit import DISABLED, jit

Text = NDArray[np.uint8]

_ID, _X, _Y, _END = (np.frombuffer(part, np.uint8) for part in (b'{"id":"', b'","x":[', b'],"y":', b"]}"))
_LABELS = tuple(np.frombuffer(part, np.uint8) for part in (b"1}", b"0}", b"-1}", b"null}"))
ID_BEGIN = len(_ID)
"""Where the id begins in each event."""

_QUOTE, _BACKSLASH, _MINUS, _PLUS, _POINT, _COMMA, _ZERO, _NINE = b'"\\-+.,09'
_SMALL_E, _LARGE_E = b"eE"
_DIGITS_MAX = 19
_EXPONENT_DIGITS_MAX = 4


class Scanned(NamedTuple):
    """Where each event's id ends, counted from the event's begin; features [n, d]; labels, 0 where there is none."""

    id_ends: NDArray[np.int64]
    x: NDArray[np.float64]
    y: NDArray[np.int8]


def read_events(values: Sequence[bytes], sizes: Sequence[int], d: int, id_max: int) -> Scanned | None:
    """What a batch of events holds; None when one of them has another shape, or code is not compiled."""
    if DISABLED:  # the arithmetic of `to_double` wraps around, which Python's own numbers do not
        return None
    n = len(values)
    found = Scanned(np.empty(n, np.int64), np.empty((n, d)), np.empty(n, np.int8))
    text = np.frombuffer(b"".join(values), np.uint8)
    return found if _scan(text, np.cumsum(sizes, dtype=np.int64), id_max, found) else None


@jit
def _scan(text: Text, ends: NDArray[np.int64], id_max: int, found: Scanned) -> bool:
    """Read the events that lie one after another in `text`, event e up to ends[e]; False when one has another shape."""
    id_ends, x, y = found.id_ends, found.x, found.y
    begin = 0
    for e in range(ends.size):
        end = ends[e]
        at = _past_id(text, begin, end, id_max)
        if at < 0:
            return False
        id_ends[e] = at - begin
        at = _past(text, at, end, _X)
        for i in range(x.shape[1]):  # where one is missing, `at` stays -1 until the label is not found
            if i > 0:
                at = at + 1 if 0 <= at < end and text[at] == _COMMA else -1
            at, x[e, i] = _number(text, at, end)
        label = _label(text, at, end)
        if label > 1:
            return False
        y[e] = label
        begin = end
    return True


@jit
def _past(text: Text, at: int, end: int, literal: Text) -> int:
    """Where `literal` ends when it stands at `at`, else -1."""
    if at < 0 or at + literal.size > end:
        return -1
    for i in range(literal.size):
        if text[at + i] != literal[i]:
            return -1
    return at + literal.size


@jit
def _past_id(text: Text, begin: int, end: int, id_max: int) -> int:
    """Where the id ends, -1 when there is none or it is not plain."""
    first = at = _past(text, begin, end, _ID)
    if at < 0:
        return -1
    while at < end and 32 <= text[at] < 127 and text[at] != _QUOTE and text[at] != _BACKSLASH:
        at += 1
    return at if 0 < at - first <= id_max else -1


@jit
def _label(text: Text, at: int, end: int) -> int:
    """The label with which an event ends at `end`: 1, -1, 0 for none; 2 when it ends otherwise."""
    if _past(text, at, end, _END) == end:
        return 0
    at = _past(text, at, end, _Y)
    if _past(text, at, end, _LABELS[0]) == end:
        return 1
    if _past(text, at, end, _LABELS[1]) == end or _past(text, at, end, _LABELS[2]) == end:
        return -1
    return 0 if _past(text, at, end, _LABELS[3]) == end else 2


@jit
def _number(text: Text, at: int, end: int) -> tuple[int, float]:
    """(where it ends, its value); -1 for what is no number, or one that takes a better parser."""
    negative = 0 <= at < end and text[at] == _MINUS
    if negative:
        at += 1
    first = at
    at, digits, count = _digits(text, at, end, np.uint64(0), 0)
    if at < 0 or (text[first] == _ZERO and at > first + 1):
        return -1, 0.0
    q = 0
    if at < end and text[at] == _POINT:
        point = at
        at, digits, count = _digits(text, at + 1, end, digits, count)
        q = point + 1 - at
    if 0 <= at < end and (text[at] == _SMALL_E or text[at] == _LARGE_E):
        at, exponent = _exponent(text, at + 1, end)
        q += exponent
    if at < 0 or count > _DIGITS_MAX or (negative and digits == 0):
        return -1, 0.0
    value = to_double(digits, q) if digits > 0 else 0.0
    if value != value:
        return -1, 0.0
    return at, -value if negative else value


@jit
def _digits(text: Text, at: int, end: int, digits: np.uint64, count: int) -> tuple[int, np.uint64, int]:
    """Read on: (where they end or -1 when there are none, all digits so far, how many of them count)."""
    first = at
    while 0 <= at < end and _ZERO <= text[at] <= _NINE:
        digits = digits * np.uint64(10) + np.uint64(text[at] - _ZERO)
        if digits > 0 or count > 0:  # too many of them may wrap around to 0
            count += 1
        at += 1
    return (at if at > first else -1), digits, count


@jit
def _exponent(text: Text, at: int, end: int) -> tuple[int, int]:
    """(where it ends or -1 when there is none, the power of ten)."""
    negative = at < end and text[at] == _MINUS
    if at < end and (text[at] == _MINUS or text[at] == _PLUS):
        at += 1
    at, digits, count = _digits(text, at, end, np.uint64(0), 0)
    if count > _EXPONENT_DIGITS_MAX:
        return -1, 0
    power = np.int64(digits)
    return at, int(-power if negative else power)
