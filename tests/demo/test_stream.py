"""The demo's stream: the same for the same seed, labels late, a move half way."""

import numpy as np
import orjson

from npstream.demo.stream import TARGETS, make_stream


def test_a_seed_is_a_stream() -> None:
    """Equal seeds give equal streams, others do not."""
    one, same, other = make_stream(4000, 300, 7), make_stream(4000, 300, 7), make_stream(4000, 300, 8)

    assert (one.x.tobytes(), one.y.tobytes()) == (same.x.tobytes(), same.y.tobytes())
    assert one.x.tobytes() != other.x.tobytes()


def test_targets_are_rare_and_everything_moves() -> None:
    """About one event in twenty is a target, and after the move features lie elsewhere."""
    stream = make_stream(20_000, 300, 7)

    assert abs(float((stream.y > 0).mean()) - TARGETS) < 0.01
    shift = stream.x[stream.drift :].mean(axis=0) - stream.x[: stream.drift].mean(axis=0)
    assert np.all(shift > 0.4)


def test_every_event_gets_its_label_later() -> None:
    """Each event comes without a label; the label follows after `delay` more events, under the same key."""
    stream = make_stream(50, 7, 1)
    messages = list(stream.messages())
    documents = [orjson.loads(message.value) for message in messages]

    assert len(messages) == stream.total
    assert all(
        message.key == str(document["id"]).encode() for message, document in zip(messages, documents, strict=True)
    )
    order = [(document["id"], "y" in document) for document in documents]
    for i in range(50):
        between = order[order.index((i, False)) : order.index((i, True))]
        assert sum(not label for _, label in between) == min(8, 50 - i)
        assert documents[order.index((i, True))]["y"] == int(stream.y[i])
