"""The benchmark of labels from a file."""

import pytest

from npstream.bench.labelling import LabelBench, bench_label
from tests.broker import Kafka


def published_once(bench: LabelBench) -> None:
    """The first run publishes all of them, the second finds its events and what the first has added, and skips them."""
    said: list[str] = []
    rows = bench_label(bench, said.append)
    n, ids = bench.events, bench.ids

    assert [(row["shape"], row["run"]) for row in rows] == [(s, r) for s in ("compact", "payment") for r in (1, 2)]
    assert [(row["published"], row["skipped"]) for row in rows] == 2 * [(ids, 0), (0, ids)]
    assert all(row["events"] >= n for row in rows)  # on Kafka the ends of transactions have offsets too
    assert len(said) == 2
    for row in rows:
        assert 0 < row["seconds"] <= row["whole_s"]
        assert row["cpu_s"] > 0


@pytest.mark.slow
def test_each_label_is_published_once() -> None:
    """In an embedded log."""
    published_once(LabelBench(events=3000, ids=40))


@pytest.mark.slow
def test_each_label_is_published_once_on_a_broker(kafka: Kafka) -> None:
    """On topics that exist for the measurement."""
    published_once(LabelBench(events=3000, ids=40, bootstrap=kafka.bootstrap))
