"""Keys land where Kafka's Java clients put them."""

import pytest

from npstream.codec.murmur2 import murmur2, partition_for

# From Apache Kafka's own UtilsTest, where they are signed.
VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "signed"), VECTORS.items())
def test_hashes_are_those_of_kafka(key: bytes, signed: int) -> None:
    """The 32 bits of the hash are those that Java computes."""
    assert murmur2(key) == signed % 2**32


@pytest.mark.parametrize(("key", "signed"), VECTORS.items())
def test_partitions_are_those_of_kafka(key: bytes, signed: int) -> None:
    """Java clears the sign bit, it does not take the absolute value."""
    assert partition_for(key, 7) == (signed & 0x7FFFFFFF) % 7


def test_all_lengths_hash() -> None:
    """Keys of every length modulo four, the empty one too, give distinct hashes."""
    assert len({murmur2(b"k" * length) for length in range(12)}) == 12
