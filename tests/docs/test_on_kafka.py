"""The README's Kafka section, followed to the letter."""

from pathlib import Path

import pytest

from npstream.codec.decisions import decode_decision
from tests.broker import Kafka
from tests.docs.pages import README, blocks, commands
from tests.docs.reader import ON_KAFKA, npstream, type_in


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_readme_works_on_kafka(kafka: Kafka, tmp_path: Path) -> None:
    """Its settings and its commands, on a broker; its event and label are taken, and the decision has its fields."""
    settings, (event, decision) = blocks(README, "yaml")[0], blocks(README, "json")
    (tmp_path / ON_KAFKA).write_text(settings)
    (tmp_path / "events.jsonl").write_text(event)
    on_broker = {"NPSTREAM__KAFKA__BOOTSTRAP": kafka.bootstrap}
    init, *others = [line for line in commands(README, "npstream") if ON_KAFKA in line]

    for line in (init, f"npstream produce events.jsonl --config {ON_KAFKA}", *others):
        type_in(line, tmp_path, on_broker)

    found = npstream(f"npstream inspect --config {ON_KAFKA} --json", tmp_path, on_broker).stdout
    assert "labels_joined" in found
    assert decode_decision(decision.strip().encode()).id == "order-17"
