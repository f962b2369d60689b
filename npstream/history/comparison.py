"""Champion and challenger beside each other, on the labelled events that both have decided."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from npstream.codec.snapshot import Snapshot
from npstream.errors import plural
from npstream.records import ChallengerRates, Pairs
from npstream.report.intervals import mcnemar, wilson
from npstream.report.page import text_table
from npstream.state import processor_of

_SIGNIFICANT = 0.05
"""Below it a difference is not put down to chance: the level that intervals at 95% have too."""
_HEADER = ("", "labelled", "champion", "95% interval", "challenger", "95% interval", "only champion", "only challenger")


class Compared(NamedTuple):
    """One partition: its target rate, and what its challenger says."""

    partition: int
    offset: int
    tau: float
    rates: ChallengerRates


def compared(snapshot: Snapshot) -> Compared | None:
    """What a snapshot knows of both; None without a challenger. Raises `StateCorrupt` when it cannot be used."""
    processor = processor_of(snapshot)
    if processor.challenger is None:
        return None
    rates = processor.challenger.rates()
    return Compared(snapshot.partition, snapshot.next_offset, processor.config.params.tau, rates)


def comparison_json(found: Sequence[Compared]) -> dict[str, Any]:
    """Every number, for scripts."""
    return {
        "partitions": [
            {"partition": each.partition, "from": each.rates.began, "to": each.offset}
            | {"tau": {"champion": each.tau, "challenger": each.rates.tau}}
            | {"non_targets": _card(each.rates.non_targets), "targets": _card(each.rates.targets)}
            for each in found
        ],
        "non_targets": _card(_added([each.rates.non_targets for each in found])),
        "targets": _card(_added([each.rates.targets for each in found])),
    }


def _added(tables: Sequence[Pairs]) -> Pairs:
    return Pairs(*(sum(column) for column in zip(*tables, strict=True)))


def _card(pairs: Pairs) -> dict[str, Any]:
    n, champion, challenger = sum(pairs), pairs.champion_alone + pairs.both, pairs.challenger_alone + pairs.both
    return {
        "labelled": n,
        **pairs._asdict(),
        "champion": _rate(champion, n),
        "challenger": _rate(challenger, n),
        "p": mcnemar(pairs.champion_alone, pairs.challenger_alone),
    }


def _rate(hits: int, n: int) -> dict[str, Any]:
    return {"rate": hits / n if n else None, "interval": list(wilson(hits, n))}


def comparison_text(found: Sequence[Compared]) -> str:
    """Both rates, and whether their difference could be chance, in words."""
    card = comparison_json(found)
    taus = sorted({(each.tau, each.rates.tau) for each in found})
    asked = ", ".join(f"{ours:g}" if ours == theirs else f"{ours:g} against {theirs:g}" for ours, theirs in taus)
    rows = [_row("false alarms (FPR)", card["non_targets"]), _row("detections (TPR)", card["targets"])]
    return "\n".join(
        [
            f"{plural(len(found), 'partition')}, tau {asked}: labelled events decided by both after their warm-up",
            text_table(_HEADER, rows),
            _verdict("false alarms", card["non_targets"]),
            _verdict("detections", card["targets"]),
        ]
    )


def _row(name: str, card: dict[str, Any]) -> list[str]:
    alone = [str(card["champion_alone"]), str(card["challenger_alone"])]
    return [name, str(card["labelled"]), *_cells(card["champion"]), *_cells(card["challenger"]), *alone]


def _cells(rate: dict[str, Any]) -> list[str]:
    low, high = rate["interval"]
    return ["-" if rate["rate"] is None else f"{rate['rate']:.4f}", f"{low:.4f}-{high:.4f}"]


def _verdict(what: str, card: dict[str, Any]) -> str:
    alone, other = card["champion_alone"], card["challenger_alone"]
    if not card["labelled"]:
        return f"{what}: not known yet, no label has come for an event that both have decided"
    if alone == other:
        return f"{what}: no difference"
    side = "fewer" if other < alone else "more"
    chance = "more than chance explains" if card["p"] < _SIGNIFICANT else "which may be chance"
    return (
        f"{what}: the challenger has {side} ({other} against {alone} where they differ), {chance}: p = "
        f"{card['p']:.2g} by McNemar's exact test"
    )
