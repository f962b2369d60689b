"""Planned moves as text and as JSON."""

from collections.abc import Sequence
from typing import Any

from npstream.history.reposition import Move

_SENTENCES = {
    "rollback": "roll back from offset {origin} to offset {to}",
    "fresh": "stands at offset {origin}, begin anew at offset {to}",
    "kept": "stands at offset {origin}, go on at offset {to} with the same model",
    "recover": "recover at offset {to}",
}


def moves_json(moves: Sequence[Move], *, executed: bool) -> dict[str, Any]:
    """Every number, for scripts."""
    return {
        "executed": executed,
        "moves": [
            {
                "partition": move.partition,
                "how": move.how,
                "from": move.origin,
                "to": move.to,
                "replayed": move.replayed,
                "decided_again": max(0, move.origin - move.to),
                "skipped": max(0, move.to - move.origin),
                "note": move.note,
            }
            for move in moves
        ],
    }


def moves_text(moves: Sequence[Move], decisions: str, *, executed: bool) -> str:
    """What happens to each partition and to the decisions topic, in words."""
    lines = [line for move in moves for line in _lines(move, decisions)]
    if not moves:
        lines.append("nothing to do")
    elif executed:
        lines.append("done: the next worker starts there; `npstream inspect --history` remembers it")
    else:
        lines.append("dry run: nothing was changed; stop all workers and add --execute to do it")
    return "\n".join(lines)


def _lines(move: Move, decisions: str) -> list[str]:
    replayed = f" ({move.replayed} offsets replayed in silence)" if move.replayed else ""
    sentence = _SENTENCES[move.how].format(origin=move.origin, to=move.to)
    lines = [f"partition {move.partition}: {sentence}{replayed}"]
    if move.to < move.origin:
        lines.append(
            f"  up to {move.origin - move.to} events will be decided again; their decisions are published a second "
            f"time, and those already in {decisions} stay: readers see both"
        )
    return [*lines, f"  {move.note}"]
