"""The lag of a group, seen from outside: for a person at a terminal, not for a running worker."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from npstream.monitor.lag import waited_s
from npstream.port import Log, Start, StateReader
from npstream.records import Channel, LabelPosition
from npstream.report.page import text_table

_HEADER = ("partition", "committed", "end", "records", "seconds", "held back", "labels")


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One partition.

    committed  the group's offset, None before its first start
    end        the stable end: what can be read by anybody who waits for transactions
    records    offsets between the two; 0 when no record is left in between
    seconds    how long the oldest of them has waited, by its own timestamp; None when that is no time of arrival
    held_back  offsets beyond the stable end, held by a transaction that is not decided
    labels     records of the labels topic that are not learned yet; None where there is none
    """

    partition: int
    committed: int | None
    end: int
    records: int
    seconds: float | None
    held_back: int
    labels: int | None


def group_lag(log: Log, state: StateReader, partitions: Iterable[int], start: Start, now_ms: int) -> list[PartitionLag]:
    """The lag of each partition; one without a position is measured from where it would start."""
    return [_lag_of(log, state, partition, start, now_ms) for partition in partitions]


def _lag_of(log: Log, state: StateReader, partition: int, start: Start, now_ms: int) -> PartitionLag:
    position = state.committed(partition)
    at = log.offset_at(partition, start) if position is None else position.next_offset
    ends = log.ends(Channel.EVENTS, partition)
    # The end of a log may hold marks of transactions only: an idle partition must not look late.
    first = next(log.read(Channel.EVENTS, partition, at, ends.stable), None) if at < ends.stable else None
    return PartitionLag(
        partition=partition,
        committed=None if position is None else position.next_offset,
        end=ends.stable,
        records=0 if first is None else ends.stable - max(at, ends.begin),
        seconds=0.0 if first is None else waited_s(now_ms, first.timestamp_ms),
        held_back=max(0, ends.high - ends.stable),
        labels=None if position is None or position.labels is None else _labels_left(log, partition, position.labels),
    )


def _labels_left(log: Log, partition: int, labels: LabelPosition) -> int:
    ends = log.ends(Channel.LABELS, partition)
    at = max(labels.next_label, ends.begin)
    first = next(log.read(Channel.LABELS, partition, at, ends.stable), None) if at < ends.stable else None
    return 0 if first is None else ends.stable - at


def lag_json(found: list[PartitionLag]) -> dict[str, Any]:
    """Every number, and the sums; the seconds of the whole are those of the latest, not known when one's are not."""
    seconds, labels = [item.seconds for item in found], [item.labels for item in found if item.labels is not None]
    return {
        "records": sum(item.records for item in found),
        "seconds": None if None in seconds else max((known for known in seconds if known is not None), default=0.0),
        "labels": sum(labels) if labels else None,
        "partitions": [{name: getattr(item, name) for name in item.__slots__} for item in found],
    }


def lag_text(found: list[PartitionLag]) -> str:
    """One line per partition, and the whole group; labels have a column where they have a topic."""
    rows = [
        [
            str(item.partition),
            _known(item.committed),
            *(str(item.end), str(item.records), _seconds(item.seconds), str(item.held_back), _known(item.labels)),
        ]
        for item in found
    ]
    total = lag_json(found)
    held_back = sum(item.held_back for item in found)
    rows.append(["all", "", "", str(total["records"]), _seconds(total["seconds"]), str(held_back)])
    rows[-1].append(_known(total["labels"]))
    shown = len(_HEADER) - (total["labels"] is None)
    return text_table(_HEADER[:shown], [row[:shown] for row in rows])


def _known(number: int | None) -> str:
    return "-" if number is None else str(number)


def _seconds(known: float | None) -> str:
    return "-" if known is None else f"{known:.1f}"
