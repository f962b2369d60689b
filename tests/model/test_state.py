"""State: one canonical form, complete, checked on the way in."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npstream.errors import StateCorrupt
from npstream.model import Model, Params
from tests.model.streams import delayed

KINDS = {
    "plus": Params(d=3, D=5, tau=0.1),
    "plus-one-class": Params(d=3, D=5, tau=0.1, one_class=True),
    "plus-mixed": Params(d=3, D=5, tau=0.1, buckets=(0, 4, 0)),
    "paper": Params(preset="paper", d=3, D=5, tau=0.1, window=50),
    "paper-zscore": Params(preset="paper", d=3, D=5, tau=0.1, input="zscore"),
    "external": Params(preset="external", tau=0.1),
}
COMMON = ["level", "tally", "clock", "head"]
NETWORK = [*COMMON, "window", "alpha", "wc", "ws"]
MOMENTS = ["seen", "mean", "var", "inv_sd", "clip"]
ADAGRAD = [*NETWORK, "slow_c", "slow_s", "acc_c", "acc_s", "acc_a", *MOMENTS]
TABLES = ["cell", "marker", "ring", "valued", "fern_column", "fern_level", "fern_limit"]
LAYOUT = {
    "plus": [*ADAGRAD, *TABLES],
    "plus-one-class": [*ADAGRAD, "low", "high", *TABLES],
    "plus-mixed": [*ADAGRAD, *TABLES],
    "paper": NETWORK,
    "paper-zscore": [*NETWORK, *MOMENTS],
    "external": COMMON,
}


def trained(kind: str) -> Model:
    """A model that has seen late labels too."""
    model = Model.create(KINDS[kind], stream=4)
    delayed(KINDS[kind], 200, seed=3).run(model)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_layout_is_as_documented(kind: str) -> None:
    """The bytes are the named arrays in their documented order, little-endian, nothing between."""
    model = trained(kind)
    arrays = model.arrays()
    formats = {"float64": "d", "float32": "f", "int64": "q", "uint16": "H", "uint8": "B"}
    packed = b"".join(
        struct.pack(f"<{array.size}{formats[array.dtype.name]}", *array.ravel().tolist()) for array in arrays.values()
    )

    assert list(arrays) == LAYOUT[kind]
    assert model.to_bytes() == packed


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_model_continues_as_if_nothing_had_happened(kind: str) -> None:
    """After a round trip through bytes, rows and state stay equal on further events, alarms still waiting included."""
    model = trained(kind)
    restored = Model.from_bytes(KINDS[kind], model.to_bytes())
    feed = delayed(KINDS[kind], 150, seed=8)
    expected, actual = feed.run(model), feed.run(restored)

    np.testing.assert_array_equal(expected.score, actual.score)
    np.testing.assert_array_equal(expected.decision, actual.decision)
    assert model.digest() == restored.digest()
    assert restored.outstanding == model.outstanding


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_of_another_shape_are_refused(kind: str) -> None:
    """Too short, too long, or of other parameters: the message says how many bytes were needed."""
    data = trained(kind).to_bytes()
    for wrong in (data[:-1], data + b"\0", b""):
        with pytest.raises(StateCorrupt, match=f"has {len(wrong)} bytes, these parameters need {len(data)}"):
            Model.from_bytes(KINDS[kind], wrong)


def test_numbers_that_are_not_finite_are_refused() -> None:
    """A NaN or an infinity cannot come from this model."""
    data = bytearray(trained("plus").to_bytes())
    for bad in (float("nan"), float("inf")):
        data[0:8] = struct.pack("<d", bad)
        with pytest.raises(StateCorrupt, match="not finite in 'level'"):
            Model.from_bytes(KINDS["plus"], bytes(data))


def test_a_window_entry_is_a_bit() -> None:
    """Anything but 0 and 1 in the window is refused."""
    data = bytearray(trained("plus").to_bytes())
    window_at = 8 * (6 + 9 + 7 + 6)
    data[window_at] = 2
    with pytest.raises(StateCorrupt, match="window entry"):
        Model.from_bytes(KINDS["plus"], bytes(data))


def test_from_bytes_keeps_no_view() -> None:
    """A restored model owns its memory and leaves the given bytes alone."""
    data = trained("plus").to_bytes()
    before = bytes(bytearray(data))
    Model.from_bytes(KINDS["plus"], data).learn_one([1.0, 2.0, 3.0], -1)

    assert data == before


def test_scoring_changes_nothing() -> None:
    """score_one, decide_one and their batch forms leave every byte as it was."""
    model = trained("plus")
    before = model.to_bytes()
    model.score_one([1.0, 2.0, 3.0])
    model.decide_one([1.0, 2.0, 3.0])
    model.score_many(np.ones((5, 3)))
    model.decide_many(np.ones((5, 3)))
    repr(model)

    assert model.to_bytes() == before


@settings(max_examples=20, deadline=None)
@given(cut=st.integers(0, 400), kind=st.sampled_from(sorted(KINDS)))
def test_bytes_hold_the_whole_truth(cut: int, kind: str) -> None:
    """Saving and restoring at any point of a run changes nothing after it."""
    params = KINDS[kind]
    feed = delayed(params, 220, seed=5)
    whole, decided = Model.create(params), np.zeros(feed.slots, np.int8)
    feed.run(whole)
    part = Model.create(params)
    for piece in (slice(0, cut), slice(cut, None)):
        part.run(feed[piece], decided)
        part = Model.from_bytes(params, part.to_bytes())

    assert part.to_bytes() == whole.to_bytes()
