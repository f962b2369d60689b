"""Learning from history: one model of all of it, and a file that new partitions start from."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from npstream import app
from npstream.codec.snapshot import decode_snapshot
from npstream.data.files import read
from npstream.errors import StateCorrupt, UsageError
from npstream.model import Model
from npstream.partition import PartitionProcessor
from npstream.partition.model_file import model_file
from npstream.records import Record
from npstream.replay.replay import replay
from npstream.replay.source import ArraySource, RecordSource
from npstream.replay.split import hold_back
from npstream.replay.train import compare, train
from tests.replay.data import config, event_lines, records, rows, tau

EARLY = 2000
"""Events of new partitions over which starts are compared."""


def test_training_is_the_model_over_the_same_rows() -> None:
    """No second implementation of learning: the state is that of the model's own stream."""
    x, y = rows(800)

    trained = train(config(), ArraySource(x, y)).model

    assert trained.digest() == Model.create(config().params).learn_many(x, y).digest()


def test_partitions_are_learned_as_one_stream_in_time() -> None:
    """Two partitions, whose events take turns in time, teach the model what their one stream would."""
    lines = event_lines(300)
    whole = records(lines)
    dealt = {p: [r for i, r in enumerate(whole) if i % 2 == p] for p in (0, 1)}

    together = train(config(), RecordSource(dealt, "events"))
    alone = train(config(), RecordSource({0: whole}, "events"))

    assert together.model.digest() == alone.model.digest()
    assert together.tally == alone.tally


def test_frozen_settings_do_not_stop_training() -> None:
    """A group that must not learn may still start from a model that has."""
    x, y = rows(300)
    frozen = config(learning=False)

    processor = train(frozen, ArraySource(x, y))
    snapshot = decode_snapshot(model_file(processor, frozen))

    assert processor.model.t == 300
    assert snapshot.params["params"]["learning"] is False


def test_the_file_gives_back_the_model(tmp_path: Path) -> None:
    """What `start_from` reads scores every event as the trained model does."""
    x, y = rows(600)
    processor = train(config(), ArraySource(x, y))
    path = tmp_path / "model.npstream"
    path.write_bytes(model_file(processor, config()))

    model = app.read_model(path)

    assert model.score_many(x).tolist() == processor.model.score_many(x).tolist()
    assert model.digest() == processor.model.digest()


def test_the_file_holds_no_observation() -> None:
    """Features that wait for a label belong to their owner, not to a file that is handed around."""
    secret = 1234.5
    waiting = [Record(i, 1 + i, None, b'{"id":"w%d","x":[%f,0,0]}' % (i, secret), ()) for i in range(5)]
    processor = train(config(), RecordSource({0: [*records(event_lines(50)), *_after(waiting, 100)]}))
    assert len(processor.pending) >= 5

    content = model_file(processor, config())

    assert np.float32(secret).tobytes() not in content
    assert len(PartitionProcessor.from_snapshot(decode_snapshot(content)).pending) == 0


def _after(given: list[Record], offset: int) -> list[Record]:
    return [record._replace(offset=offset + i) for i, record in enumerate(given)]


def test_rubbish_is_refused() -> None:
    """A history of bad events makes no model."""
    bad = [Record(i, 1 + i, None, b"rubbish", ()) for i in range(1500)]

    with pytest.raises(StateCorrupt, match="are bad"):
        train(config(), RecordSource({0: bad}))


@pytest.mark.parametrize("content", [b"", b"NPSTREAM", b"not a model"])
def test_what_is_no_model_file_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    """The message names the file."""
    path = tmp_path / "model.npstream"
    path.write_bytes(content)

    with pytest.raises(UsageError, match=r"model\.npstream: this is not a readable snapshot"):
        app.read_model(path)


def test_a_comparison_shows_both_starts_on_events_no_model_has_seen() -> None:
    """Cold is a plain replay of the held-back rows, warm the same from a model of the others."""
    earlier, later = hold_back(ArraySource(*rows(2000)), 300, config().events)
    assert isinstance(later, ArraySource)
    model = train(config(), earlier).model

    found = dict(compare(config(), later, model, (1, 4), lambda count: None))

    assert list(found) == ["1 model, cold", "1 model, warm", "4 models, cold", "4 models, warm"]
    assert found["4 models, cold"].digest == replay(config(), replace(later, partitions=4)).digest
    assert found["1 model, warm"].digest == replay(config(), later, seed=model).digest
    assert all(result.rates.negatives + result.rates.positives == 300 for result in found.values())


@pytest.mark.parametrize("partitions", [1, 12])
@pytest.mark.parametrize("name", ["default_credit", "letter_z"])
def test_a_warm_start_beats_a_cold_one(data_dir: Path, name: str, partitions: int) -> None:
    """On real data the first events of new partitions are decided better when they start from a trained model."""
    x, y = read(data_dir / f"{name}.npz")
    using = tau(config(d=x.shape[1], D=100), 0.05)
    earlier, later = hold_back(ArraySource(x, y), EARLY, using.events)
    model = train(using, earlier).model

    (_, cold), (_, warm) = compare(using, later, model, (partitions,), lambda count: None)

    assert warm.events == cold.events == EARLY
    assert warm.rates.np_score(0.05) < cold.rates.np_score(0.05)
    assert warm.rates.fpr_interval()[0] <= 0.05
