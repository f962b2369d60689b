"""The ROC of a replay: every labelled score by its distance from the threshold."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npstream.partition import LabelConfig
from npstream.replay import margins
from npstream.replay.margins import roc
from npstream.replay.replay import PartitionResult, replay
from npstream.replay.source import ArraySource
from tests.replay.data import config, rows


@given(st.lists(st.tuples(st.integers(-5, 5), st.sampled_from([1, -1])), max_size=40), st.integers(2, 30))
def test_every_point_is_a_threshold(found: list[tuple[int, int]], points: int) -> None:
    """Each point is what one threshold does, ties and all; it rises, and takes no more negatives than asked for."""
    margin, y = np.array([m for m, _ in found], np.float64), np.array([y for _, y in found], np.int8)
    asked = np.linspace(0.0, 1.0, points)
    fpr, tpr = roc(margin, y, asked)
    if len({*y.tolist()}) < 2:
        assert fpr.size == tpr.size == 0
        return
    edges = [-np.inf, *margin.tolist()]
    possible = {((margin[y < 0] > edge).mean(), (margin[y > 0] > edge).mean()) for edge in edges}

    assert all(min(abs(a - x) + abs(b - z) for x, z in possible) < 1e-12 for a, b in zip(fpr, tpr, strict=True))
    assert (np.diff(fpr) >= 0).all()
    assert (np.diff(tpr) >= 0).all()
    assert fpr[-1] == tpr[-1] == 1.0


def only(using: float = 0.1, **labels: object) -> PartitionResult:
    """The one partition of a replay."""
    fields = {"buffer_max": 500} | labels
    rules = replace(config(tau=using, budget=1e6), labels=LabelConfig(**fields))  # type: ignore[arg-type]
    (found,) = replay(rules, ArraySource(*rows(3_000), 1, 40)).partitions
    return found


def test_the_threshold_itself_is_on_the_curve() -> None:
    """Margins above zero are the alarms that the model would give when labels come, with the labels of the data."""
    margin, y = only().margins.kept
    expected = rows(3_000)[1]

    assert (y.size, (y > 0).sum()) == (expected.size, (expected > 0).sum())
    assert (margin[y < 0] > 0).mean() == pytest.approx(0.1, abs=0.02)


def test_more_labels_than_are_kept_leave_every_nth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounded memory, spread over all of the stream, and the same however the events were batched."""
    every = only().margins.kept
    monkeypatch.setattr(margins, "KEPT_MAX", 500)
    margin, y = only().margins.kept
    stride = -(-3_000 // margin.size)

    assert 250 < margin.size <= 500
    assert stride & (stride - 1) == 0
    assert (margin.tolist(), y.tolist()) == (every[0][::stride].tolist(), every[1][::stride].tolist())
