"""Apache Kafka as Maven Central ships it: plain jars, no Docker."""

import hashlib
import shutil
import tempfile
from pathlib import Path

from tests.fetching import CACHE, Missing, put, run_tool

VERSION = "4.2.1"
POM = Path(__file__).with_name("pom.xml")
JARS = CACHE / f"kafka-{VERSION}"

_STAMP = "pom.sha256"


def ensure_jars() -> Path:
    """The folder of the broker's jars, fetched with Maven when the pom has changed since.

    The folder appears whole or not at all, so an interrupted fetch is simply
    repeated. Raises `Missing`.
    """
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
        fresh = Path(scratch) / "jars"
        command = ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={fresh}"]
        run_tool(command, "fetch the Kafka jars with Maven", POM.parent)
        (fresh / _STAMP).write_text(_pom_digest())
        shutil.rmtree(JARS, ignore_errors=True)
        put(fresh, JARS, _current)
