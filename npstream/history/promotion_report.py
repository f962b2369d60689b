"""Planned promotions as text and as JSON."""

from collections.abc import Sequence
from typing import Any

from npstream.history.promotion import Promotion
from npstream.records import AlarmRates, ChallengerRates


def promotions_json(planned: Sequence[Promotion], *, executed: bool) -> dict[str, Any]:
    """Every number, for scripts."""
    return {
        "executed": executed,
        "partitions": [
            {
                "partition": item.partition,
                "offset": item.offset,
                "replayed": item.replayed,
                "began": item.challenger.began,
                "warming_up": item.warming_up,
                "champion": _shares(item.published),
                "challenger": _shares(item.challenger),
            }
            for item in planned
        ],
    }


def _shares(rates: AlarmRates | ChallengerRates) -> dict[str, float | None]:
    return {name: getattr(rates, name).lifetime.share for name in ("alarm_rate", "fpr", "tpr")}


def promotions_text(planned: Sequence[Promotion], *, executed: bool) -> str:
    """What happens to each partition, with the rates of both models."""
    lines = [line for item in planned for line in _lines(item)]
    if not planned:
        lines.append("nothing to do: every partition has these settings, or has not begun")
    elif executed:
        lines.append("done: start the workers with these settings; `npstream inspect --partition P --history` lists it")
    else:
        lines.append("dry run: nothing was changed; stop all workers and add --execute to do it")
    return "\n".join(lines)


def _lines(item: Promotion) -> list[str]:
    lines = [
        f"partition {item.partition}: promote before offset {item.offset} the challenger that began at offset "
        f"{item.challenger.began}",
        f"  challenger {_rates(item.challenger)}; champion {_rates(item.published)}",
    ]
    return lines + (["  it is warming up: no alarms until it has seen enough"] if item.warming_up else [])


def _rates(rates: AlarmRates | ChallengerRates) -> str:
    known = {name: "-" if value is None else f"{value:.4f}" for name, value in _shares(rates).items()}
    return f"alarm rate {known['alarm_rate']}, FPR {known['fpr']}, TPR {known['tpr']}"
