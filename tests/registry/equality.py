"""Do all formats of one stream give the same decisions on a real broker?

python -m tests.registry.equality --events 100000
"""

import argparse
import sys
import tempfile
import uuid
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from npstream.client import read_decision
from npstream.records import Channel
from tests.broker import provide_kafka
from tests.history.kafka_stage import KafkaStage
from tests.registry import provide_registry
from tests.registry.payments import EVENTS, WRITERS, messages, payments


@dataclass(frozen=True, slots=True)
class Equality:
    """How many decisions each format gave, how many of them alarms, and whether its bytes are those of JSON."""

    decisions: int
    targets: int
    equal: dict[str, bool]


def compare(bootstrap: str, registry: str, prefix: str, folder: Path, count: int) -> Equality:
    """Send the same payments in every format, by three versions of its schema in turn, and decide them."""
    some = payments(count)
    published: dict[str, list[tuple[bytes | None, bytes | None, int]]] = {}
    for format, writer in WRITERS.items():
        place = folder / format
        place.mkdir()
        stage = KafkaStage(bootstrap, f"{prefix}{format}.", place, partitions=2)
        stage.configure(events={**EVENTS, "format": format, "registry": {"url": registry}}, model={"tau": 0.2})
        stage.send(messages(some, writer(registry, f"{prefix}{format}.events")))
        stage.run(crashes=(9,))
        published[format] = _decisions(stage)
    expected = published["json"]
    targets = sum(read_decision(value).decision == 1 for _, value, _ in expected)
    return Equality(len(expected), targets, {format: found == expected for format, found in published.items()})


def _decisions(stage: KafkaStage) -> list[tuple[bytes | None, bytes | None, int]]:
    with closing(stage.log()) as log:
        return [
            (record.key, record.value, record.timestamp_ms)
            for partition in range(stage.partitions)
            for record in log.read(Channel.DECISIONS, partition, 0, log.ends(Channel.DECISIONS, partition).stable)
        ]


def main() -> int:
    """Compare on a broker and a registry of our own."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.registry.equality")
    parser.add_argument("--events", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, provide_registry() as registry:
        folder = Path(name)
        (folder / "kafka").mkdir()
        with provide_kafka(folder / "kafka") as kafka:
            prefix = f"equality-{uuid.uuid4().hex[:8]}."
            found = compare(kafka.bootstrap, registry.url, prefix, folder, options.events)
    print(f"{found.decisions} decisions, {found.targets} of them targets; equal to those from JSON: {found.equal}")
    return 0 if all(found.equal.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
