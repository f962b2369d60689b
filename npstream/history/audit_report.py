"""An audit's verdicts for a person and for a script."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from npstream.codec.text import text_of
from npstream.errors import plural
from npstream.history.audit import Difference, RecordContent, Verdict
from npstream.history.coverage import Gap, Superseded
from npstream.records import Channel

_WORDS = {Channel.DECISIONS: "decision", Channel.DEAD_LETTERS: "dead letter"}


def audit_json(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Every number, and both records where there is a difference."""
    return {
        "holds": all(verdict.holds for verdict in verdicts),
        "complete": all(verdict.coverage.is_whole for verdict in verdicts),
        "decisions": sum(verdict.decisions for verdict in verdicts),
        "dead_letters": sum(verdict.dead_letters for verdict in verdicts),
        "reproduced": sum(verdict.reproduced for verdict in verdicts),
        "not_covered": sum(gap.records for verdict in verdicts for gap in verdict.coverage.gaps),
        "partitions": [_verdict_json(verdict) for verdict in verdicts],
    }


def audit_text(verdicts: Sequence[Verdict]) -> str:
    """A few lines per partition, then the sum, or what differs first in each."""
    lines = [line for verdict in verdicts for line in _lines(verdict)]
    decisions = sum(verdict.decisions for verdict in verdicts)
    bad = sum(verdict.dead_letters for verdict in verdicts)
    if all(verdict.difference is None for verdict in verdicts):
        lines.append(f"{decisions} of {decisions} decisions and {bad} of {bad} dead letters reproduced bit for bit")
    for verdict in verdicts:
        if verdict.difference is not None:
            lines.append(_difference_text(verdict.partition, verdict.difference))
        elif verdict.proof is False:
            lines.append(
                f"partition {verdict.partition}: the state recomputed at offset {verdict.coverage.end} is not the "
                "committed one: an event that no decision has followed yet was edited, or the checkpoint was"
            )
    missed = sum(gap.records for verdict in verdicts for gap in verdict.coverage.gaps)
    if not all(verdict.coverage.is_whole for verdict in verdicts):
        lines.append(f"NOT COMPLETE: {missed} published records that were asked for cannot be recomputed, see above")
    return "\n".join(lines)


def _lines(verdict: Verdict) -> list[str]:
    coverage = verdict.coverage
    published = f"partition {verdict.partition}: published for offsets {_span(coverage.published_begin, coverage.end)}"
    if verdict.origin is None:
        lines = [f"{published}; nothing of it can be recomputed"]
    else:
        changes = f", through {plural(verdict.changes, 'change')} of settings" if verdict.changes else ""
        state = {True: ", final state proven", False: ", FINAL STATE DIFFERS", None: ""}[verdict.proof]
        lines = [
            f"{published}; recomputed {_span(coverage.begin, coverage.end)}, starting at {verdict.origin}{changes}: "
            f"{verdict.reproduced} records equal{state}"
        ]
    lines += [_gap_text(gap) for gap in coverage.gaps]
    lines += [
        f"  not compared: {_WORDS[channel]}s before offset {offset}, which retention has taken"
        for channel, offset in coverage.kept_from.items()
        if offset > coverage.begin
    ]
    return lines + [_superseded_text(each) for each in verdict.superseded]


def _span(begin: int, end: int) -> str:
    return f"{begin} to {end - 1}"


def _gap_text(gap: Gap) -> str:
    records = f" ({plural(gap.records, 'record')})" if gap.records else ""
    return f"  not covered: offsets {_span(gap.begin, gap.end)}{records}: {gap.why}"


def _superseded_text(found: Superseded) -> str:
    reset = found.reset
    what = "the rollback" if reset.how == "rollback" else f"the reset ({reset.how})"
    when = datetime.fromtimestamp(reset.at_ms / 1000, UTC).isoformat(timespec="seconds")
    why = f", {reset.why!r}" if reset.why else ""
    records = f"{plural(found.decisions, 'decision')} and {plural(found.dead_letters, 'dead letter')}"
    moved = f"by {what} from {reset.origin} to {reset.to} of {when}{why}"
    return f"  superseded: {records} for offsets {found.first} to {found.last}, {moved}"


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
    found, coverage = verdict.difference, verdict.coverage
    return {
        "partition": verdict.partition,
        "holds": verdict.holds,
        "complete": coverage.is_whole,
        "published": [coverage.published_begin, coverage.end],
        "begin": coverage.begin,
        "end": coverage.end,
        "recomputed_from": verdict.origin,
        "gaps": [asdict(gap) for gap in coverage.gaps],
        "kept_from": {channel.name.lower(): offset for channel, offset in coverage.kept_from.items()},
        "superseded": [asdict(each) for each in verdict.superseded],
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
