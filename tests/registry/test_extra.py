"""The extra `registry` is optional: nobody loads it unasked, and who lacks it reads what to install."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.registry.payments import EVENTS

pytestmark = pytest.mark.slow

OF_THE_EXTRA = ("fastavro", "google.protobuf", "grpc_tools", "grpc", "npstream.registry")

_RUN = """
import sys
from npstream import client
from npstream.testing import run
events = [client.event(i, [i % 7, i % 3], target=i % 7 > 5) for i in range(50)]
settings = {"topics": {"events": "orders"}, "model": {"d": 2, "tau": 0.1}}
assert len(run(settings, events).decisions) == 50
print(*sys.modules)
"""

_CHECK_WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ABSENT:
            raise ModuleNotFoundError(name)
ABSENT = ("fastavro", "grpc_tools")
sys.meta_path.insert(0, Absent())
from npstream.cli import main
sys.argv = ["npstream", "check", "--config", sys.argv[1]]
main()
"""


def python(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a program in a fresh interpreter."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)


def test_a_worker_on_json_loads_nothing_of_it() -> None:
    """From the settings to the last decision."""
    done = python(_RUN)

    assert done.returncode == 0, done.stderr
    assert set(OF_THE_EXTRA) & set(done.stdout.split()) == set()


@pytest.mark.parametrize(("format", "lacking"), [("avro", "fastavro"), ("protobuf", "grpc_tools")])
def test_who_lacks_it_reads_what_to_install(format: str, lacking: str, tmp_path: Path) -> None:
    """`check` refuses the settings before anything is connected."""
    file = tmp_path / "settings.yaml"
    events = {**EVENTS, "format": format, "registry": {"url": "http://localhost:8081"}}
    settings = {"embedded": {"path": str(tmp_path / "log.db")}, "topics": {"events": "a"}, "model": {"tau": 0.1}}
    file.write_text(yaml.safe_dump({**settings, "events": events}))

    done = python(_CHECK_WITHOUT, str(file))

    assert done.returncode == 3, done.stderr
    assert f"events.format: {format} needs {lacking}, not installed here" in done.stderr
    assert "pip install 'npstream[registry]'" in done.stderr
