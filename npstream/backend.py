"""Where a group lives, on a Kafka cluster or in an embedded file: the one place that decides it."""

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from npstream.embedded import EmbeddedBroker, EmbeddedLabelling, EmbeddedLog, EmbeddedStateReader, create_topics
from npstream.errors import Fatal, Retryable, StateCorrupt, UsageError, plural
from npstream.kafka import KafkaBroker, KafkaLog, KafkaStateReader
from npstream.kafka.admin import Admin
from npstream.kafka.clients import client_problems
from npstream.kafka.dismissal import dismiss
from npstream.kafka.labelling import KafkaLabelling
from npstream.kafka.msk import MECHANISM, signer_problem
from npstream.kafka.orphans import OrphanWatch
from npstream.kafka.router import Router
from npstream.kafka.topics import Wishes, summary
from npstream.observe import Observer
from npstream.partition import PartitionConfig
from npstream.port import Broker, Heartbeat, Labelling, Log, StateReader
from npstream.records import Topics
from npstream.schemas import Schemas
from npstream.secrets import Secrets
from npstream.settings import EmbeddedSection, KafkaSection, Settings

if TYPE_CHECKING:  # a worker never loads the doctor
    from npstream.doctor.doctor import Round
    from npstream.doctor.findings import Finding

TOOL_NAME = "tool"
"""The worker name, and with the group the transactional id, of a command that repositions partitions."""

ShowProgress = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]
"""Shows the progress of something with a name and a size; gives the function that takes what is done."""


class TopicPlan(NamedTuple):
    """What `init` has to do, in words, and the function that does it."""

    actions: list[str]
    apply: Callable[[], None]


class Backend(Protocol):
    """The clients of one group, and what else depends on where it lives. Nothing is connected before it is opened."""

    @property
    def worker_name(self) -> str:
        """This worker's name in metrics and on the page."""

    @property
    def transaction_timeout_ms(self) -> int:
        """How long an open transaction may hold back readers; 0 where none can."""

    def open_broker(self, stop: threading.Event, observer: Observer) -> Broker:
        """The worker's broker. Raises `Retryable` or `Fatal` when it cannot be used."""

    def open_log(self, heartbeat: Heartbeat = lambda: None) -> Log:
        """Plain reading and writing of the same topics; the heartbeat is called while a read waits for brokers."""

    def open_state(self) -> StateReader:
        """The group's committed state, read beside its workers."""

    def open_sole_member(self) -> Broker:
        """The broker of a tool that joins the empty group; it leaves no member behind."""

    def open_router(self, source: str) -> Router:
        """What copies labels from another topic. Raises `UsageError` where there is no labels topic, or no Kafka."""

    def open_labelling(self) -> Labelling:
        """What a command writes labels to the events topic with; nothing is held or fenced before it is opened."""

    def remove_dead_workers(self) -> None:
        """End the membership of workers that an operator says are gone."""

    def advise_on_members(self, gone: bool) -> str:
        """What to do about members that are stopped already; `gone`: dead workers have been removed."""

    def plan_topics(self, partitions: int | None, replication: int | None, retention_hours: int | None) -> TopicPlan:
        """What is needed to have the topics as they must be; None takes the default."""

    def partition_config(self) -> PartitionConfig:
        """What a partition does with an event. Raises `Retryable` or `Fatal` when decisions have a schema."""

    def find_client_problems(self) -> list[str]:
        """Settings that only the client library can judge. Connects to nothing."""

    def examine(self, how: "Round", progress: ShowProgress) -> tuple[list["Finding"], list[str]]:
        """The doctor's findings, and the names of what was looked at."""

    def secrets(self) -> Secrets:
        """Values that must never be shown."""


def backend_of(settings: Settings) -> Backend:
    """The backend that the settings name."""
    if settings.kafka is not None:
        return KafkaBackend(settings, settings.kafka)
    assert settings.embedded is not None
    return EmbeddedBackend(settings, settings.embedded)


class KafkaBackend:
    """A group on a Kafka cluster."""

    def __init__(self, settings: Settings, section: KafkaSection) -> None:
        self._settings = settings
        self._section = section
        self._schemas = Schemas(settings)
        self._config = section.config(settings.topic_names())
        self._orphans = OrphanWatch()  # remembers over sessions how often it made this worker leave the group
        self.worker_name = section.worker_name
        self.transaction_timeout_ms = section.transaction_timeout_ms

    def open_broker(self, stop: threading.Event, observer: Observer) -> Broker:
        logger = logging.getLogger("npstream.kafka")
        broker = KafkaBroker(self._config.renewed(), observer.turned, logger, stop.is_set, self._orphans)
        return self._schemas.in_broker(broker)

    def open_log(self, heartbeat: Heartbeat = lambda: None) -> Log:
        return self._schemas.in_log(KafkaLog(self._config.renewed(), heartbeat=heartbeat))

    def open_state(self) -> StateReader:
        return KafkaStateReader(self._config)

    def open_sole_member(self) -> Broker:
        config = replace(self._config, worker_name=TOOL_NAME, static_membership=False)
        return self._schemas.in_broker(KafkaBroker(config))

    def open_router(self, source: str) -> Router:
        if self._config.topics.labels is None:
            raise UsageError("labels.topic is not given: name the topic that labels are to be copied to")
        if source in self._config.topics.names():
            raise UsageError(f"--source {source}: is one of this group's own topics")
        return Router(self._config, source, logging.getLogger("npstream.kafka"))

    def open_labelling(self) -> Labelling:
        return KafkaLabelling(self._config, logging.getLogger("npstream.kafka"))

    def remove_dead_workers(self) -> None:
        dismiss(self._config)

    def advise_on_members(self, gone: bool) -> str:
        forgotten = f"is forgotten {self._config.session_timeout_ms / 1000:g} s after it"
        if gone:
            return f" A worker without static membership that was killed {forgotten} died; others have joined since."
        return f" A stopped worker {forgotten} stopped; --workers-are-gone does not wait for that."

    def plan_topics(self, partitions: int | None, replication: int | None, retention_hours: int | None) -> TopicPlan:
        admin = Admin(self._config)
        retention_ms = None if retention_hours is None else retention_hours * 3_600_000
        given = {"partitions": partitions, "replication": replication, "retention_ms": retention_ms}
        actions = admin.plan(Wishes(**{name: value for name, value in given.items() if value is not None}))
        return _with_schemas(self._schemas, summary(actions), lambda: admin.prepare(actions))

    def partition_config(self) -> PartitionConfig:
        return self._schemas.partition_config()

    def find_client_problems(self) -> list[str]:
        # Keys and certificates are often not there where settings are written.
        signer = [signer_problem()] if self._config.security.get("mechanism") == MECHANISM else []
        return [*filter(None, signer), *client_problems(replace(self._config, security={}))]

    def examine(self, how: "Round", progress: ShowProgress) -> tuple[list["Finding"], list[str]]:
        from npstream.doctor.doctor import examine_cluster
        from npstream.doctor.group_checks import Patient

        config, topics = self._config, self._config.topics
        with closing(KafkaLog(config)) as log, closing(self.open_state()) as state:
            seeded = self._settings.start_from is not None
            patient = Patient(self._schemas.in_log(log), state, config.group, topics, self.partition_config(), seeded)
            found = _check_registry(self._schemas)
            found += examine_cluster(config, self._settings.worker.poll_ms, patient, log, how)
        return found, [f"brokers at {config.bootstrap}", f"group {config.group}", *topics.names()]

    def secrets(self) -> Secrets:
        known = self._section.secrets()
        known.add(_registry_secrets(self._settings))
        return known


class EmbeddedBackend:
    """A group in an embedded file: one process, so no members and no timeouts."""

    worker_name = "embedded"
    transaction_timeout_ms = 0

    def __init__(self, settings: Settings, section: EmbeddedSection) -> None:
        self._settings = settings
        self._section = section
        self._schemas = Schemas(settings)
        self._path = section.path
        self._topics = settings.topic_names()

    def open_broker(self, stop: threading.Event, observer: Observer) -> Broker:
        return self.open_sole_member()

    def open_log(self, heartbeat: Heartbeat = lambda: None) -> Log:
        return self._schemas.in_log(EmbeddedLog(self._path, self._topics))

    def open_state(self) -> StateReader:
        return EmbeddedStateReader(self._path, self._topics, self._section.group)

    def open_sole_member(self) -> Broker:
        return self._schemas.in_broker(EmbeddedBroker(self._path, self._topics, self._section.group))

    def open_router(self, source: str) -> Router:
        raise UsageError(
            "route-labels copies between topics of a Kafka cluster; for an embedded log give labels as a file to "
            "`npstream label`"
        )

    def open_labelling(self) -> Labelling:
        return EmbeddedLabelling(self._path, self._topics)

    def remove_dead_workers(self) -> None:
        pass

    def advise_on_members(self, gone: bool) -> str:
        return ""

    def plan_topics(self, partitions: int | None, replication: int | None, retention_hours: int | None) -> TopicPlan:
        count = partitions or self._section.partitions
        action = f"make {self._path} with {plural(count, 'partition')} in each of the topics"
        return _with_schemas(self._schemas, [action], lambda: create_topics(self._path, self._topics, count))

    def partition_config(self) -> PartitionConfig:
        return self._schemas.partition_config()

    def find_client_problems(self) -> list[str]:
        return []

    def examine(self, how: "Round", progress: ShowProgress) -> tuple[list["Finding"], list[str]]:
        from npstream.doctor.doctor import examine_file
        from npstream.doctor.file_checks import RESTORE, check_pages
        from npstream.doctor.findings import Finding
        from npstream.doctor.group_checks import Patient

        name, found = str(self._path), _check_registry(self._schemas)
        try:
            with closing(EmbeddedLog(self._path, self._topics)) as file, closing(self.open_state()) as state:
                with progress("pages of the file", None):
                    found += check_pages(name, file.quick_check())
                log = self._schemas.in_log(file)
                seeded = self._settings.start_from is not None
                patient = Patient(log, state, self._section.group, self._topics, self.partition_config(), seeded)
                with progress("records", _count_records(log, self._topics)) as advance:
                    found += examine_file(patient, how, advance)
        except StateCorrupt as error:
            found.append(Finding("error", name, str(error), RESTORE))
        return found, [name]

    def secrets(self) -> Secrets:
        return Secrets(_registry_secrets(self._settings))


def _with_schemas(schemas: Schemas, actions: list[str], apply: Callable[[], None]) -> TopicPlan:
    """What is to do for the topics, and then in the schema registry."""

    def apply_both() -> None:
        apply()
        schemas.register()

    return TopicPlan([*actions, *schemas.plan()], apply_both)


def _check_registry(schemas: Schemas) -> list["Finding"]:
    from npstream.doctor.findings import Finding

    try:
        schemas.probe()
    except (Retryable, Fatal) as error:
        return [Finding("error", "schema registry", str(error), "see the message; no event can be read without it")]
    return []


def _registry_secrets(settings: Settings) -> list[str]:
    section = settings.events.registry
    return [section.secret() or ""] if section is not None else []


def _count_records(log: Log, topics: Topics) -> int:
    places = [(channel, partition) for channel in topics.channels() for partition in range(log.partitions(channel))]
    return sum(ends.stable - ends.begin for ends in log.all_ends(places).values())
