"""Reset records: that an operator moved a partition's position, where to, and what became of its state.

One record per reset in the checkpoint topic, under a key of its own, so that
compaction keeps them all. The value is JSON with sorted keys:
{"at_ms": n, "from": n, "how": "...", "to": n, "why": "..."}.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import orjson

from npstream.codec.chunks import ResetKey, parse_key
from npstream.errors import StateCorrupt
from npstream.records import KeyValue

How = Literal["rollback", "recover", "fresh", "kept"]


@dataclass(frozen=True, slots=True)
class Reset:
    """The partition was at `origin` and goes on at `to`.

    how   `rollback`: as it was at `to`; `recover`: as it was when the offset was lost;
          `fresh`: with a new model; `kept`: with the model it had, events in between are never learned
    """

    number: int
    origin: int
    to: int
    how: How
    at_ms: int
    why: str = ""

    @property
    def starts_over(self) -> bool:
        """Whether nothing from before it can be replayed into what came after."""
        return self.how in ("fresh", "kept")


def encode_reset(reset: Reset, group: str, topic: str, partition: int) -> tuple[bytes, bytes]:
    """The (key, value) record of a reset."""
    value = {"at_ms": reset.at_ms, "from": reset.origin, "how": reset.how, "to": reset.to, "why": reset.why}
    return ResetKey(group, topic, partition, reset.number).encode(), orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def decode_reset(record: KeyValue) -> Reset:
    """Read one reset record. Raises `StateCorrupt`, naming the key."""
    key = parse_key(record.key)
    try:
        value = orjson.loads(record.value or b"")
        origin, to, at_ms = (int(value[name]) for name in ("from", "to", "at_ms"))
        how, why = value["how"], str(value["why"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raise _unreadable(record.key) from None
    if not isinstance(key, ResetKey) or how not in get_args(How):
        raise _unreadable(record.key)
    return Reset(key.number, origin, to, how, at_ms, why)


def _unreadable(key: bytes) -> StateCorrupt:
    return StateCorrupt(
        f"checkpoint record {key!r} is not a readable reset record: it is not known which checkpoints still count; "
        "if another program wrote it, give npstream a checkpoint topic of its own (topics.checkpoints)"
    )
