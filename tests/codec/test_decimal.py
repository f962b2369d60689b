"""Decimal numbers to doubles in compiled code: the same bits as any correct parser."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from npstream.codec.decimal import to_double

finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """Compile once, so that no example has to."""
    to_double(np.uint64(1), 1)


@given(st.integers(1, 2**64 - 1), st.integers(-400, 400))
@example(2**53 + 1, 0)
@example(9007199254740993, 0)
@example((2**53 + 1) * 5, -1)
@example((2**53 + 3) * 25, -2)
@example(2**64 - 1, 308)
@example(2**64 - 1, -342)
@example(1, -308)
@example(22250738585072011, -324)
def test_a_decimal_becomes_the_nearest_double(digits: int, q: int) -> None:
    """To the last bit, ties to even; what cannot be decided here is reported as such."""
    found = to_double(np.uint64(digits), q)
    right = float(f"{digits}e{q}")

    assert found == right or (np.isnan(found) and not 1e-290 < right < 1e290)


@pytest.mark.parametrize("q", [-30, -1, 0, 23, 30])
def test_digits_of_any_length_become_the_nearest_double(q: int) -> None:
    """With every number of zeros in front of their bits."""
    for size in range(64):
        for digits in {1 << size, (2 << size) - 1, (3 << size) // 2}:
            assert to_double(np.uint64(digits), q) == float(f"{digits}e{q}"), digits


@given(finite.filter(lambda number: 1e-290 < abs(number) < 1e290))
def test_the_shortest_text_of_a_double_becomes_that_double(number: float) -> None:
    """What serialisers write comes back."""
    _, digits, exponent = Decimal(repr(abs(number))).as_tuple()

    assert to_double(np.uint64(int("".join(map(str, digits)))), int(exponent)) == abs(number)
