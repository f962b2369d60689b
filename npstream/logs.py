"""Logging: one JSON object per line on standard output, or text on a terminal.

Events are constant strings with fields. What libraries say through `logging`
(the Kafka client does) takes the same road. A warning or error that repeats is
written a few times a minute with the number of those left out, and secrets
never are.
"""

import json
import logging
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal, TextIO

import orjson
import structlog
from structlog.processors import ExceptionRenderer, TimeStamper
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import EventDict, Processor, WrappedLogger

from npstream.secrets import Secrets

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "console"]

REPEATS_MAX = 5
"""Equal warnings or errors written within `REPEATS_S`; the rest is counted."""
REPEATS_S = 60.0
_KEYS_MAX = 500
"""Different messages remembered; beyond that the memory starts over."""
_FIRST = ("time", "level", "logger", "event")


def configure(
    level: LogLevel, format: LogFormat, stream: TextIO, clock: Callable[[], float], secrets: Secrets | None = None
) -> None:
    """Set up logging for this process; may be called again.

    `auto` is text on a terminal and JSON elsewhere. `clock` is monotonic and
    times the limit on repeated errors.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    on_console = format == "console" or (format == "auto" and stream.isatty())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _add_name,
            structlog.processors.add_log_level,
            RepeatLimit(clock),
            TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.processors.StackInfoRenderer(),
            *(_for_console if on_console else _for_machines)(secrets or Secrets(), stream.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=_factory(stream, on_console=on_console),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(level=number, handlers=[_Bridge()], force=True)


class RepeatLimit:
    """A processor that lets through the first few of equal warnings and errors a minute, then counts."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._windows: dict[tuple[str, str, str], tuple[float, int]] = {}

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        """Drop the event, or add `suppressed`: the number left out since the last such line."""
        if method not in ("warning", "error"):
            return event
        # Libraries put counts and times into their text; equal but for digits is equal.
        text = re.sub(r"\d+", "#", str(event.get("event")))
        key = (str(event.get("logger")), text, str(event.get("partition")))
        now = self._clock()
        started, seen = self._windows.get(key, (now, 0))
        if now - started >= REPEATS_S:
            if seen > REPEATS_MAX:
                event["suppressed"] = seen - REPEATS_MAX
            started, seen = now, 0
        if key not in self._windows and len(self._windows) >= _KEYS_MAX:
            self._windows.clear()
        self._windows[key] = (started, seen + 1)
        if seen >= REPEATS_MAX:
            raise structlog.DropEvent
        return event


class _Outlet:
    """A stream that may fail without stopping the worker: a full disk or a closed pipe costs log lines only."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: Any) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(data)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()


class _JsonLogger(structlog.BytesLogger):
    name = ""


class _TextLogger(structlog.WriteLogger):
    name = ""


def _factory(stream: TextIO, *, on_console: bool) -> Callable[..., WrappedLogger]:
    """Makes loggers that know the name they were asked for."""
    outlet: Any = _Outlet(stream if on_console else stream.buffer)

    def build(name: str = "npstream") -> WrappedLogger:
        logger = _TextLogger(outlet) if on_console else _JsonLogger(outlet)
        logger.name = name
        return logger

    return build


class _Bridge(logging.Handler):
    """Hands what libraries log to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        """Never raises: a message that cannot be formatted is shown as it is."""
        try:
            text = record.getMessage()
        except Exception:
            text = str(record.msg)
        logger = structlog.get_logger(record.name)
        logger.log(_level(record.levelno), text, **({"exc_info": record.exc_info} if record.exc_info else {}))


def _level(number: int) -> int:
    """The nearest named level at or below, so that odd library levels are understood."""
    return max((known for known in (10, 20, 30, 40, 50) if known <= number), default=10)


def _add_name(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    event.setdefault("logger", getattr(logger, "name", "npstream"))
    return event


def _for_machines(secrets: Secrets, _: bool) -> list[Processor]:
    # Local variables stay out of tracebacks: they are where secrets would be.
    traceback = ExceptionRenderer(ExceptionDictTransformer(show_locals=False))
    return [traceback, _masking(secrets), _render_json]


def _for_console(secrets: Secrets, colors: bool) -> list[Processor]:
    renderer = structlog.dev.ConsoleRenderer(
        colors=colors, timestamp_key="time", exception_formatter=structlog.dev.plain_traceback
    )
    return [structlog.processors.format_exc_info, _masking(secrets), renderer]


def _masking(secrets: Secrets) -> Processor:
    def mask(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        masked: dict[str, Any] = secrets.mask(dict(event))
        return masked

    return mask


def _render_json(logger: WrappedLogger, method: str, event: EventDict) -> bytes:
    ordered = {key: event[key] for key in _FIRST if key in event} | dict(event)
    try:
        return orjson.dumps(ordered)
    except TypeError:
        # Lone surrogates and integers beyond 64 bits, which orjson refuses.
        return json.dumps(ordered).encode()
