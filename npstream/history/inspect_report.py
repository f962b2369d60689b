"""Checkpoints as text: one in words, two beside each other, a partition's history."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from npstream.codec.history import History, Kept
from npstream.report.page import text_table
from npstream.report.rates import Rates

_NUMBERS = (
    *("next_offset", "events", "learned", "threshold", "gamma", "budget_left"),
    *("outstanding_alarms", "pending_labels", "warming_up"),
)
_HEADER = (
    "partition",
    "offset",
    "learned",
    "tau",
    "alarm rate",
    "FPR",
    "95% interval",
    "TPR",
    "threshold",
    "pending",
    "budget left",
)


def describe_text(card: Mapping[str, Any], committed: int | None) -> str:
    """One checkpoint in words. `committed` is the group's offset, when there is one."""
    shape = "" if card["preset"] == "external" else f", d={card['settings']['params']['d']}"
    to_replay = (
        "" if committed is None else f" (committed offset {committed}, {committed - card['next_offset']} to replay)"
    )
    state = "warming up: no alarms yet" if card["warming_up"] else "frozen" if not card["learning"] else "learning"
    counted = "alarms" if card["control"] == "alarm_rate" else "false alarms"
    budget = "no limit" if card["budget_left"] is None else f"{card['budget_left']:.2f} {counted} left"
    per_day = card["alarms_per_day"]
    name = f"{card['group']}/{card['topic']}/{card['partition']}"
    lines = [
        f"{name}: checkpoint at input offset {card['next_offset']}{to_replay}",
        f"  model        {card['preset']}{shape}, algorithm {card['algorithm']}, {card['bytes']} bytes, {state}",
        f"  learned      {card['learned']} events of {card['events']}: {card['negatives']} non-targets, "
        f"{card['positives']} targets labelled",
        f"  target rate  {_target(card)}",
        f"  alarm rate   {_rate_text(card['alarm_rate'])}"
        + ("" if per_day is None else f"; {per_day:.4g} alarms per day of event time"),
        f"  FPR          {_rate_text(card['fpr'])}",
        f"  TPR          {_rate_text(card['tpr'])}",
        *_weighted_lines(card["weighted"]),
        *(line for tier in card["tiers"] for line in _tier_lines(tier)),
        *_challenger_lines(card["challenger"]),
        f"  threshold    {card['threshold']:.6g}, gamma {card['gamma']:.6g}",
        f"  budget       {budget}, {card['outstanding_alarms']} alarms wait for their label",
        f"  waiting      {card['pending_labels']} observations wait for a label"
        + (f", {card['correctable_labels']} have one that may be corrected" if card["correctable_labels"] else ""),
        "  counted      " + ", ".join(f"{name} {count}" for name, count in card["tally"].items() if count),
    ]
    return "\n".join(lines + _network_lines(card))


def _target(card: Mapping[str, Any]) -> str:
    held = "alarms among all observations" if card["control"] == "alarm_rate" else "false alarms among non-targets"
    return f"tau {card['tau']:g} of {held}"


def _rate_text(rate: Mapping[str, Any]) -> str:
    if rate["lifetime"] is None:
        return "not known yet"
    low, high = rate["interval"]
    recent = "" if rate["recent"] is None else f", {rate['recent']:.4f} of the last {rate['recent_of']}"
    return f"{rate['lifetime']:.4f} since warm-up (95%: {low:.4f} to {high:.4f}){recent}"


def _tier_lines(tier: Mapping[str, Any]) -> list[str]:
    return [
        f"  tier {tier['name']}: tau {tier['tau']:g}, {tier['alarms']} alarms, threshold {tier['threshold']:.6g}, "
        f"{tier['budget_left']:.2f} left in its budget",
        *_rates_lines(tier),
    ]


def _challenger_lines(challenger: Mapping[str, Any] | None) -> list[str]:
    if challenger is None:
        return []
    return [
        f"  challenger since offset {challenger['began']}, not published: {_target(challenger)}",
        *_rates_lines(challenger),
    ]


def _rates_lines(card: Mapping[str, Any]) -> list[str]:
    """What of all decisions, of non-targets and of targets were alarms."""
    names = {"alarm rate": "alarm_rate", "FPR": "fpr", "TPR": "tpr"}
    return [f"    {name:<10} {_rate_text(card[key])}" for name, key in names.items()]


def _weighted_lines(weighted: Mapping[str, Any] | None) -> list[str]:
    """Rates by the review sample, where there is one."""
    if weighted is None:
        return []
    lines = []
    for name in ("fpr", "tpr"):
        low, high = weighted[name]["interval"]
        value = weighted[name]["lifetime"]
        known = "not known yet" if value is None else f"{value:.4f} of all observations (95%: {low:.4f} to {high:.4f})"
        lines.append(f"  {name.upper()}, sample  {known}")
    return [*lines, f"  reviews      {weighted['reviews_requested']} requested"]


def _network_lines(card: Mapping[str, Any]) -> list[str]:
    if not card["directions"]:
        return []
    lines = ["  largest directions (unit, output weight, what it looks along):"]
    for row in card["directions"]:
        along = ", ".join(f"{name} {value:+.3f}" for name, value in row["features"].items())
        lines.append(f"    {row['unit']:>4}  {row['weight']:.4f}  {along}")
    widths = sorted(card["bandwidths"].items(), key=lambda item: -item[1])
    lines.append("  learned kernel, finest along: " + ", ".join(f"{name} {width:.3f}" for name, width in widths[:8]))
    return lines


def overview_text(cards: Sequence[Mapping[str, Any]]) -> str:
    """One line per partition."""
    return text_table(_HEADER, [_overview_row(card) for card in cards])


def _overview_row(card: Mapping[str, Any]) -> list[str]:
    alarms, fpr, tpr = card["alarm_rate"], card["fpr"], card["tpr"]
    low, high = fpr["interval"]
    return [
        str(card["partition"]),
        str(card["next_offset"]),
        str(card["learned"]),
        f"{card['tau']:g}",
        "-" if alarms["lifetime"] is None else f"{alarms['lifetime']:.4f}",
        "-" if fpr["lifetime"] is None else f"{fpr['lifetime']:.4f}",
        f"{low:.4f}-{high:.4f}",
        "-" if tpr["lifetime"] is None else f"{tpr['lifetime']:.3f}",
        f"{card['threshold']:.4g}",
        str(card["pending_labels"]),
        "-" if card["budget_left"] is None else f"{card['budget_left']:.1f}",
    ]


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What changed between two descriptions of one partition; counters as what was added."""
    gained = Rates(*(after[name] - before[name] for name in ("negatives", "positives", "false_alarms", "detections")))
    return {
        "changed": {name: [before[name], after[name]] for name in _NUMBERS if before[name] != after[name]},
        "settings": _changed(before["settings"], after["settings"]),
        "counted": {
            name: count - before["tally"][name]
            for name, count in after["tally"].items()
            if count != before["tally"][name]
        },
        "between": {
            "negatives": gained.negatives,
            "positives": gained.positives,
            "fpr": None if gained.negatives <= 0 else gained.fpr,
            "tpr": None if gained.positives <= 0 else gained.tpr,
        },
        "bandwidths": {name: [before["bandwidths"][name], width] for name, width in after["bandwidths"].items()},
    }


def difference_text(found: Mapping[str, Any]) -> str:
    """The same for a person."""
    lines = [f"{name}: {_short(old)} -> {_short(new)}" for name, (old, new) in found["changed"].items()]
    lines += [f"{name}: {_short(old)} -> {_short(new)}" for name, (old, new) in found["settings"].items()]
    lines += [f"{name}: {count:+d}" for name, count in found["counted"].items()]
    between = found["between"]
    for name, of in (("fpr", "negatives"), ("tpr", "positives")):
        if between[name] is not None:
            lines.append(f"{name} between them: {between[name]:.4f} over {between[of]} {of}")
    lines += [f"bandwidth {name}: {old:.4f} -> {new:.4f}" for name, (old, new) in found["bandwidths"].items()]
    return "\n".join(lines) or "no difference"


def history_json(history: History) -> dict[str, Any]:
    """Kept snapshots, changes of settings and resets."""
    return {
        "snapshots": [
            {
                "next_offset": kept.next_offset,
                "ring_place": kept.snapshot.ring_place,
                "log_offset": kept.offset,
                "archived": kept.is_archived,
            }
            for kept in history.snapshots
        ],
        "changes": [
            {
                "offset": change.offset,
                "began": change.is_birth,
                "promoted": change.promoted,
                "settings": {} if change.is_birth else _changed(change.old, change.new),
            }
            for change in history.changes
        ],
        "resets": [
            {"from": reset.origin, "to": reset.to, "how": reset.how, "at_ms": reset.at_ms, "why": reset.why}
            for reset in history.resets
        ],
    }


def history_text(history: History) -> str:
    """The same for a person, in the order of the input."""
    lines = [f"offset {kept.next_offset:>12}  checkpoint {_where(kept)}" for kept in history.snapshots]
    for change in history.changes:
        what = "began" if change.is_birth else _in_words(change.old, change.new) or "same settings again"
        lines.append(f"offset {change.offset:>12}  {'promoted: ' if change.promoted else ''}{what}")
    for reset in history.resets:
        when = datetime.fromtimestamp(reset.at_ms / 1000, UTC).isoformat(timespec="seconds")
        why = f": {reset.why}" if reset.why else ""
        lines.append(f"offset {reset.to:>12}  {reset.how} from offset {reset.origin} on {when}{why}")
    return "\n".join(sorted(lines, key=lambda line: int(line.split()[1]))) or "nothing is kept"


def _in_words(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What changed; of a challenger what it has that is other than in the champion."""
    found = _changed({**old, "challenger": _challenger_settings(old)}, {**new, "challenger": _challenger_settings(new)})
    return ", ".join(f"{name} {_short(before)} -> {_short(after)}" for name, (before, after) in found.items())


def _challenger_settings(config: Mapping[str, Any]) -> str:
    if config.get("challenger") is None:
        return "none"
    own = _changed({name: config[name] for name in config["challenger"]}, config["challenger"])
    return "(" + ", ".join(f"{name} {_short(value)}" for name, (_, value) in own.items()) + ")"


def _where(kept: Kept) -> str:
    return "archived" if kept.is_archived else f"kept at ring place {kept.snapshot.ring_place}"


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, list[Any]]:
    before, after = _flat(old), _flat(new)
    names = list(dict.fromkeys((*before, *after)))
    return {name: [before.get(name), after.get(name)] for name in names if before.get(name) != after.get(name)}


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
