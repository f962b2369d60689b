"""The one place where real objects are built and wired: clients, clock, worker, dashboard."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from npstream import __version__
from npstream.backend import backend_of
from npstream.errors import StateCorrupt, UsageError
from npstream.model import ALGORITHM, Model
from npstream.monitor.dashboard import Dashboard, HttpConfig
from npstream.monitor.group import GroupWatch
from npstream.monitor.status import Identity
from npstream.monitor.stuck import StuckWatch, threshold_s
from npstream.observe import Observer
from npstream.partition.model_file import model_of
from npstream.settings import Settings
from npstream.worker import Origin, Worker


def build_worker(settings: Settings, stop: threading.Event, observer: Observer) -> Worker:
    """A worker as the settings describe it; nothing is connected yet."""
    backend = backend_of(settings)
    return Worker(
        connect=lambda: (backend.open_broker(stop, observer), backend.open_log(observer.turned)),
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
    backend, topics = backend_of(settings), settings.topic_names()
    config = HttpConfig(host=settings.http.host, port=settings.http.port)
    stuck = StuckWatch(topics, threshold_s(backend.transaction_timeout_ms))
    identity = Identity(settings.group, topics.events, backend.worker_name, __version__, ALGORITHM)
    return Dashboard(config, identity, time.monotonic, time.time, backend.open_log, backend.secrets(), stuck)


def build_group_watch(settings: Settings) -> GroupWatch:
    """What looks at the settings' group from outside; nothing is connected yet."""
    backend = backend_of(settings)
    identity = Identity(settings.group, settings.topic_names().events, "", __version__, ALGORITHM)
    return GroupWatch(identity, backend.open_log, backend.open_state, time.monotonic, time.time)


def origin_of(settings: Settings) -> Origin:
    """What every partition of these settings is, and how it begins. Raises as `Backend.partition_config` does."""
    return Origin(
        group=settings.group,
        topic=settings.topic_names().events,
        config=backend_of(settings).partition_config(),
        cadence=settings.checkpoint.cadence(),
        start=settings.start_at(),
        seed=seed_of(settings),
    )


def seed_of(settings: Settings) -> Callable[[], Model] | None:
    """Reads the model that a partition without state starts from; None for a random start."""
    path = settings.start_from
    return None if path is None else lambda: read_model(path)


def read_model(path: Path) -> Model:
    """The model of a model file. Raises `UsageError` naming the file."""
    try:
        return model_of(path.read_bytes())
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be read ({error.strerror}); give a file written by `npstream train` or "
            "`npstream inspect --export`"
        ) from None
    except StateCorrupt as error:
        raise UsageError(f"{path}: {error}") from None
