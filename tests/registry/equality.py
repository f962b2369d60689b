"""Do all formats of one stream give the same decisions on a real broker?

python -m tests.registry.equality --events 100000
"""

import argparse
import sys
import tempfile
import uuid
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npstream.client import read_decision
from npstream.records import Channel
from tests.broker import provide_kafka
from tests.registry import provide_registry
from tests.registry.debezium import ENVELOPE_WRITERS, ENVELOPED
from tests.registry.payments import EVENTS, WRITERS, Write, messages, payments
from tests.stage.stage import Stage, on_kafka


@dataclass(frozen=True, slots=True)
class Equality:
    """How many decisions each format gave, how many of them alarms, and whether its bytes are those of JSON."""

    decisions: int
    targets: int
    equal: dict[str, bool]


@dataclass(frozen=True, slots=True)
class Topic:
    """How events look, and who writes them, by format; `json` is among them."""

    events: Mapping[str, Any]
    writers: Mapping[str, Callable[[str, str], Write]]


TOPICS = {"payments": Topic(EVENTS, WRITERS), "debezium": Topic(ENVELOPED, ENVELOPE_WRITERS)}


def compare(bootstrap: str, registry: str, prefix: str, folder: Path, count: int, topic: Topic) -> Equality:
    """Send the same payments in every format, by three versions of its schema in turn, and decide them."""
    some = payments(count)
    published: dict[str, list[tuple[bytes | None, bytes | None, int]]] = {}
    for format, writer in topic.writers.items():
        place = folder / format
        place.mkdir()
        stage = on_kafka(bootstrap, f"{prefix}{format}.", place, partitions=2)
        stage.configure(events={**topic.events, "format": format, "registry": {"url": registry}}, model={"tau": 0.2})
        stage.send(messages(some, writer(registry, f"{prefix}{format}.events")))
        stage.run(crashes=(9,))
        published[format] = _decisions(stage)
    expected = published["json"]
    targets = sum(read_decision(value).decision == 1 for _, value, _ in expected)
    return Equality(len(expected), targets, {format: found == expected for format, found in published.items()})


def _decisions(stage: Stage) -> list[tuple[bytes | None, bytes | None, int]]:
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
            results = [_run(kafka.bootstrap, registry.url, folder, options.events, name) for name in TOPICS]
    return 0 if all(results) else 1


def _run(bootstrap: str, registry: str, folder: Path, count: int, name: str) -> bool:
    prefix = f"equality-{uuid.uuid4().hex[:8]}."
    (folder / name).mkdir()
    found = compare(bootstrap, registry, prefix, folder / name, count, TOPICS[name])
    reported = f"{found.decisions} decisions, {found.targets} of them targets"
    print(f"{name}: {reported}; equal to those from JSON: {found.equal}", flush=True)
    return all(found.equal.values())


if __name__ == "__main__":
    sys.exit(main())
