"""JSON events read by compiled code, without a Python object for each value.

Walks any JSON object for the paths asked for: keys in any order, white space,
nesting, members that nobody asks for. It decides what is a good event; whatever
else it meets (a bad event, escapes in a needed string, more digits than a double
holds, a key that is there twice) it leaves, that event alone, to the reader that
knows every rule.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from npstream.codec.categories import start_of_key
from npstream.codec.event import ID_MAX_BYTES, MAGNITUDE_MAX, EventConfig, EventId, Kind
from npstream.codec.features import LABEL_NUMBER_MAX
from npstream.codec.path_tables import CATEGORY, FLAG, ID, KIND, LABEL, TIME, PathTables, tables_of
from npstream.codec.times import TIME_LIMIT
from npstream.codec.tokens import (
    COLON,
    COMMA,
    MINUS,
    QUOTE,
    ZERO,
    Index,
    Text,
    code_of_token,
    past_number,
    past_space,
    past_string,
    seconds_of_token,
    seconds_of_value,
)
from npstream.jit import jit, jit_inline

ODD = -2
"""The kind of an event that is left to the other reader."""

_DEPTH_MAX = 64
_TRIES_MAX = 256
"""Edges of a node that are compared with a key: a hostile order of very many keys goes to the other reader."""

_TEXT, _NUMBER, _TRUE, _FALSE, _NULL, _NOTHING = range(6)
_NO_ID, _TEXT_ID, _WHOLE_ID = range(3)
_BRACE, _BRACE_END, _BRACKET, _BRACKET_END, _LINE = b"{}[]\n"
_LITERALS = tuple(np.frombuffer(word, np.uint8) for word in (b"true", b"false", b"null"))
_LABEL_WORD = np.frombuffer(b"label", np.uint8)
_MAGNITUDE_MAX, _TIME_LIMIT, _LABEL_MAX = MAGNITUDE_MAX, TIME_LIMIT, float(LABEL_NUMBER_MAX)
_ID_MAX = ID_MAX_BYTES
_OBSERVATION, _LABELLED, _LABEL_ALONE, _ECHO = (
    int(kind) for kind in (Kind.OBSERVATION, Kind.LABELLED, Kind.LABEL, Kind.ECHO)
)


class Walked(NamedTuple):
    """One row per event: its kind or `ODD`, label, type of its id, raw values. `id_text` has the ids, a line each."""

    kinds: NDArray[np.int8]
    y: NDArray[np.int8]
    id_type: NDArray[np.int8]
    id_text: NDArray[np.uint8]
    values: NDArray[np.float64]


class _Desk(NamedTuple):
    """Room to work in: open containers by depth, the edge to try first and the last event at each node.

    `identity` int64[2] is where the id of an event, if it has one, begins and ends.
    """

    nodes: NDArray[np.int32]
    places: NDArray[np.int64]
    hints: NDArray[np.int32]
    met: NDArray[np.int64]
    identity: NDArray[np.int64]


class Walker:
    """Reads batches as one `EventConfig` says."""

    def __init__(self, config: EventConfig) -> None:
        self._tables = tables_of(config)
        self._start = np.uint64(start_of_key(config.key))
        self._width = config.width
        count = len(self._tables.vector)
        self._desk = _Desk(
            np.zeros(_DEPTH_MAX, np.int32),
            np.zeros(_DEPTH_MAX, np.int64),
            self._tables.edges[:-1].copy(),
            np.zeros(count, np.int64),
            np.zeros(2, np.int64),
        )

    def walk(self, values: Sequence[bytes]) -> tuple[Walked, list[EventId | None]]:
        """Everything about the events that are not odd, and their ids."""
        n = len(values)
        joined = b"\0".join([*values, b""])
        ends = np.cumsum(np.fromiter(map(len, values), np.int64, n) + 1) - 1
        found = Walked(
            np.empty(n, np.int8),
            np.zeros(n, np.int8),
            np.zeros(n, np.int8),
            np.empty(len(joined), np.uint8),
            np.empty((n, self._width)),
        )
        self._desk.met.fill(-1)
        used = _walk(np.frombuffer(joined, np.uint8), ends, self._tables, self._start, found, self._desk)
        return found, _ids(found.id_text[:used], found.id_type)


def _ids(text: Text, types: NDArray[np.int8]) -> list[EventId | None]:
    ids: list[EventId | None] = [*text.tobytes().decode().split("\n")]
    ids.pop()  # every id ends its line
    for index in np.flatnonzero(types != _TEXT_ID).tolist():
        ids[index] = int(ids[index] or "") if types[index] == _WHOLE_ID else None
    return ids


@jit
def _walk(text: Text, ends: NDArray[np.int64], tables: PathTables, start: np.uint64, found: Walked, desk: _Desk) -> int:
    """Read the events that lie in `text`, event e up to ends[e], each with a zero behind it; the size of all ids."""
    begin = used = 0
    for e in range(ends.size):
        kind = _event(text, begin, ends[e], e, tables, start, found, desk)
        found.kinds[e] = kind
        if kind == ODD:
            found.id_type[e] = _NO_ID
        if found.id_type[e] != _NO_ID:
            for at in range(desk.identity[0], desk.identity[1]):
                found.id_text[used] = text[Index(at)]
                used += 1
        found.id_text[used] = _LINE  # no string of JSON holds one
        used += 1
        begin = ends[e] + 1
    return used


@jit_inline
def _event(
    text: Text,
    begin: int,
    end: int,
    e: int,
    tables: PathTables,
    start: np.uint64,
    found: Walked,
    desk: _Desk,
) -> int:
    """The kind of one event, or `ODD`; the rest is put into its row of `found`, and where its id is on the desk."""
    values = found.values
    for f in range(values.shape[1]):
        values[e, f] = np.nan
    label, says_label, has_x = 0, False, False
    at = past_space(text, begin)
    if text[Index(at)] != _BRACE:
        return ODD
    at += 1
    # The open container: its node (-1 when nobody asks for anything below), and the place in an array (-1: an object).
    depth, node, place, fresh = 0, 0, -1, True
    while True:
        at = past_space(text, at)
        if text[Index(at)] == (_BRACE_END if place < 0 else _BRACKET_END):
            at += 1
            if depth == 0:
                break
            depth -= 1
            node, place, fresh = desk.nodes[Index(depth)], desk.places[Index(depth)], False
            continue
        if not fresh:
            if text[Index(at)] != COMMA:
                return ODD
            at = past_space(text, at + 1)
            place += place >= 0
        fresh, child = False, -1
        if place < 0:
            if text[Index(at)] != QUOTE:
                return ODD
            at += 1
            size = _next_key(text, at, node, tables, desk.hints) if node >= 0 else -1
            if size >= 0:
                child = tables.edge_node[Index(desk.hints[Index(node)])]
                desk.hints[Index(node)] += 1
                at += size
            else:
                key = at
                at, plain = past_string(text, key)
                if at < 0 or (node >= 0 and not plain):
                    return ODD
                if node >= 0:
                    child = _by_key(text, key, at - key, node, tables, desk.hints)
            at = past_space(text, at + 1)
            if text[Index(at)] != COLON:
                return ODD
            at = past_space(text, at + 1)
        elif node >= 0:
            child = _by_index(place, node, tables)
        if child >= 0:
            if desk.met[Index(child)] == e:
                return ODD  # the key is there twice
            desk.met[Index(child)] = e
        elif child < -1:
            return ODD
        opening = text[Index(at)]
        if opening in (_BRACE, _BRACKET):
            if child >= 0:
                if tables.wants[Index(child)] != tables.wants[Index(child + 1)]:
                    return ODD
                if tables.vector[Index(child)] >= 0:
                    has_x = True
                    if opening == _BRACKET:
                        at = _vector(text, at + 1, tables.vector[Index(child)], e, values)
                        if at < 0:
                            return ODD
                        continue
            if depth == _DEPTH_MAX:
                return ODD
            desk.nodes[Index(depth)], desk.places[Index(depth)] = node, place
            depth += 1
            node, place, fresh = child, 0 if opening == _BRACKET else -1, True
            at += 1
            continue
        first = at
        token, at, number, whole, plain = _scalar(text, at)
        if token == _NOTHING:
            return ODD
        if child < 0 or token == _NULL:
            continue
        if tables.vector[Index(child)] >= 0 or not plain:
            return ODD
        last = at
        if token == _TEXT:
            first, last = first + 1, last - 1
        for w in range(tables.wants[Index(child)], tables.wants[Index(child + 1)]):
            want = tables.want[Index(w)]
            if want == ID:
                if token == _TEXT and 0 < last - first <= _ID_MAX:
                    found.id_type[e] = _TEXT_ID
                elif token == _NUMBER and whole:
                    found.id_type[e] = _WHOLE_ID
                else:
                    return ODD
                desk.identity[0], desk.identity[1] = first, last
            elif want == LABEL:
                label = _sign(text, first, last, token, number, tables)
                if label == 0:
                    return ODD
            elif want == KIND:
                if token != _TEXT or not _is_word(text, first, last - first, _LABEL_WORD):
                    return ODD
                says_label = True
            else:
                value = _value(text, first, last, want, token, number, whole, start)
                if value != value:
                    return ODD
                values[e, tables.feature[Index(w)]] = value
    if past_space(text, at) != end:
        return ODD
    has_values, complete = has_x, True
    for f in range(values.shape[1]):
        if values[e, f] == values[e, f]:
            has_values = True
        elif not tables.may_miss[f]:
            complete = False
    found.y[e] = label
    if has_values and not complete:
        return ODD
    if label == 0:
        return _OBSERVATION if has_values and not says_label else ODD
    if has_values:
        return _ECHO if says_label else _LABELLED
    return _LABEL_ALONE if found.id_type[e] != _NO_ID else ODD


@jit_inline
def _next_key(text: Text, at: int, node: int, tables: PathTables, hints: NDArray[np.int32]) -> int:
    """The size of the key that came next last time, when it is here again; else -1."""
    edge = hints[Index(node)]
    if edge >= tables.edges[Index(node + 1)]:
        return -1
    size, other, same = tables.key_size[Index(edge)], tables.key_begin[Index(edge)], 0
    while same < size and text[Index(at + same)] == tables.keys[Index(other + same)]:
        same += 1
    return int(size) if same == size and text[Index(at + same)] == QUOTE else -1


@jit_inline
def _by_key(text: Text, begin: int, size: int, node: int, tables: PathTables, hints: NDArray[np.int32]) -> int:
    """The node that a key leads to, -1 for none, -2 when that takes too long."""
    first, last = tables.edges[Index(node)], tables.edges[Index(node + 1)]
    edge = hints[Index(node)]
    for _ in range(min(last - first, _TRIES_MAX)):
        if edge >= last:
            edge = first
        if tables.key_size[Index(edge)] == size:
            other, same = tables.key_begin[Index(edge)], 0
            while same < size and text[Index(begin + same)] == tables.keys[Index(other + same)]:
                same += 1
            if same == size:
                hints[Index(node)] = edge + 1
                return int(tables.edge_node[Index(edge)])
        edge += 1
    return -1 if last - first <= _TRIES_MAX else -2


@jit_inline
def _by_index(place: int, node: int, tables: PathTables) -> int:
    """The node that an element of an array leads to, -1 for none."""
    for edge in range(tables.edges[Index(node)], tables.edges[Index(node + 1)]):
        if tables.edge_index[edge] == place:
            return int(tables.edge_node[Index(edge)])
    return -1


@jit
def _vector(text: Text, at: int, count: int, e: int, values: NDArray[np.float64]) -> int:
    """After an array of `count` numbers, put into row e; -1 when it is another."""
    for f in range(count):
        at, value, _ = past_number(text, past_space(text, at))
        if at < 0 or abs(value) > _MAGNITUDE_MAX:
            return -1
        values[e, f] = value
        at = past_space(text, at)
        if text[Index(at)] != (COMMA if f + 1 < count else _BRACKET_END):
            return -1
        at += 1
    return at


@jit_inline
def _scalar(text: Text, at: int) -> tuple[int, int, float, bool, bool]:
    """(type, where it ends, value as a number, whether it is a short integer, whether it has no escapes)."""
    first = text[Index(at)]
    if first == QUOTE:
        at, plain = past_string(text, at + 1)
        return (_TEXT, at + 1, 0.0, False, plain) if at >= 0 else (_NOTHING, at, 0.0, False, False)
    if first == MINUS or ZERO <= first < ZERO + 10:
        at, number, whole = past_number(text, at)
        return _NUMBER if at >= 0 else _NOTHING, at, number, whole, True
    if _is_literal(text, at, _LITERALS[0]):
        return _TRUE, at + 4, 1.0, False, True
    if _is_literal(text, at, _LITERALS[1]):
        return _FALSE, at + 5, 0.0, False, True
    if _is_literal(text, at, _LITERALS[2]):
        return _NULL, at + 4, 0.0, False, True
    return _NOTHING, at, 0.0, False, False


@jit
def _is_literal(text: Text, at: int, word: Text) -> bool:
    same = 0
    while same < word.size and text[Index(at + same)] == word[same]:
        same += 1
    return same == word.size


@jit
def _is_word(text: Text, at: int, size: int, word: Text) -> bool:
    return size == word.size and _is_literal(text, at, word)


@jit_inline
def _sign(text: Text, first: int, last: int, token: int, number: float, tables: PathTables) -> int:
    """1 or -1 by the rule of the label, 0 for a value that it does not know."""
    if token == _TEXT:
        begin = 0
        for i in range(tables.label_text_signs.size):
            if _is_word(text, first, last - first, tables.label_texts[begin : tables.label_text_ends[i]]):
                return int(tables.label_text_signs[i])
            begin = tables.label_text_ends[i]
        return 0
    if abs(number) < _LABEL_MAX:
        for i in range(tables.label_number_signs.size):
            if tables.label_numbers[i] == number:
                return int(tables.label_number_signs[i])
    return 0


@jit
def _value(
    text: Text, first: int, last: int, want: int, token: int, number: float, whole: bool, start: np.uint64
) -> float:
    """The raw value of a feature; NaN for what needs a closer look."""
    if want == CATEGORY:
        if token == _NUMBER and not (whole and not (text[Index(first)] == MINUS and number == 0.0)):
            return np.nan
        return code_of_token(text, first, last, start)
    if want == TIME:
        if token == _TEXT:
            return seconds_of_token(text, first, last)
        return seconds_of_value(number) if token == _NUMBER and abs(number) < _TIME_LIMIT else np.nan
    if want == FLAG:
        if token != _TEXT and (number == 0.0 or number == 1.0):
            return 1.0 if number == 1.0 else 0.0
        return np.nan
    return number if token == _NUMBER and abs(number) <= _MAGNITUDE_MAX else np.nan
