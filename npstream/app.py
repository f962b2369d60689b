"""The one place where real objects are built and wired: clients, clock, worker, dashboard."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from npstream import __version__
from npstream.codec.snapshot import decode_snapshot
from npstream.embedded import EmbeddedBroker, EmbeddedLog, EmbeddedStateReader
from npstream.errors import StateCorrupt, UsageError
from npstream.kafka import KafkaBroker, KafkaLog, KafkaStateReader
from npstream.kafka.dismissal import dismiss
from npstream.kafka.orphans import OrphanWatch
from npstream.model import ALGORITHM, Model
from npstream.monitor.dashboard import Dashboard, HttpConfig
from npstream.monitor.status import Identity
from npstream.monitor.stuck import StuckWatch, threshold_s
from npstream.observe import Observer
from npstream.partition import PartitionProcessor
from npstream.port import Broker, Log, StateReader
from npstream.secrets import Secrets
from npstream.settings import Settings
from npstream.worker import Origin, Worker

TOOL_SLOT = "tool"
"""The slot, and with the group the transactional id, of a command that moves positions."""


def build_worker(settings: Settings, stop: threading.Event, observer: Observer) -> Worker:
    """A worker as the settings describe it; nothing is connected yet."""
    return Worker(
        connect=connector(settings, stop, observer),
        origin=origin_of(settings),
        limits=settings.worker.limits(),
        clock=time.monotonic,
        stop=stop,
        observer=observer,
    )


def build_dashboard(settings: Settings) -> Dashboard | None:
    """Metrics, probes and the live page; None when http is off. Takes the port, raises `Fatal` when it cannot."""
    if settings.http is None:
        return None
    kafka = settings.kafka
    timeout_ms = 0 if kafka is None else kafka.transaction_timeout_ms
    config = HttpConfig(host=settings.http.host, port=settings.http.port)
    stuck = StuckWatch(settings.topic_names(), threshold_s(timeout_ms))
    instance = "embedded" if kafka is None else kafka.slot
    identity = Identity(settings.group, settings.topic_names().events, instance, __version__, ALGORITHM)
    return Dashboard(
        config, identity, time.monotonic, time.time, lambda: open_log(settings), secrets_of(settings), stuck
    )


def secrets_of(settings: Settings) -> Secrets:
    """Values that must never be shown."""
    values = () if settings.kafka is None else settings.kafka.security.values().items()
    return Secrets([value for name, value in values if "password" in name])


def connector(settings: Settings, stop: threading.Event, observer: Observer) -> Callable[[], tuple[Broker, Log]]:
    """What makes fresh clients for each session of a worker."""

    orphans = OrphanWatch()  # remembers over sessions how often it made this worker leave the group

    def connect() -> tuple[Broker, Log]:
        return open_broker(settings, stop, observer, orphans), open_log(settings)

    return connect


def open_broker(
    settings: Settings, stop: threading.Event, observer: Observer, orphans: OrphanWatch | None = None
) -> Broker:
    """The broker of these settings. Raises `Retryable` or `Fatal` when it cannot be used."""
    topics = settings.topic_names()
    if settings.embedded is not None:
        return EmbeddedBroker(settings.embedded.path, topics, settings.group)
    assert settings.kafka is not None
    logger = logging.getLogger("npstream.kafka")
    return KafkaBroker(settings.kafka.config(topics), observer.turned, logger, stop.is_set, orphans)


def open_log(settings: Settings) -> Log:
    """Plain reading and writing of the same topics."""
    topics = settings.topic_names()
    if settings.embedded is not None:
        return EmbeddedLog(settings.embedded.path, topics)
    assert settings.kafka is not None
    return KafkaLog(settings.kafka.config(topics))


def open_state(settings: Settings) -> StateReader:
    """The group's committed state, read beside its workers."""
    topics = settings.topic_names()
    if settings.embedded is not None:
        return EmbeddedStateReader(settings.embedded.path, topics, settings.group)
    assert settings.kafka is not None
    return KafkaStateReader(settings.kafka.config(topics))


def open_tool_broker(settings: Settings) -> Broker:
    """The broker of a tool that joins the empty group: it has a slot of its own and leaves no place behind."""
    if settings.embedded is not None:
        return open_broker(settings, threading.Event(), Observer())
    assert settings.kafka is not None
    config = replace(settings.kafka.config(settings.topic_names()), slot=TOOL_SLOT, static_membership=False)
    return KafkaBroker(config)


def dismiss_workers(settings: Settings) -> None:
    """Take dead workers' places in the group from them; see `kafka.dismissal`. A file has no places to take."""
    if settings.kafka is not None:
        dismiss(settings.kafka.config(settings.topic_names()))


def origin_of(settings: Settings) -> Origin:
    """What every partition of these settings is, and how it begins."""
    path = settings.start_from
    return Origin(
        group=settings.group,
        topic=settings.topic_names().events,
        config=settings.partition_config(),
        cadence=settings.checkpoint.cadence(),
        start=settings.start_at(),
        seed=None if path is None else lambda: read_model(path),
    )


def read_model(path: Path) -> Model:
    """The model of a model file, which is a snapshot. Raises `UsageError` naming the file."""
    try:
        return PartitionProcessor.from_snapshot(decode_snapshot(path.read_bytes())).model
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be read ({error.strerror}); give a file written by `npstream train` or "
            "`npstream inspect --export`"
        ) from None
    except StateCorrupt as error:
        raise UsageError(f"{path}: {error}") from None
