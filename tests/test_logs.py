"""Logs: one JSON object a line, secrets masked, repeats limited, libraries included."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from npstream.logs import REPEATS_MAX, REPEATS_S, LogFormat, LogLevel, configure
from npstream.secrets import MASK, Secrets
from tests.monitor.test_status import Clock


class Desk:
    """A place where log lines arrive."""

    def __init__(self, *, level: LogLevel = "info", format: LogFormat = "json", secrets: tuple[str, ...] = ()) -> None:
        self.clock = Clock()
        self._bytes = io.BytesIO()
        self._stream = io.TextIOWrapper(self._bytes, "utf-8", write_through=True)
        configure(level, format, self._stream, self.clock, Secrets(secrets))

    def text(self) -> str:
        """All that was written."""
        self._stream.flush()
        return self._bytes.getvalue().decode()

    def lines(self) -> list[dict[str, Any]]:
        """Each line as JSON."""
        return [json.loads(line) for line in self.text().splitlines()]


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Leave the process's logging as it was found."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:], root.level = before


def test_a_line_is_one_json_object() -> None:
    """Time in UTC, level, logger and event come first, then the fields."""
    desk = Desk()
    structlog.get_logger("npstream.worker").info("assigned", partition=3, seconds=0.5)
    (line,) = desk.lines()

    assert list(line) == ["time", "level", "logger", "event", "partition", "seconds"]
    assert line["time"].endswith("Z")
    assert (line["level"], line["logger"], line["event"], line["partition"]) == (
        "info",
        "npstream.worker",
        "assigned",
        3,
    )


def test_what_is_below_the_level_is_not_written() -> None:
    """Debug lines, ours and a library's, are dropped at level info."""
    desk = Desk()
    structlog.get_logger("npstream").debug("no")
    logging.getLogger("npstream.kafka").debug("no")

    assert desk.text() == ""


def test_a_library_takes_the_same_road() -> None:
    """What the Kafka client logs through `logging` becomes the same kind of line."""
    desk = Desk()
    logging.getLogger("npstream.kafka").warning("broker %s is down", "b1")
    (line,) = desk.lines()

    assert (line["level"], line["logger"], line["event"]) == ("warning", "npstream.kafka", "broker b1 is down")


@pytest.mark.parametrize("format", ["json", "console"])
def test_secrets_are_masked_wherever_they_are(format: LogFormat) -> None:
    """In events, fields, containers, keys, bytes, objects, library messages, exceptions and their causes."""
    desk = Desk(format=format, secrets=("hunter22", 'quo"te\\'))
    log = structlog.get_logger("npstream")
    log.info("password hunter22", a='quo"te\\', b={"hunter22": ["hunter22"]}, c=b"hunter22", d=ValueError("hunter22"))
    logging.getLogger("lib").warning("user=%s password=%s", "me", "hunter22")
    try:
        try:
            raise KeyError("hunter22")
        except KeyError as error:
            raise ValueError('about quo"te\\') from error
    except ValueError:
        log.exception("failed")
    text = desk.text()

    assert "hunter22" not in text
    assert 'quo"te' not in text
    assert 'quo\\"te' not in text
    assert text.count(MASK) >= 8


def test_local_variables_stay_out_of_tracebacks() -> None:
    """A traceback names files and lines; the values that were in hand are nobody's business."""
    desk = Desk()

    def connect() -> None:
        password = "not-configured-as-secret"
        raise ConnectionError(len(password))

    try:
        connect()
    except ConnectionError:
        structlog.get_logger("npstream").exception("failed")

    assert "connect" in desk.text()
    assert "not-configured-as-secret" not in desk.text().replace(__file__, "")


def test_short_secrets_are_masked_as_whole_values_only() -> None:
    """A secret of one letter must not turn every word into stars."""
    secrets = Secrets(["a", ""])

    assert secrets.mask({"x": "a", "y": "banana", "z": [1, None, True, 2.5]}) == {
        "x": MASK,
        "y": "banana",
        "z": [1, None, True, 2.5],
    }


def test_a_repeated_error_is_written_a_few_times_a_minute() -> None:
    """The rest is counted and reported with the next line; other messages and other partitions are not touched."""
    desk = Desk()
    log = structlog.get_logger("npstream")
    for n in range(20):
        log.warning("reset", partition=0, n=n)
    log.warning("reset", partition=1)
    log.error("other", partition=0)
    log.info("news", partition=0)
    desk.clock.wait(REPEATS_S)
    log.warning("reset", partition=0, n=20)
    lines = desk.lines()

    assert [line["n"] for line in lines if "n" in line] == [*range(REPEATS_MAX), 20]
    assert lines[-1]["suppressed"] == 20 - REPEATS_MAX
    assert len(lines) == REPEATS_MAX + 4


def test_library_messages_that_differ_by_a_number_are_equal() -> None:
    """Counters and durations inside a client's text do not defeat the limit."""
    desk = Desk()
    for n in range(20):
        logging.getLogger("npstream.kafka").error("connect failed after %d ms", n)

    assert len(desk.lines()) == REPEATS_MAX


@pytest.mark.parametrize("value", ["\ud800", 2**70, float("nan"), {1: (2, {3})}, object, b"\xff"])
def test_anything_can_be_logged(value: object) -> None:
    """A line comes out whatever the field holds."""
    desk = Desk()
    structlog.get_logger("npstream").info("odd", value=value)

    assert desk.lines()[0]["event"] == "odd"


def test_a_log_that_cannot_be_written_does_not_stop_the_worker() -> None:
    """A closed pipe or a full disk costs lines only."""
    stream = open("/dev/full", "w")  # noqa: SIM115  # closing it would fail as well
    configure("info", "json", stream, Clock())
    structlog.get_logger("npstream").info("nobody hears")
    configure("info", "console", stream, Clock())
    structlog.get_logger("npstream").info("nobody hears")


def test_a_terminal_gets_text() -> None:
    """`console` is for people: no JSON."""
    desk = Desk(format="console")
    structlog.get_logger("npstream.worker").info("assigned", partition=3)

    assert "assigned" in desk.text()
    assert "partition=3" in desk.text()
    assert not desk.text().startswith("{")
