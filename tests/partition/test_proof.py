"""The chain: one digest for one sequence of outputs, however it was batched and whatever objects it is made of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npstream.codec.envelope import OFFSET_HEADER
from npstream.partition.proof import BLOCK, Chain
from npstream.records import Channel, Output

_contents = st.none() | st.binary(max_size=600)
_names = st.sampled_from([OFFSET_HEADER, "traceparent", "ü"])
_outputs = st.builds(
    Output,
    st.sampled_from([Channel.DECISIONS, Channel.DEAD_LETTERS]),
    _contents,
    _contents,
    st.lists(st.tuples(_names, _contents), max_size=2),
    st.integers(0, 2**45),
)


def digest(outputs: list[Output]) -> str:
    """The proof over these outputs alone."""
    chain = Chain()
    chain.extend(outputs)
    return chain.hexdigest()


def rebuilt(output: Output) -> Output:
    """An equal output whose header names are other objects than the package's own."""
    return output._replace(headers=[("".join(list(name)), content) for name, content in output.headers])


@given(st.lists(_outputs, max_size=5))
def test_equal_outputs_have_equal_digests(outputs: list[Output]) -> None:
    """The short way for plain decisions and the general way give the same bytes."""
    assert digest(outputs) == digest([rebuilt(output) for output in outputs])


@given(_outputs, _outputs)
def test_different_outputs_have_different_digests(one: Output, other: Output) -> None:
    """No two outputs share their bytes: null is not empty, and no part can be mistaken for its neighbour."""
    assert (digest([one]) == digest([other])) == (one == other)


@given(st.lists(st.integers(0, 3 * BLOCK), max_size=3), st.integers(0, 3 * BLOCK))
def test_the_digest_does_not_depend_on_batches(cuts: list[int], count: int) -> None:
    """Any split of a sequence, and any stop for a snapshot in between, ends on the same proof."""
    outputs = [Output(Channel.DECISIONS, None, b"%d" % i, [(OFFSET_HEADER, b"%d" % i)], i + 1) for i in range(count)]
    chain, at = Chain(), 0
    for cut in [*sorted(cut for cut in cuts if cut <= count), count]:
        chain.extend(outputs[at:cut])
        chain, at = Chain.load(*_dumped(chain)), cut

    assert (chain.count, chain.hexdigest()) == (count, digest(outputs))


def _head(numbers: bytes) -> bytes:
    return len(numbers).to_bytes(4, "little") + numbers


def _dumped(chain: Chain) -> tuple[bytes, int, bytes]:
    full, packed = chain.dump()
    return full, chain.count, packed


@pytest.mark.parametrize("packed", [b"", b"\x02\x00\x00\x00[]", _head(b"[[1],[2],[],[-1],[-1],[]]") + b"\x01"])
def test_what_was_not_dumped_is_not_loaded(packed: bytes) -> None:
    """Rubbish is refused with the error that the snapshot's reader expects."""
    with pytest.raises(ValueError, match=r"."):
        Chain.load(bytes(16), 1, packed)


def test_no_part_of_a_dumped_block_is_loaded() -> None:
    """Wherever it is cut off."""
    chain = Chain()
    chain.extend([Output(Channel.DECISIONS, b"key", b"%d" % i, [(OFFSET_HEADER, b"%d" % i)], i + 1) for i in range(5)])
    full, count, packed = _dumped(chain)

    for size in range(len(packed)):
        with pytest.raises(ValueError, match=r"."):
            Chain.load(full, count, packed[:size])
    assert Chain.load(full, count, packed).hexdigest() == chain.hexdigest()


_near_the_limit = st.builds(
    lambda channel, key, size, header: Output(channel, key, bytes(size), [(OFFSET_HEADER, header)], 1),
    st.sampled_from([Channel.DECISIONS, Channel.DEAD_LETTERS]),
    st.sampled_from([None, b"", b"k"]),
    st.integers(505, 513),
    st.sampled_from([None, b"1"]),
)
"""Outputs that are just small enough to be kept whole, or just not."""


@given(st.lists(_near_the_limit, min_size=1, max_size=6), st.integers(0, 6), st.integers(0, BLOCK))
def test_what_is_kept_by_its_digest_does_not_depend_on_its_neighbours(
    large: list[Output], cut: int, small: int
) -> None:
    """Large outputs between small ones: batches and stops for a snapshot do not show in the proof."""
    outputs = [*large, *[Output(Channel.DECISIONS, None, b"small", [], 1)] * small, *large]
    chain = Chain()
    chain.extend(outputs[:cut])
    chain = Chain.load(*_dumped(chain))
    chain.extend([])
    chain.extend(outputs[cut:])

    assert chain.hexdigest() == digest(outputs)


@pytest.mark.parametrize("blocks", [1, 2])
def test_a_full_block_is_folded_at_once(blocks: int) -> None:
    """A snapshot after it holds none of its outputs."""
    chain = Chain()
    chain.extend([Output(Channel.DECISIONS, None, b"1", [(OFFSET_HEADER, b"1")], 1)] * (blocks * BLOCK))

    assert chain.dump()[1] == Chain().dump()[1]
    assert chain.dump()[0] != Chain().dump()[0]
