"""Building clients: their log lines and errors go to a logger, and nothing of ours ever raises inside them.

An exception that escapes a callback makes the client throw away records it has
already moved past, so both sinks here swallow whatever goes wrong in them.
"""

import faulthandler
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from npstream.errors import Fatal, Retryable
from npstream.kafka.config import ClientSettings, KafkaConfig, member_settings, producer_settings
from npstream.kafka.errors import refuses_login
from npstream.kafka.msk import MskTokens

_HELD_S = 30.0
_STDERR = 2

_Client = TypeVar("_Client", Producer, Consumer, AdminClient)


class Sink:
    """Takes a client's log lines (`log`) and asynchronous errors (call); remembers a refused login."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self.login_error: KafkaError | None = None

    def log(self, level: int, message: str, *args: object) -> None:
        """One log line of librdkafka; options are given to all clients, so that some do not fit one is no news."""
        with suppress(Exception):
            if any("property and will be ignored" in str(arg) for arg in args):
                return
            self._logger.log(level, message, *args)

    def __call__(self, error: KafkaError) -> None:
        with suppress(Exception):
            if refuses_login(error):
                self.login_error = error
            self._logger.warning("kafka client: %s: %s", error.name(), error.str())


def new_producer(settings: ClientSettings, sink: Sink) -> Producer:
    """A producer; raises `Fatal` when the library refuses its settings, `Retryable` without a token."""
    return _built(settings, lambda: Producer({**settings, "error_cb": sink}, logger=sink))


def new_consumer(settings: ClientSettings, sink: Sink) -> Consumer:
    """A consumer; raises `Fatal` when the library refuses its settings, `Retryable` without a token."""
    return _built(settings, lambda: Consumer({**settings, "error_cb": sink}, logger=sink))


def new_admin(settings: ClientSettings, sink: Sink) -> AdminClient:
    """An admin client; raises `Fatal` when the library refuses its settings, `Retryable` without a token."""
    return _built(settings, lambda: AdminClient({**settings, "error_cb": sink}, logger=sink))  # type: ignore[dict-item]


def _built(settings: ClientSettings, build: Callable[[], _Client]) -> _Client:
    """The client; one that gets its tokens from a function waits for the first, and says only that there is none."""
    try:
        return build()
    except (KafkaException, ValueError, TypeError) as error:
        tokens = settings.get("oauth_cb")
        if isinstance(tokens, MskTokens) and tokens.problem is not None:
            raise Retryable(
                f"no token could be signed for Amazon MSK: {tokens.problem}: check the AWS credentials of this process "
                "and kafka.security.aws_region"
            ) from error
        raise Fatal(
            f"the Kafka client refuses its settings: {error}: correct kafka.options and kafka.security"
        ) from error


def client_problems(config: KafkaConfig) -> list[str]:
    """What the library itself refuses first in a configuration: an unknown option, a wrong value, a missing key file.

    Clients are built without an address, so nothing is connected.
    """
    sink = Sink(logging.getLogger("npstream.kafka"))
    alone: ClientSettings = {"bootstrap.servers": ""}
    try:
        new_consumer(member_settings(config) | alone, sink).close()
        new_producer(producer_settings(config) | alone, sink).close()
    except Fatal as error:
        return [str(error)]
    return []


class _Guard:
    """Ends the process when the interpreter is held: no thread of ours could. There is one timer for the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deadlines: dict[object, float] = {}

    @contextmanager
    def over(self, seconds: float) -> Iterator[None]:
        """Expect the block to end within this time; any number of threads may expect something."""
        mine = object()
        self._set(mine, time.monotonic() + seconds)
        try:
            yield
        finally:
            self._set(mine, None)

    def _set(self, whose: object, deadline: float | None) -> None:
        with self._lock:
            if deadline is None:
                del self._deadlines[whose]
            else:
                self._deadlines[whose] = deadline
            faulthandler.cancel_dump_traceback_later()
            if self._deadlines:
                left_s = max(0.001, min(self._deadlines.values()) - time.monotonic())
                faulthandler.dump_traceback_later(left_s, exit=True, file=_STDERR)


_guard = _Guard()


def close_quietly(name: str, close: Callable[[], object], timeout_s: float, held_s: float = _HELD_S) -> bool:
    """Run a client's close in the background, since it knows no timeout; returns whether it ended in time.

    Should it hold the interpreter while it is waited for, then nothing in this process moves any more, neither
    this wait nor the watchdog. After `held_s` of that the process ends, with every thread's stack on stderr; its
    next life goes on where the last commit left off, as after any kill.

    At the end of the interpreter no thread can start any more, and waiting for one would never end: what is still
    open then, as a reader that was not read to its end, ends with the process.
    """
    if sys.is_finalizing():
        return False

    def run() -> None:
        with suppress(Exception):
            close()

    thread = threading.Thread(target=run, name=f"close-{name}", daemon=True)
    with _guard.over(timeout_s + held_s):
        thread.start()
        thread.join(timeout_s)
    return not thread.is_alive()
