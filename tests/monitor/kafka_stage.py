"""A group on a real broker for the tools: topics made by `npstream init`, workers that die where they are told."""

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml
from click.testing import Result

from npstream import app, client, testing
from npstream.backend import backend_of
from npstream.kafka import KafkaStateReader
from npstream.port import Broker, Log
from npstream.records import Channel, Position, Record
from npstream.settings import from_mapping
from npstream.worker import Worker
from tests.contracts.builders import eventually
from tests.history.stages import SETTINGS, run_cli


class KafkaStage:
    """Settings in a file, topics on the broker, and the commands a user would run."""

    def __init__(self, bootstrap: str, prefix: str, folder: Path, partitions: int) -> None:
        shared = {name: SETTINGS[name] for name in ("model", "labels", "checkpoint", "worker")}
        self.mapping: dict[str, Any] = {
            **shared,
            "kafka": {
                "bootstrap": bootstrap,
                "group": prefix + "group",
                "slot": "w",
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

    def send(self, messages: Sequence[client.Message], partition: int, age_ms: int = 0) -> None:
        """Append events to a partition. Older ones than the topic keeps may vanish at any moment."""
        first_ms = self.began_ms - age_ms
        with closing(backend_of(self.settings).open_log()) as log:
            records = [(m.key, m.value, m.headers, m.timestamp_ms or first_ms + i) for i, m in enumerate(messages)]
            log.append(Channel.EVENTS, partition, records)

    def run(self, crashes: Sequence[int] = ()) -> int:
        """Let workers decide everything that was sent; answers how many of them died."""
        with closing(backend_of(self.settings).open_log()) as log:
            ends = {p: log.ends(Channel.EVENTS, p).stable for p in range(self.partitions)}
        watch = testing._Watch({partition: end for partition, end in ends.items() if end})
        deaths = testing._Deaths(crashes)

        def connect() -> tuple[Broker, Log]:
            broker = backend_of(self.settings).open_broker(watch.stop, watch)
            return testing.MortalBroker(broker, deaths.step), backend_of(self.settings).open_log()

        limits = self.settings.worker.limits()
        while not watch.done:
            worker = Worker(connect, app.origin_of(self.settings), limits, time.monotonic, watch.stop, watch)
            try:
                worker.run()
            except testing._PowerCut:
                watch.died()
        self.wait_alone()
        return deaths.met

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

    def records(self, channel: Channel, partition: int) -> list[Record]:
        """Everything committed on one partition of a topic."""
        with closing(backend_of(self.settings).open_log()) as log:
            ends = log.ends(channel, partition)
            return list(log.read(channel, partition, ends.begin, ends.stable))
