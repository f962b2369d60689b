"""The metadata string of a committed offset."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npstream.codec.position import METADATA_MAX, decode_position, encode_position
from npstream.errors import StateCorrupt
from npstream.records import Pointer, Position, Proof

counts = st.integers(0, 2**62)
digests = st.binary(min_size=16, max_size=32).map(bytes.hex)


@st.composite
def positions(draw: st.DrawFn) -> Position:
    """Any position that a partition may commit."""
    resumes_at = draw(counts)
    numbers = draw(counts), draw(st.integers(1, 2**20)), draw(st.integers(0, 2**10))
    pointer = Pointer(*numbers, resumes_at, draw(digests))
    return Position(resumes_at + draw(counts), pointer, Proof(draw(counts), draw(digests), draw(digests)))


EXAMPLE = Position(1500, Pointer(12, 2, 3, 1000, "ef" * 16), Proof(1490, "ab" * 16, "cd" * 16))
GOLDEN = (
    '{"v":2,"snapshot":[12,2,3,1000,"efefefefefefefefefefefefefefefef"],"outputs":1490,'
    '"chain":"abababababababababababababababab","state":"cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd"}'
)


def test_the_form_is_fixed() -> None:
    """The string of version 2 never changes: it lives in the groups of running clusters."""
    assert encode_position(EXAMPLE) == GOLDEN
    assert decode_position(1500, GOLDEN) == EXAMPLE


@given(positions())
def test_a_position_comes_back_as_it_was(position: Position) -> None:
    """Encoding loses nothing and stays far below the brokers' limit."""
    text = encode_position(position)

    assert len(text) < METADATA_MAX
    assert decode_position(position.next_offset, text) == position


@given(st.integers(0, len(GOLDEN) - 1), st.characters(codec="utf-8"))
def test_a_changed_character_is_refused_or_decodes_to_itself(index: int, character: str) -> None:
    """No damage goes unnoticed in the form: what is accepted is canonical."""
    damaged = GOLDEN[:index] + character + GOLDEN[index + 1 :]
    try:
        position = decode_position(1500, damaged)
    except StateCorrupt:
        return
    assert encode_position(position) == damaged


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "npstream",
        GOLDEN[:-1],
        GOLDEN + " ",
        GOLDEN.replace('"v":2', '"v":3'),
        GOLDEN.replace("[12,2,3,1000,", "[12,2,3,"),
        GOLDEN.replace("[12,2,3,1000,", "[12,0,3,1000,"),
        GOLDEN.replace("[12,2,3,1000,", "[12,2,3,1501,"),
        GOLDEN.replace("[12,2,3,1000,", "[-1,2,3,1000,"),
        GOLDEN.replace("[12,2,3,1000,", "[12.0,2,3,1000,"),
        GOLDEN.replace("[12,2,3,1000,", "[true,2,3,1000,"),
        GOLDEN.replace("abab", "ABAB"),
        GOLDEN.replace('"outputs":1490', '"outputs":"1490"'),
        GOLDEN.replace('"chain"', '"chaim"'),
    ],
)
def test_what_we_did_not_write_is_refused_with_advice(text: str) -> None:
    """Foreign, damaged and newer metadata are corrupt state; the message names the offset and the likely causes."""
    with pytest.raises(StateCorrupt, match=r"committed offset 1500.*reset or used by another program"):
        decode_position(1500, text)
