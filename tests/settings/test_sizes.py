"""Sizes computed beforehand, compared with a real partition's snapshot."""

import numpy as np
import pytest

from npstream.codec.snapshot import encode_snapshot
from npstream.partition import PartitionProcessor
from npstream.records import Record
from npstream.settings import BUFFER_MAX_BYTES, from_mapping, sizes
from tests.settings.builders import mapping, problems


@pytest.mark.parametrize(("d", "units", "waiting"), [(3, 20, 500), (12, 100, 2000)])
def test_a_full_partition_fits_the_computed_sizes(d: int, units: int, waiting: int) -> None:
    """The model's size is exact, the snapshot's of a full buffer from above and not far off."""
    settings = from_mapping(
        mapping(model={"d": d, "D": units}, events={"format": "f32"}, labels={"buffer_max": waiting})
    )
    processor = PartitionProcessor.cold(settings.partition_config(), "g", "orders", 0, 0, None)
    x = np.random.default_rng(0).normal(size=(waiting + 10, d)).astype("<f4")
    processor.process([Record(i, 1000 + i, b"key", row.tobytes()) for i, row in enumerate(x)])
    reported = sizes(settings)

    actual = max(len(encode_snapshot(processor.checkpoint(0, 0, 4)[0])) for _ in range(2))

    assert len(processor.pending) == waiting
    assert reported.state == len(processor.model.to_bytes())
    assert reported.buffer == waiting * (33 + 4 * d)
    assert reported.state < actual <= reported.snapshot


@pytest.mark.parametrize("preset", ["paper", "external"])
def test_every_preset_has_a_size(preset: str) -> None:
    """The state's size is the model's own for each preset."""
    d = 0 if preset == "external" else 3
    settings = from_mapping(mapping(model={"d": d, "preset": preset}))
    processor = PartitionProcessor.cold(settings.partition_config(), "g", "orders", 0, 0, None)

    assert sizes(settings).state == len(processor.model.to_bytes())


def largest_buffer() -> int:
    """The number that the refusal of a larger one names."""
    (problem,) = problems(mapping(model={"d": 29}, labels={"buffer_max": 9_000_000}))
    assert problem.startswith("labels.buffer_max: 9000000 observations would take ")
    return int(problem.rpartition("lower it to ")[2].split()[0])


def test_too_large_a_buffer_is_refused_and_the_largest_one_named() -> None:
    """The refusal says the size and a number that works."""
    most = largest_buffer()

    accepted = sizes(from_mapping(mapping(model={"d": 29}, labels={"buffer_max": most})))
    assert BUFFER_MAX_BYTES - 150 < accepted.buffer <= BUFFER_MAX_BYTES
    assert len(problems(mapping(model={"d": 29}, labels={"buffer_max": most + 1}))) == 1


@pytest.mark.parametrize("units", [3_000, 100_000])
def test_too_large_a_model_is_refused_by_its_own_name(units: int) -> None:
    """When the model alone is too large the buffer is not blamed."""
    (problem,) = problems(mapping(model={"d": 10_000, "D": units}))

    assert problem.startswith(f"model.D: {units} units of 10000 features: a snapshot would take ")
