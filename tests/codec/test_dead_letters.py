"""Dead letters: the event untouched, the reason beside it."""

from hashlib import sha256

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npstream.codec.dead_letters import ADDED_HEADERS, VALUE_MAX_BYTES, DeadLetter, dead_letter, read_dead_letter
from npstream.codec.screen import HEADERS_MAX_BYTES, KEY_MAX_BYTES, headers_bytes
from npstream.errors import BadEvent, UsageError
from npstream.kafka.config import RECORD_MAX_BYTES
from npstream.records import UNREADABLE_HEADERS, Channel, Headers, Output, Record

ERROR = BadEvent("wrong_length", "x has 2 numbers, 3 expected")

names = st.sampled_from(["id", "traceparent", *ADDED_HEADERS])
events = st.builds(
    Record,
    st.integers(0, 2**62),
    st.integers(-1, 2**42),
    st.none() | st.binary(max_size=8),
    st.none() | st.binary(max_size=40),
    st.lists(st.tuples(names, st.none() | st.binary(max_size=8)), max_size=7),
)


def test_a_dead_letter_is_the_event_with_five_more_headers() -> None:
    """Key, value, timestamp and headers stay; reason and origin are added at the end."""
    record = Record(42, 1000, b"k", b"[1,2]", [("id", b"a"), ("id", None)])

    expected = Output(
        Channel.DEAD_LETTERS,
        b"k",
        b"[1,2]",
        [
            ("id", b"a"),
            ("id", None),
            ("npstream-reason", b"wrong_length"),
            ("npstream-detail", b"x has 2 numbers, 3 expected"),
            ("npstream-topic", b"orders"),
            ("npstream-partition", b"3"),
            ("npstream-offset", b"42"),
        ],
        1000,
    )
    assert dead_letter(record, ERROR, "orders", 3) == expected


@given(events)
def test_a_dead_letter_reads_back(event: Record) -> None:
    """Origin and reason are found again, even when the event was a dead letter before."""
    letter = dead_letter(event, ERROR, "orders", 3)

    expected = DeadLetter(
        event.key,
        event.value,
        tuple(event.headers),
        max(event.timestamp_ms, 1),
        ERROR.reason,
        ERROR.detail,
        "orders",
        3,
        event.offset,
    )
    assert read_dead_letter(Record(9, letter.timestamp_ms, letter.key, letter.value, letter.headers)) == expected


def test_details_are_bounded() -> None:
    """However long and foreign a detail is, its header stays small and pure ASCII."""
    letter = dead_letter(Record(0, 1, None, b""), BadEvent("not_json", "ü" * 1000), "orders", 0)
    detail = dict(letter.headers)["npstream-detail"]

    assert detail is not None
    assert detail.isascii()
    assert len(detail) == 256


@pytest.mark.parametrize("position", range(5))
def test_records_of_others_are_refused(position: int) -> None:
    """A record without the five headers, or with a damaged one, is not taken for a dead letter."""
    letter = dead_letter(Record(0, 1, None, b""), ERROR, "orders", 0)
    missing = [header for index, header in enumerate(letter.headers) if index != position]
    damaged = [(name, b"\xff" if index == position else value) for index, (name, value) in enumerate(letter.headers)]

    for headers in (missing, damaged, []):
        with pytest.raises(UsageError, match="the record at offset 5 is not a dead letter"):
            read_dead_letter(Record(5, 1, None, b"", headers))


def test_what_would_not_fit_is_cut_and_described() -> None:
    """A long value keeps its first bytes, a long key and long headers vanish; lengths and digests stay."""
    value, key = b"v" * (VALUE_MAX_BYTES + 1), b"k" * (KEY_MAX_BYTES + 1)
    event = Record(42, 1000, key, value, [("h", b"x" * HEADERS_MAX_BYTES)])

    letter = read_dead_letter(as_record(dead_letter(event, ERROR, "orders", 3)))

    assert (letter.key, letter.value, letter.headers) == (None, value[:4096], ())
    assert orjson.loads(letter.truncated or "") == {
        "headers": {"bytes": HEADERS_MAX_BYTES + 9},
        "key": {"bytes": KEY_MAX_BYTES + 1, "sha256": sha256(key).hexdigest()},
        "value": {"bytes": VALUE_MAX_BYTES + 1, "sha256": sha256(value).hexdigest()},
    }


def test_what_just_fits_is_published_whole_and_stays_below_every_topics_default() -> None:
    """The largest dead letter there is fits a record of a million bytes without compression."""
    headers: Headers = [("h", b"x" * (HEADERS_MAX_BYTES - 9))]
    event = Record(2**62, 1000, b"k" * KEY_MAX_BYTES, b"v" * VALUE_MAX_BYTES, headers)
    long = BadEvent("missing_feature", "d" * 1000)

    made = dead_letter(event, long, "t" * 249, 2**31)
    letter = read_dead_letter(as_record(made))

    assert (letter.key, letter.value, letter.headers, letter.truncated) == (
        event.key,
        event.value,
        tuple(headers),
        None,
    )
    assert len(made.key or b"") + len(made.value or b"") + headers_bytes(made.headers) < RECORD_MAX_BYTES - 10_000


def test_headers_that_cannot_be_read_are_left_out() -> None:
    """What stands for them in the program is not published."""
    event = Record(42, 1000, b"k", b"{}", UNREADABLE_HEADERS)

    letter = read_dead_letter(as_record(dead_letter(event, ERROR, "orders", 3)))

    assert (letter.headers, letter.truncated) == ((), None)


def as_record(output: Output) -> Record:
    """The output as it lies in its topic."""
    return Record(0, output.timestamp_ms, output.key, output.value, output.headers)
