"""Apache Kafka as Maven Central ships it: plain jars, no Docker."""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from tests.fetching import CACHE, Missing, put, run_tool

VERSION_VARIABLE = "NPSTREAM_TEST_KAFKA_VERSION"

_DEFAULT = "4.2.1"
"""As the pom has it."""
VERSION = os.environ.get(VERSION_VARIABLE) or _DEFAULT
POM = Path(__file__).with_name("pom.xml")
JARS = CACHE / f"kafka-{VERSION}"

_STAMP = "pom.sha256"
_FORGETS_MARKERS = ("4.3.0", "4.3.1")
"""See the pom: a reader of theirs may wait forever, which no test of ours could tell from a fault of ours."""


def ensure_jars() -> Path:
    """The folder of the broker's jars, fetched with Maven when the pom has changed since.

    The folder appears whole or not at all, so an interrupted fetch is simply
    repeated. Raises `Missing`.
    """
    if VERSION in _FORGETS_MARKERS:
        raise Missing(f"Kafka {VERSION} loses the markers of transactions; set {VERSION_VARIABLE} to another version")
    if not _current():
        _fetch()
    return JARS


def _current() -> bool:
    stamp = JARS / _STAMP
    return stamp.is_file() and stamp.read_text() == _pom_digest()


def _pom_digest() -> str:
    return hashlib.sha256(POM.read_bytes()).hexdigest()


def _fetch() -> None:
    if shutil.which("mvn") is None:
        raise Missing("no `mvn` on the path to fetch the Kafka jars with; install Maven, then run `make jars`")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="kafka-fetch-") as scratch:
        fresh, pom = Path(scratch) / "jars", Path(scratch) / "pom.xml"
        pom.write_text(POM.read_text().replace(f"<version>{_DEFAULT}<", f"<version>{VERSION}<"))
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={fresh}"]
        run_tool(command, "fetch the Kafka jars with Maven", POM.parent)
        (fresh / _STAMP).write_text(_pom_digest())
        shutil.rmtree(JARS, ignore_errors=True)
        put(fresh, JARS, _current)
