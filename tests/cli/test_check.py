"""`npstream check`: what can be known of settings without a connection."""

import json
from pathlib import Path

import pytest

from npstream.cli.exits import OK, SETTINGS, USAGE
from tests.cli.lines import npstream

_SETTINGS = """
kafka: {{bootstrap: "localhost:1", group: g, worker_name: s, options: {{{option}}}}}
topics: {{events: e}}
model: {{d: 2, tau: 0.1}}
"""


@pytest.mark.parametrize(
    ("option", "code", "said"),
    [
        ("fetch.wait.max.ms: 5", OK, "# usable"),
        ("fetch.wait.max: 5", SETTINGS, 'No such configuration property: "fetch.wait.max"'),
        ("socket.timeout.ms: soon", SETTINGS, "socket.timeout.ms"),
    ],
)
def test_the_client_itself_is_asked_about_its_options(tmp_path: Path, option: str, code: int, said: str) -> None:
    """A misspelt or impossible option of librdkafka is reported before a worker is deployed with it."""
    path = tmp_path / "npstream.yaml"
    path.write_text(_SETTINGS.format(option=option))
    done = npstream("check", "--config", str(path))

    assert done.code == code
    assert said in done.out + done.err


_LATE = """
embedded: {path: log.db}
topics: {events: card-payments}
model: {d: 5, tau: 0.002, budget: 50, charge: issue}
labels: {buffer_max: 500000, expire_seconds: 3888000, on_expiry: negative}
"""


def test_what_rate_delay_and_buffer_will_do_is_said(tmp_path: Path) -> None:
    """In figures, with what to do; without a rate only how much the buffer is good for."""
    path = tmp_path / "npstream.yaml"
    path.write_text(_LATE)

    quiet = npstream("check", "--config", str(path))
    warned = npstream("check", "--config", str(path), "--rate", "40", "--label-delay", "30d")
    as_json = npstream("check", "--config", str(path), "--rate", "40", "--json")

    assert "until they expire at up to 0.129 observations/s; see --rate" in quiet.out
    assert "warning" not in quiet.out
    assert (quiet.code, warned.code) == (OK, OK)
    warnings = [line for line in warned.out.splitlines() if line.startswith("# warning: ")]
    assert "needs room for 156 million, and has it for 500,000: 99.6% of them will be learned as" in warnings[0]
    assert "those that come after 30 days find nothing: observations wait for 3.5 hours at most" in warnings[1]
    assert "no alarm within the first 3.5 hours: the threshold waits for 100 labelled non-targets" in warnings[2]
    assert json.loads(as_json.out)["warnings"][0].startswith("labels.buffer_max: at 40 observations/s")


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (("--label-delay", "30d"), "--label-delay needs --rate"),
        (("--rate", "1", "--label-delay", "30"), "'30' is not a number with a unit: 90s, 15m, 12h or 30d"),
        (("--rate", "0"), "0.0 is not in the range x>0"),
    ],
)
def test_a_rate_that_is_none_is_refused(tmp_path: Path, arguments: tuple[str, ...], reported: str) -> None:
    """With the way to write it."""
    path = tmp_path / "npstream.yaml"
    path.write_text(_LATE)
    done = npstream("check", "--config", str(path), *arguments)

    assert done.code == USAGE
    assert reported in done.err
