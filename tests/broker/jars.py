"""Apache Kafka as Maven Central ships it: plain jars, no Docker."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

VERSION = "4.2.1"
POM = Path(__file__).with_name("pom.xml")
JARS = Path(__file__).parents[2] / ".cache" / f"kafka-{VERSION}"

_STAMP = "pom.sha256"
_FETCH_TIMEOUT_S = 600


class JarsMissing(Exception):
    """The jars are not here and could not be fetched. The message says what to do."""


def ensure_jars() -> Path:
    """The folder of the broker's jars, fetched with Maven when the pom has changed since.

    The folder appears whole or not at all, so an interrupted fetch is simply
    repeated. Raises `JarsMissing`.
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
        raise JarsMissing("no `mvn` on the path to fetch the Kafka jars with; install Maven, then run `make jars`")
    JARS.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=JARS.parent, prefix="kafka-fetch-") as scratch:
        fresh = Path(scratch) / "jars"
        _run_maven(fresh)
        (fresh / _STAMP).write_text(_pom_digest())
        shutil.rmtree(JARS, ignore_errors=True)
        try:
            os.rename(fresh, JARS)
        except OSError:
            # Somebody else fetched at the same time: theirs is as good as ours.
            if not _current():
                raise


def _run_maven(target: Path) -> None:
    command = ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={target}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise JarsMissing(f"Maven did not finish within {_FETCH_TIMEOUT_S} s; check the network, `make jars`") from None
    if done.returncode != 0 or not target.is_dir():
        raise JarsMissing(f"Maven cannot fetch the Kafka jars; check the network, `make jars`\n{done.stdout[-2000:]}")
