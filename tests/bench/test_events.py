"""The events that are measured: every shape is decided and learned from, and the decoder's bench has a row for each."""

import itertools

import pytest

from npstream.bench.decoding import DECODED, bench_decode
from npstream.bench.events import SHAPES, Shape, asking, bench_config, bench_events, records_of, sample_decisions
from npstream.codec.decoder import EventDecoder
from npstream.partition import PartitionProcessor


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_decided_and_learned_from(shape: Shape) -> None:
    """No event is bad; in a partition of its own each label finds its event."""
    lanes, config = 2, bench_config(shape)
    events = bench_events(3_000, shape, lanes)
    processors = [PartitionProcessor.cold(config, "g", "t", lane, 0, None) for lane in range(lanes)]
    outputs = 0
    for lane, processor in enumerate(processors):
        outputs += len(processor.process(records_of(events[lane::lanes], config)).outputs)

    assert outputs == len(asking(events, shape))
    assert [processor.tally.dead_letters for processor in processors] == [0, 0]
    assert sum(processor.model.t for processor in processors) == 3_000 - (1_500 if shape == "delayed" else 0)
    assert len(sample_decisions(asking(events, shape)[:10], config)) == 10


def test_shapes_of_the_same_numbers_have_the_same_columns() -> None:
    """The mapped and the Avro shape hold what the compact one holds."""
    decoded = [
        EventDecoder(bench_config(shape).events).decode(records_of(bench_events(50, shape), bench_config(shape)))
        for shape in ("compact", "mapped", "avro", "f32")
    ]

    assert len({(each.x.tobytes(), each.y.tobytes(), tuple(each.ids)) for each in decoded}) == 1


def test_the_bench_of_the_decoder_has_a_row_for_every_shape() -> None:
    """With the times of the decoder, of the parser, and of a batch with odd events."""
    ticks = itertools.count()
    rows = bench_decode(batch=200, rounds=1, clock=lambda: float(next(ticks)))

    assert [row["shape"] for row in rows] == list(DECODED)
    assert {(row["us_per_event"], row["orjson_us_per_event"], row["odd_to_plain"]) for row in rows} == {(5e3, 5e3, 1.0)}
