"""A label that brings its event back, in any format: the event once more as it came, with a header that has the label.

The header `npstream-learn` holds `1` for a target and `-1` for a non-target. It
counts instead of what the event itself says of its label; nothing is published.
"""

from collections.abc import Sequence
from itertools import chain
from operator import itemgetter

from npstream.codec.event import Decoded, Kind, shown
from npstream.errors import BadEvent
from npstream.records import Headers, Record

LEARN_HEADER = "npstream-learn"

_SIGNS: dict[bytes | None, int] = {b"1": 1, b"-1": -1}
_ID_HEADER = "id"


def labelled_again(record: Record, sign: int) -> tuple[bytes | None, bytes | None, Headers]:
    """Key, value and headers of an event, given back with its label; of its headers, the one that raw vectors need."""
    own = [header for header in record.headers if header[0] == _ID_HEADER]
    return record.key, record.value, [*own, (LEARN_HEADER, b"%d" % sign)]


def apply_learn_headers(records: Sequence[Record], decoded: Decoded) -> None:
    """Make labels of the events that come with the header, in place."""
    headers = [*map(itemgetter(4), records)]
    if not any(headers) or LEARN_HEADER not in {*map(itemgetter(0), chain.from_iterable(headers))}:
        return
    for index, own in enumerate(headers):
        given = [content for name, content in own if name == LEARN_HEADER]
        if given:
            _apply(decoded, index, given[-1])


def _apply(decoded: Decoded, index: int, content: bytes | None) -> None:
    decoded.bad_ids.pop(index, None)  # nobody awaits a decision on a label
    if decoded.kinds[index] == Kind.BAD:
        return
    sign = _SIGNS.get(content)
    if sign is None:
        detail = f"the header {LEARN_HEADER} is {shown(content)}; use 1 for a target, -1 for a non-target"
        decoded.kinds[index], decoded.ids[index] = int(Kind.BAD), None
        decoded.x[index], decoded.score[index], decoded.y[index] = 0.0, 0.0, 0
        decoded.errors[index] = BadEvent("bad_label", detail)
        return
    decoded.y[index] = sign
    if decoded.kinds[index] != Kind.LABEL:
        decoded.kinds[index] = int(Kind.ECHO)
