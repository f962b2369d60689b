"""Labels that are overruled, with a worker on an embedded log: failures leave no trace, and an audit follows."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from npstream.history.rebuild import read_past
from npstream.partition import LabelConfig
from npstream.records import Channel
from npstream.testing import MortalBroker
from npstream.worker import Cadence
from tests.partition.builders import config, overruled, processor
from tests.stage.stage import TOPICS, Plan, on_file
from tests.worker.test_labels_topic import audited, position_of

CORRECTING = config(labels=LabelConfig(buffer_max=50, expire_events=200, corrections=True))


@pytest.mark.parametrize("fail_at", [[], [3], [8], [12], [5, 9, 13, 21]], ids=str)
def test_failures_leave_no_trace(tmp_path: Path, fail_at: Sequence[int]) -> None:
    """Decisions are those of an undisturbed run in which labels are corrected, and the audit proves them."""
    records = [item._replace(offset=at) for at, item in enumerate(overruled(500))]
    bench = on_file(tmp_path / "log.db")
    bench.feed(0, records)
    plan = Plan(fail_at)
    bench.decide(CORRECTING, wrap=lambda broker: MortalBroker(broker, plan.step), cadence=Cadence(150, 1e9))
    calm = processor(CORRECTING)
    wanted = [output for output in calm.process(records).outputs if output.channel == Channel.DECISIONS]

    assert [value for _, value, _, _ in bench.published(Channel.DECISIONS)] == [output.value for output in wanted]
    assert calm.tally.labels_corrected > 20
    position = position_of(bench, 0)
    assert position is not None
    assert position.proof == calm.proof()
    with closing(bench.log()) as log:
        verdict = audited(read_past(log, "g", TOPICS.events, 0), position)
    assert (verdict.holds, verdict.proof) == (True, True)
