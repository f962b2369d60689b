"""Change records: that parameters changed, where, from what to what.

One record per change in the checkpoint topic, under a key of its own, so that
compaction keeps them all and an audit knows every change. The value is JSON
with sorted keys: {"new": {...}, "offset": n, "old": {...}, "promoted": false}. A partition's first
start leaves one too, with nothing in `old`: it says where the partition began. One that
is `promoted` has a key of another kind: there the challenger of `old` took the champion's place.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from npstream.codec.chunks import ChangeKey, PromotionKey, parse_key
from npstream.errors import StateCorrupt
from npstream.records import KeyValue


@dataclass(frozen=True, slots=True)
class Change:
    """The event at `offset` is the first one decided with `new`; `old` and `new` are parameters in full.

    `old` is empty when a partition began at `offset`.
    """

    offset: int
    old: Mapping[str, Any]
    new: Mapping[str, Any]
    promoted: bool = False
    """Whether what changed is that the challenger became the champion."""

    @property
    def is_birth(self) -> bool:
        """Whether the partition began here."""
        return not self.old

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of what changed."""
        return tuple(name for name in sorted({*self.old, *self.new}) if self.old.get(name) != self.new.get(name))


def encode_change(change: Change, group: str, topic: str, partition: int) -> tuple[bytes, bytes]:
    """The (key, value) record of a change."""
    value = {"offset": change.offset, "old": dict(change.old), "new": dict(change.new), "promoted": change.promoted}
    kind = PromotionKey if change.promoted else ChangeKey
    return kind(group, topic, partition, change.offset).encode(), orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def decode_change(record: KeyValue) -> Change:
    """Read one change record. Raises `StateCorrupt`, naming the key."""
    key = parse_key(record.key)
    try:
        value = orjson.loads(record.value or b"")
        change = Change(value["offset"], value["old"], value["new"], value["promoted"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise _unreadable(record.key) from None
    if (
        not isinstance(key, PromotionKey if change.promoted else ChangeKey)
        or key.offset != change.offset
        or not (type(change.old) is type(change.new) is dict)
    ):
        raise _unreadable(record.key)
    return change


def _unreadable(key: bytes) -> StateCorrupt:
    return StateCorrupt(
        f"checkpoint record {key!r} is not a readable change record: "
        "decisions before and after it cannot be audited together; audit them by offset ranges"
    )
