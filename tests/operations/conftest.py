"""A site on the shared broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker import Kafka
from tests.stage.site import Site


@pytest.fixture
def site(kafka: Kafka, tmp_path: Path) -> Iterator[Site]:
    """One partition, and a group nobody has used; its workers end with the test."""
    made = Site(kafka.bootstrap, tmp_path / "site")
    yield made
    made.close()
