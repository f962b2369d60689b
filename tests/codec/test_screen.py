"""Keys and headers that no event may have: found whatever surrounds them, and only where they are."""

from hypothesis import given
from hypothesis import strategies as st

from npstream.codec.decoder import EventConfig, EventDecoder, Kind
from npstream.codec.screen import HEADERS_MAX_BYTES, KEY_MAX_BYTES, headers_bytes, unusable
from npstream.records import UNREADABLE_HEADERS, Headers, Record
from tests.codec.builders import rows

GOOD = b'{"id":"a","x":[1,2],"y":1}'

lengths = st.sampled_from([0, 1, 100, KEY_MAX_BYTES // 4, KEY_MAX_BYTES - 1, KEY_MAX_BYTES, KEY_MAX_BYTES + 1])
names = st.sampled_from(["id", "traceparent", "名", "n" * 1000, "😀" * 8000])
headers = st.one_of(
    st.just(UNREADABLE_HEADERS),
    st.lists(st.tuples(names, st.none() | lengths.map(bytes)), max_size=3),
)
records = st.lists(
    st.builds(Record, st.just(0), st.just(1), st.none() | lengths.map(bytes), st.just(GOOD), headers), max_size=150
)


def naive(record: Record) -> str | None:
    """The rule as README has it."""
    if list(record.headers) == [("\ufffd", None)]:
        return "bad_headers"
    if record.key is not None and len(record.key) > KEY_MAX_BYTES:
        return "oversize_key"
    total = sum(8 + len(name.encode()) + (0 if content is None else len(content)) for name, content in record.headers)
    return "bad_headers" if total > HEADERS_MAX_BYTES else None


@given(records)
def test_each_record_is_judged_as_if_it_were_alone(batch: list[Record]) -> None:
    """Measuring many records together neither hides a bad one nor condemns a good one."""
    found = unusable(batch)

    assert {at: error.reason for at, error in found.items()} == {
        at: reason for at, record in enumerate(batch) if (reason := naive(record)) is not None
    }


@given(records)
def test_bad_ones_leave_the_rows_of_the_others_alone(batch: list[Record]) -> None:
    """A row does not depend on its neighbours; a record with such a key or headers is awaited by nobody."""
    decoder = EventDecoder(EventConfig(d=2))

    together = rows(decoder.decode(batch))

    assert together == [row for record in batch for row in rows(decoder.decode([record]))]
    assert all(
        row[0] == Kind.BAD and row[-1] is None for row, record in zip(together, batch, strict=True) if naive(record)
    )


def test_the_bytes_of_headers_are_those_on_the_wire() -> None:
    """Names count in UTF-8, absent contents as nothing."""
    given_headers: Headers = [("é", b"12"), ("n", None)]

    assert headers_bytes(given_headers) == 2 + 2 + 1 + 2 * 8


def test_headers_of_no_length_count_too() -> None:
    """A hundred thousand of them are no small thing."""
    many: Headers = [("", None)] * 10_000

    assert unusable([Record(0, 1, None, GOOD, many)])[0].reason == "bad_headers"
