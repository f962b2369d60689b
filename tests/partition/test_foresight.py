"""What settings will do to observations that wait for labels: the words, and whether a partition then does it."""

import pytest

from npstream.codec.decoder import EventConfig
from npstream.model import Params
from npstream.partition import LabelConfig, PartitionConfig, PartitionProcessor
from npstream.partition.foresight import Traffic, duration, enough_per_s, foresee, wait_s
from npstream.records import Record

DAY_S = 86_400.0
CHARGEBACKS = LabelConfig(buffer_max=10_000, expire_seconds=45 * DAY_S, on_expiry="negative")


def config(labels: LabelConfig, **params: object) -> PartitionConfig:
    """Two features, and these labels."""
    return PartitionConfig(params=Params(d=2, **params), events=EventConfig(d=2), labels=labels)  # type: ignore[arg-type]


def test_a_desk_of_chargebacks_is_warned_with_the_right_figures() -> None:
    """40 payments a second for 45 days are 156 million; the buffer lasts 250 seconds."""
    room, late = foresee(config(CHARGEBACKS), Traffic(40.0, 30 * DAY_S), seeded=True)

    assert room.problem == (
        "labels.buffer_max: at 40 observations/s and an expiry of 45 days a partition needs room for 156 million, "
        "and has it for 10,000: 99.9% of them will be learned as non-targets within 4.2 minutes"
    )
    assert late.problem == (
        "labels: those that come after 30 days find nothing: observations wait for 4.2 minutes at most "
        "and are then learned as non-targets"
    )


def test_the_first_alarm_is_foretold() -> None:
    """With control fpr it waits for labels; not with alarm_rate, nor with a trained model, nor for an hour."""
    room = LabelConfig(buffer_max=10_000_000, expire_seconds=45 * DAY_S, on_expiry="negative")
    slow = Traffic(0.5, 30 * DAY_S)

    (found,) = foresee(config(room, tau=0.1), slow, seeded=False)

    assert found.problem == (
        "model.control: no alarm within the first 30 days: the threshold waits for 10 labelled non-targets, and the "
        "first come after 30 days"
    )
    assert foresee(config(room, control="alarm_rate"), slow, seeded=False) == []
    assert foresee(config(room), slow, seeded=True) == []
    assert foresee(config(room), Traffic(40.0, 60.0), seeded=True) == foresee(
        config(room), Traffic(40.0, 60.0), seeded=False
    )


def test_nothing_is_said_where_nothing_is_wrong() -> None:
    """Room for all until they expire, labels in time; and without an expiry nobody has promised to wait."""
    fits = LabelConfig(buffer_max=4000, expire_seconds=1000.0)

    assert enough_per_s(config(fits)) == 4.0
    assert foresee(config(fits), Traffic(4.0, 1000.0), seeded=False) == []
    assert enough_per_s(config(LabelConfig())) is None
    assert foresee(config(LabelConfig()), Traffic(1e6), seeded=False) == []


@pytest.mark.parametrize(
    ("labels", "expected_s"),
    [
        (LabelConfig(buffer_max=50, expire_seconds=200.0), 25.0),
        (LabelConfig(buffer_max=1000, expire_seconds=60.0), 60.0),
        (LabelConfig(buffer_max=1000, expire_seconds=200.0, expire_events=80), 40.0),
    ],
)
def test_a_partition_keeps_observations_as_long_as_foretold(labels: LabelConfig, expected_s: float) -> None:
    """Two observations a second of event time: the first leaves when the time is over, and not one sooner."""
    rules = config(labels)
    processor = PartitionProcessor.cold(rules, "g", "t", 0, 0, None)
    first_left = None
    for i in range(300):
        processor.process([Record(i, 1 + 500 * i, b"k", b'{"id":"e%d","x":[1,2]}' % i, ())])
        if first_left is None and processor.tally.observations_expired:
            first_left = i / 2

    assert wait_s(rules, 2.0) == expected_s
    assert first_left is not None
    assert expected_s <= first_left <= expected_s + 0.5


def test_lengths_of_time_are_said_in_their_largest_unit() -> None:
    """To a tenth."""
    lengths = [0.5, 1, 59, 60, 250, 3600, 5400, 86_400, 3_888_000]

    assert [duration(seconds) for seconds in lengths] == [
        "0.5 seconds", "1 second", "59 seconds", "1 minute", "4.2 minutes", "1 hour", "1.5 hours", "1 day", "45 days",
    ]  # fmt: skip
