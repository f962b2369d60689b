"""What all tests of the worker have in common."""

import pytest

from npstream.partition import segments


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few entries to a segment: short streams then write, name and remove many."""
    monkeypatch.setattr(segments, "ENTRIES_MAX", 5)
