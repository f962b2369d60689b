"""`npstream check`: what can be known of settings without a connection."""

from pathlib import Path

import pytest

from npstream.cli.exits import OK, SETTINGS
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
