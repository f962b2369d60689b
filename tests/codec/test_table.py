"""The distinct values of a column: each once, and as JSON has it."""

import math
from typing import Any

import pytest

from npstream.codec.table import ListColumn, Role


@pytest.mark.parametrize(
    ("values", "role", "distinct", "place"),
    [
        (["b", None, "a", "b"], "category", ["b", "a"], [0, -1, 1, 0]),
        (["7", "7.0"], "id", ["7", "7.0"], [0, 1]),
        ([3.0, math.nan, 2.5, 3.0], "category", [3, 2.5], [0, -1, 1, 0]),
        ([3.0, None], "id", [3], [0, -1]),
        ([3.0, 2.5], "label", [3.0, 2.5], [0, 1]),
        ([True, 1, 1.0, "1", True], "label", [True, 1, 1.0, "1"], [0, 1, 2, 3, 0]),
    ],
)
def test_each_value_is_there_once(values: list[Any], role: Role, distinct: list[Any], place: list[int]) -> None:
    """In order of arrival. Whole numbers are whole in ids and categories, where missing ones have made them floats."""
    found = ListColumn("c", values).distinct(role)

    assert [(type(each), each) for each in found.values] == [(type(each), each) for each in distinct]
    assert found.place.tolist() == place
