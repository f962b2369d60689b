"""An audit's verdicts for a person and for a script."""

from collections.abc import Sequence
from typing import Any

from npstream.data.lines import text_of
from npstream.errors import plural
from npstream.history.audit import Difference, RecordContent, Verdict
from npstream.records import Channel

_WORDS = {Channel.DECISIONS: "decision", Channel.DEAD_LETTERS: "dead letter"}


def audit_json(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Every number, and both records where there is a difference."""
    return {
        "holds": all(verdict.holds for verdict in verdicts),
        "decisions": sum(verdict.decisions for verdict in verdicts),
        "dead_letters": sum(verdict.dead_letters for verdict in verdicts),
        "reproduced": sum(verdict.reproduced for verdict in verdicts),
        "partitions": [_verdict_json(verdict) for verdict in verdicts],
    }


def audit_text(verdicts: Sequence[Verdict]) -> str:
    """One line per partition, then the sum, or what differs first in each."""
    lines = [_line(verdict) for verdict in verdicts]
    decisions = sum(verdict.decisions for verdict in verdicts)
    bad = sum(verdict.dead_letters for verdict in verdicts)
    if all(verdict.difference is None for verdict in verdicts):
        lines.append(f"{decisions} of {decisions} decisions and {bad} of {bad} dead letters reproduced bit for bit")
    for verdict in verdicts:
        if verdict.difference is not None:
            lines.append(_difference_text(verdict.partition, verdict.difference))
        elif verdict.proof is False:
            lines.append(
                f"partition {verdict.partition}: the state recomputed at offset {verdict.end} is not the committed "
                "one: an event that no decision has followed yet was edited, or the checkpoint was"
            )
    return "\n".join(lines)


def _line(verdict: Verdict) -> str:
    changes = f", through {plural(verdict.changes, 'change')} of settings" if verdict.changes else ""
    state = {True: ", final state proven", False: ", FINAL STATE DIFFERS", None: ""}[verdict.proof]
    return (
        f"partition {verdict.partition}: offsets {verdict.begin} to {verdict.end}, recomputed from {verdict.origin}"
        f"{changes}: {verdict.reproduced} records equal{state}"
    )


def _difference_text(partition: int, found: Difference) -> str:
    event = "" if found.offset < 0 else f" for input offset {found.offset}"
    where = f"the {_WORDS[found.channel]}{event} of partition {partition} {found.what}"
    return (
        f"first difference: {where}\n  expected:  {_plain_text(found.expected)}\n"
        f"  published: {_plain_text(found.found)}"
    )


def _plain_text(plain: RecordContent | None) -> str:
    if plain is None:
        return "no record"
    key, value, headers, timestamp_ms = plain
    return f"key {key!r}, timestamp {timestamp_ms}, headers {list(headers)!r}, value {value!r}"


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    found = verdict.difference
    return {
        "partition": verdict.partition,
        "holds": verdict.holds,
        "begin": verdict.begin,
        "end": verdict.end,
        "recomputed_from": verdict.origin,
        "decisions": verdict.decisions,
        "dead_letters": verdict.dead_letters,
        "reproduced": verdict.reproduced,
        "changes": verdict.changes,
        "state_proven": verdict.proof,
        "difference": None if found is None else _difference_json(found),
    }


def _difference_json(found: Difference) -> dict[str, Any]:
    return {
        "topic": found.channel.name.lower(),
        "offset": found.offset,
        "what": found.what,
        "expected": _plain_json(found.expected),
        "published": _plain_json(found.found),
    }


def _plain_json(plain: RecordContent | None) -> dict[str, Any] | None:
    if plain is None:
        return None
    key, value, headers, timestamp_ms = plain
    return {
        "key": text_of(key),
        "value": text_of(value),
        "headers": [[name, text_of(content)] for name, content in headers],
        "timestamp": timestamp_ms,
    }
