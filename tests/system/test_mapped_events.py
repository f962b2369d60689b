"""Another team's topic read by settings alone, on a real broker, through a kill: nothing upstream changes."""

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from npstream.codec.dead_letters import read_dead_letter
from npstream.records import Channel
from npstream.settings import from_mapping
from npstream.settings.source import read_yaml
from tests.broker import Kafka
from tests.codec.streams import enveloped, payments, spaced, under
from tests.stage.site import Site
from tests.system import verdict
from tests.system.stream import FIRST_MS

SETTINGS = read_yaml(Path(__file__).parents[2] / "config" / "payments.yaml")


def settings(**events: Any) -> dict[str, Any]:
    """The settings of the example with another section of events, and a small model."""
    return {
        **SETTINGS,
        "kafka": {"bootstrap": "b:1", "group": "g", "worker_name": "w"},
        "events": {**SETTINGS["events"], **events},
        "model": {"tau": 0.1, "D": 16},
    }


def values(site: Site, channel: Channel) -> list[bytes]:
    """What was published."""
    ends = site.log.ends(channel, 0)
    return [record.value or b"" for record in site.log.read(channel, 0, ends.begin, ends.stable)]


@pytest.mark.slow
def test_payments_and_their_change_records_give_the_same_decisions(kafka: Kafka, tmp_path: Path) -> None:
    """Plain and in an envelope, killed in between: decisions are those of an oracle, equal but for the model's name."""
    documents = payments(600)
    published: list[list[dict[str, Any]]] = []
    for write, section in ((spaced, SETTINGS["events"]), (enveloped, under("payload.after", SETTINGS["events"]))):
        config = from_mapping(settings(**section)).partition_config()
        site = Site(kafka.bootstrap, tmp_path / write.__name__, partitions=1, config=config)
        worker = site.worker("w0", batch_max=50, every_events=200)
        try:
            site.append(0, [(b"k", write(document), [], FIRST_MS + i) for i, document in enumerate(documents)])
            worker.start("after_commit:5:kill")
            assert worker.wait_dead() == -signal.SIGKILL, worker.tail()
            worker.start(spec=replace(worker.spec))
            site.wait_decided()

            assert verdict.compare(site, verdict.changes(site)) > 0
            ends = site.log.ends(Channel.DEAD_LETTERS, 0)
            dead_letters = [*map(read_dead_letter, site.log.read(Channel.DEAD_LETTERS, 0, ends.begin, ends.stable))]
            assert {each.reason for each in dead_letters} == {"missing_feature", "bad_category"}
            assert all(each.detail.startswith(("amount: ", "country: ")) for each in dead_letters)
            published.append([orjson.loads(value) for value in values(site, Channel.DECISIONS)])
        finally:
            site.close()

    plain, wrapped = published
    assert {decision.pop("model") for decision in plain} != {decision.pop("model") for decision in wrapped}
    assert plain == wrapped
    assert sum(decision["decision"] == 1 for decision in plain) > 10
