"""Planned repositions as text and as JSON."""

from collections.abc import Sequence
from typing import Any

from npstream.history.reposition import Reposition

_SENTENCES = {
    "rollback": "roll back from offset {origin} to offset {to}",
    "fresh": "is at offset {origin}, start over at offset {to}",
    "kept": "is at offset {origin}, go on at offset {to} with the same model",
    "recover": "recover at offset {to}",
}


def repositions_json(planned: Sequence[Reposition], *, executed: bool) -> dict[str, Any]:
    """Every number, for scripts."""
    return {
        "executed": executed,
        "partitions": [
            {
                "partition": item.partition,
                "how": item.how,
                "from": item.origin,
                "to": item.to,
                "replayed": item.replayed,
                "decided_again": max(0, item.origin - item.to),
                "skipped": max(0, item.to - item.origin),
                "note": item.note,
            }
            for item in planned
        ],
    }


def repositions_text(planned: Sequence[Reposition], decisions: str, *, executed: bool) -> str:
    """What happens to each partition and to the decisions topic, in words."""
    lines = [line for item in planned for line in _lines(item, decisions)]
    if not planned:
        lines.append("nothing to do")
    elif executed:
        lines.append("done: the next worker starts there; `npstream inspect --partition P --history` lists it")
    else:
        lines.append("dry run: nothing was changed; stop all workers and add --execute to do it")
    return "\n".join(lines)


def _lines(item: Reposition, decisions: str) -> list[str]:
    replayed = f" ({item.replayed} offsets replayed in silence)" if item.replayed else ""
    sentence = _SENTENCES[item.how].format(origin=item.origin, to=item.to)
    lines = [f"partition {item.partition}: {sentence}{replayed}"]
    if item.to < item.origin:
        lines.append(
            f"  up to {item.origin - item.to} events will be decided again; their decisions are published a second "
            f"time, and those already in {decisions} stay: readers see both"
        )
    return [*lines, f"  {item.note}"]
