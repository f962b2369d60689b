"""Topics, a group, a user and a worker on the secured broker, of one test's own."""

import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from npstream.cli import exits
from npstream.kafka import KafkaConfig, KafkaLog
from npstream.records import Channel, Topics
from tests.monitor.builders import events
from tests.security.secured import Right, Secured, least_rights
from tests.stage.child import WAIT_S
from tests.stage.command import WorkerCommand

RUBBISH = b"not an event"
PLACES = Topics("events", "decisions", "dead", "checkpoints", "labels")


@dataclass
class Tenant:
    """Topics, a group, a user and a worker's settings on the secured broker."""

    secured: Secured
    folder: Path
    prefix: str
    password: str = field(default_factory=lambda: f"pw-{secrets.token_hex(12)}")

    def __post_init__(self) -> None:
        self.user = f"{self.prefix}user"
        self.group = f"{self.prefix}group"
        self.topics = Topics(*(self.prefix + name for name in PLACES.names()))
        self.password_file = self.folder / "password"
        self.password_file.write_text(self.password + "\n")

    def prepare(self, rights: Iterable[Right]) -> "Tenant":
        """Make the topics, 40 events with a bad one among them, and the user."""
        self.secured.create_user(self.user, self.password, rights)
        return self._fill()

    def _fill(self) -> "Tenant":
        self.secured.create_topics(self.topics)
        self.send([*events(20), RUBBISH, *events(19, seed=1)])
        log = self.log()
        log.append(Channel.LABELS, 0, [(None, b'{"id":"nobody","y":1}', (), 1_700_000_000_000)])
        log.close()
        return self

    def prepare_for(self, name: str) -> "Tenant":
        """The same for somebody who logs in without a password and has the least rights."""
        self.secured.grant(name, least_rights(self.topics, self.group))
        return self._fill()

    def send(self, values: Sequence[bytes]) -> None:
        """More events."""
        log = self.log()
        log.append(Channel.EVENTS, 0, [(None, value, (), int(time.time() * 1000)) for value in values])
        log.close()

    def log(self) -> KafkaLog:
        """Reads and writes as the administrator."""
        config = KafkaConfig(self.secured.broker.bootstrap, self.group, "log", self.topics, connect_timeout_ms=60_000)
        return KafkaLog(config)

    def settings(self, **security: str) -> dict[str, Any]:
        """A settings file's content; the password comes from a file."""
        return {
            "kafka": {
                "bootstrap": self.secured.address,
                "group": self.group,
                "worker_name": "worker-0",
                "security": {
                    "protocol": "SASL_SSL",
                    "mechanism": "SCRAM-SHA-512",
                    "username": self.user,
                    "password": f"${{file:{self.password_file}}}",
                    "ca_file": str(self.secured.authority.certificate),
                    **security,
                },
            },
            "topics": {name: value for name, value in asdict(self.topics).items() if name != "labels"},
            "labels": {"topic": self.topics.labels},
            "model": {"d": 2, "D": 8, "tau": 0.1},
            "http": {"port": 0},
        }

    def worker(self, **security: str) -> WorkerCommand:
        """`npstream run`, not yet started."""
        return WorkerCommand(self.folder, "worker", self.settings(**security))

    def worker_at(self, listener: str, **security: str) -> WorkerCommand:
        """One that logs in at another listener, in another way."""
        settings = self.settings()
        settings["kafka"]["bootstrap"] = self.secured.broker.address(listener)
        settings["kafka"]["security"] = {"ca_file": str(self.secured.authority.certificate), **security}
        return WorkerCommand(self.folder, "worker", settings)


def refused(worker: WorkerCommand) -> str:
    """What a worker says that cannot even begin: one line, with the code for brokers and rights."""
    worker.start()
    try:
        assert worker.wait(WAIT_S) == exits.FATAL, worker.said()
    finally:
        worker.kill()
    said = worker.err.read_text()
    assert said.count("\n") == 1
    assert "Traceback" not in worker.said()
    return said
