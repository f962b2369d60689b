"""A group on a real broker for the tools: topics made by `npstream init`, workers that die where they should."""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from click.testing import Result

from npstream import client
from npstream.kafka import KafkaStateReader
from npstream.records import Position
from npstream.settings import from_mapping
from npstream.testing import RunResult, Stage
from tests.contracts.builders import eventually
from tests.history.stages import SETTINGS, run_cli


class KafkaStage(Stage):
    """Settings in a file, topics on the broker, and the commands a user would run."""

    def __init__(self, bootstrap: str, prefix: str, folder: Path, partitions: int) -> None:
        shared = {name: SETTINGS[name] for name in ("model", "labels", "checkpoint", "worker")}
        self.mapping: dict[str, Any] = {
            **shared,
            "kafka": {
                "bootstrap": bootstrap,
                "group": prefix + "group",
                "worker_name": "w",
                "static_membership": False,
                "session_timeout_ms": 6000,
                "transaction_timeout_ms": 5000,
                "options": {"heartbeat.interval.ms": 500},
            },
            "topics": {"events": prefix + "events"},
        }
        self.began_ms = int(time.time() * 1000)
        self.file = folder / "settings.yaml"
        self.partitions = partitions
        self._sent = 0
        self.configure()
        made = self.tool("init", "--partitions", str(partitions))
        assert made.exit_code == 0, made.stderr

    def configure(self, **changes: Any) -> None:
        """Use these sections from now on."""
        self.mapping |= changes
        self.file.write_text(yaml.safe_dump(self.mapping))
        self.settings = from_mapping(self.mapping)

    def tool(self, *arguments: str) -> Result:
        """Run a command on the settings file."""
        return run_cli(*arguments, "--config", str(self.file))

    def send(self, events: Sequence[client.Message], partition: int | None = None, age_ms: int = 0) -> None:
        """Append events of this moment, or older. Older ones than the topic keeps may vanish at any moment."""
        first_ms = self.began_ms - age_ms
        super().send([replace(m, timestamp_ms=m.timestamp_ms or first_ms + i) for i, m in enumerate(events)], partition)

    def run(self, crashes: Sequence[int] = (), settings: Mapping[str, Any] | None = None) -> RunResult:
        """Let workers decide everything that was sent, and wait until the group knows that the last one left."""
        self.configure(**(settings or {}))
        outcome = super().run(crashes)
        self.wait_alone()
        return outcome

    def wait_alone(self) -> None:
        """Wait until nobody is in the group."""
        with closing(self.state()) as state:
            eventually(lambda: state.members() == [])

    def state(self) -> KafkaStateReader:
        """A look at the group; close it."""
        assert self.settings.kafka is not None
        return KafkaStateReader(self.settings.kafka.config(self.settings.topic_names()))

    def positions(self) -> dict[int, Position | None]:
        """What is committed."""
        with closing(self.state()) as state:
            return {partition: state.committed(partition) for partition in range(self.partitions)}
