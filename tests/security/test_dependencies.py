"""What the image installs: its licences are listed, and published weaknesses are found."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import util
from types import ModuleType
from typing import Any

import pytest

from tests.broker.properties import free_ports
from tests.deploy.tools import DEPLOY

PERMISSIVE = ("MIT", "BSD", "Apache", "PSF", "MPL-2.0", "0BSD", "Zlib", "CC0")


def loaded() -> ModuleType:
    """The script, which is no part of a package."""
    spec = util.spec_from_file_location("dependencies", DEPLOY / "dependencies.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


dependencies = loaded()
PINNED: list[tuple[str, str]] = dependencies.pinned((DEPLOY / "requirements.txt").read_text())


def test_the_licences_are_those_of_the_requirements() -> None:
    """Whoever changes a requirement writes the page again."""
    expected = dependencies.licences((DEPLOY / "requirements.txt").read_text())

    assert (DEPLOY / "LICENSES.md").read_text() == expected, "run `python deploy/dependencies.py licences`"
    assert len(PINNED) > 10


@pytest.mark.parametrize("name", sorted({name for name, _ in PINNED}))
def test_every_licence_is_permissive(name: str) -> None:
    """Nothing is installed whose licence is unknown or reaches into the user's own code."""
    reported: str = dependencies.licence(dependencies.metadata(name))

    assert any(word in reported for word in PERMISSIVE)
    assert "GPL" not in reported


@contextmanager
def index(responses: Mapping[str, Any]) -> Iterator[str]:
    """A package index on loopback that knows these paths."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = responses.get(self.path)
            self.send_response(404 if found is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_published_vulnerability_is_reported_and_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    """Name, version, where it is fixed; one that was withdrawn does not count."""
    known = {"id": "PYSEC-1", "fixed_in": ["2.0"], "link": "https://example.org/1", "withdrawn": None}
    gone = {"id": "PYSEC-2", "fixed_in": [], "link": "", "withdrawn": "2026-01-01T00:00:00Z"}
    responses = {"/weak/1.0/json": {"vulnerabilities": [known, gone]}, "/sound/1.0/json": {"vulnerabilities": []}}
    with index(responses) as address:
        code = dependencies.audit(address, [("weak", "1.0"), ("sound", "1.0")])

    said = capsys.readouterr().out
    assert code == 1
    assert "weak 1.0: PYSEC-1, fixed in 2.0: https://example.org/1\n" in said
    assert "PYSEC-2" not in said
    assert "2 of 2 pinned versions looked up, 1 weaknesses" in said


def test_sound_versions_end_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing published, nothing loud."""
    with index({"/sound/1.0/json": {"vulnerabilities": []}}) as address:
        code = dependencies.audit(address, [("sound", "1.0")])

    assert code == 0
    assert "NOT AUDITED" not in capsys.readouterr().out


@pytest.mark.parametrize("responses", [None, {}])
def test_an_index_that_does_not_respond_is_reported_loudly(
    responses: Mapping[str, Any] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """No connection or no such page: the audit did not happen, and says so instead of calling it sound."""
    if responses is None:
        code = dependencies.audit(f"http://127.0.0.1:{free_ports(1)[0]}", [("weak", "1.0")])
    else:
        with index(responses) as address:
            code = dependencies.audit(address, [("weak", "1.0")])

    said = capsys.readouterr().out
    assert code == 0
    assert said.startswith("NOT AUDITED: the index does not respond for 1 of 1: weak 1.0")
    assert "0 of 1 pinned versions looked up" in said
