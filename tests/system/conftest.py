"""System tests start processes and brokers: they get more time than the others before they are given up."""

import pytest

_TIMEOUT_S = 400


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Applies to this folder only; a test may ask for less."""
    for item in items:
        if item.path.is_relative_to(__file__.rsplit("/", 1)[0]) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_TIMEOUT_S))
