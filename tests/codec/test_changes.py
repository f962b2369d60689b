"""Change records: what changed, where, kept forever."""

from dataclasses import replace

import pytest

from npstream.codec.changes import Change, decode_change, encode_change
from npstream.errors import StateCorrupt
from npstream.records import KeyValue

CHANGE = Change(1234, {"tau": 0.01, "d": 2, "eta": None}, {"tau": 0.05, "d": 2, "eta": 0.1})


def test_a_change_has_its_own_key_and_canonical_bytes() -> None:
    """The key sorts as the offset does, the value has sorted keys."""
    key, value = encode_change(CHANGE, "g/eu", "orders", 3)

    assert key == b"g/eu/orders/3/change/00000000000000001234"
    assert (
        value
        == b'{"new":{"d":2,"eta":0.1,"tau":0.05},"offset":1234,"old":{"d":2,"eta":null,"tau":0.01},"promoted":false}'
    )


def test_a_change_reads_back_and_names_its_fields() -> None:
    """Old and new values survive, and the difference is reported."""
    change = decode_change(KeyValue(0, *encode_change(CHANGE, "g", "orders", 3)))

    assert change == CHANGE
    assert change.fields == ("eta", "tau")


def test_a_promotion_has_a_key_of_its_own() -> None:
    """So that settings may change at the same offset, and neither record replaces the other."""
    promoted = replace(CHANGE, promoted=True)
    key, value = encode_change(promoted, "g", "eu/orders", 3)

    assert key == b"g/eu/orders/3/promotion/00000000000000001234"
    assert decode_change(KeyValue(0, key, value)) == promoted


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"[]",
        b'{"offset":1234}',
        b'{"offset":1235,"old":{},"new":{},"promoted":false}',
        b'{"offset":1234,"old":{},"new":{},"promoted":true}',
        b'{"offset":1234,"old":1,"new":{},"promoted":false}',
        b'{"offset":1234,"old":{},"new":[],"promoted":false}',
    ],
)
def test_unreadable_changes_are_refused_by_key(value: bytes | None) -> None:
    """A change record that cannot be trusted is named."""
    key, _ = encode_change(CHANGE, "g", "orders", 3)
    with pytest.raises(StateCorrupt, match="change/00000000000000001234"):
        decode_change(KeyValue(0, key, value))


def test_a_chunk_is_not_a_change() -> None:
    """The value of a change under the key of a chunk is refused."""
    _, value = encode_change(CHANGE, "g", "orders", 3)
    with pytest.raises(StateCorrupt):
        decode_change(KeyValue(0, b"g/orders/3/0/0", value))
