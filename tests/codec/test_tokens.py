"""The smallest parts of JSON in compiled code: what is valid is read there, what is not is refused there."""

from itertools import product

import numpy as np
import pytest

from npstream.codec.categories import code_of
from npstream.codec.tokens import Text, code_of_token, past_number, past_string

FIRST = bytes.fromhex("41 80bf c1c2df e0e1ecedeeef f0f1f3f4f5")
SECOND = bytes.fromhex("7f 80 8f90 9fa0 bf c0")
"""Where the rules of UTF-8 for the first two bytes change."""
LATER = bytes.fromhex("7f 80 bf c0")


def text(data: bytes) -> Text:
    """As it lies in a batch: with a zero behind it."""
    return np.frombuffer(data + b"\0", np.uint8)


def is_utf8(data: bytes) -> bool:
    """By Python's own decoder."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_string_of_utf8_is_read_and_no_other(size: int) -> None:
    """Every kind of character in one to four bytes, and every way to miss one by a bit or a byte."""
    for found in product(FIRST, SECOND, *[LATER] * (size - 2)):
        data = bytes(found[:size])
        assert past_string(text(data + b'"'), 0) == ((size, True) if is_utf8(data) else (-1, False)), data


@pytest.mark.parametrize("escape", [*'"\\/bfnrt', "u0000", "u00e9", "uABCD", "ud7ff", "ue000", "uffff"])
def test_escapes_are_passed(escape: str) -> None:
    """Each of JSON's."""
    data = f'a\\{escape}b"'.encode()

    assert past_string(text(data), 0) == (len(data) - 1, False)


@pytest.mark.parametrize("escape", ["x", "a", "u12g4", "u004", "ud800", "uDBFF", "udc00", "uDFFF", "U0041"])
def test_what_is_no_escape_is_refused(escape: str) -> None:
    """Halves of surrogate pairs as well: two of them would be a character, which the other reader knows."""
    assert past_string(text(f'a\\{escape} "'.encode()), 0) == (-1, False)


@pytest.mark.parametrize(
    ("written", "whole"),
    [
        ("0", True),
        ("7", True),
        ("-12", True),
        ("123456789012345678", True),
        ("-123456789012345678", True),
        ("1234567890123456789", False),
        ("1.5", False),
        ("1.0", False),
        ("-0.0", False),
        ("1e2", False),
        ("1E+2", False),
        ("25e-1", False),
        ("0.1234567890123456789", False),
        ("0.00000000000000000000012", False),
        ("0.000000000000000000001234567890123456789", False),
    ],
)
def test_numbers_are_read(written: str, whole: bool) -> None:
    """To the bit, up to 19 digits after the leading zeros; an integer of up to 18 is known for one."""
    end, value, is_whole = past_number(text(written.encode() + b","), 0)

    assert (end, value.hex(), is_whole) == (len(written), float(written).hex(), whole)


@pytest.mark.parametrize(
    "written", ["", "-", "01", "-01", "00", "1.", ".5", "1e", "1e+", "12345678901234567890", "0.12345678901234567891"]
)
def test_what_is_no_number_or_too_long_is_refused(written: str) -> None:
    """Twenty digits may not fit 64 bits."""
    assert past_number(text(written.encode() + b","), 0)[0] == -1


def test_the_code_of_a_category_is_that_of_its_bytes() -> None:
    """Of the token's alone, whatever surrounds it."""
    start = 0x9E3779B97F4A7C15

    assert code_of_token(text(b'"card"'), 1, 5, np.uint64(start)) == code_of(b"card", start)
