"""The simulation knows all deliberate bugs; `make mutants SIMULATION=1` shows that it finds those within its reach."""

from tests.simulation.mutants import IN_THE_ADAPTER, OUT_OF_REACH, PATCHES
from tests.system.mutants import MUTANTS


def test_every_deliberate_bug_is_looked_for_or_argued_away() -> None:
    """A new one must be placed in one of the two lists."""
    assert set(MUTANTS) == PATCHES.keys() | OUT_OF_REACH.keys()
    assert not PATCHES.keys() & OUT_OF_REACH.keys()
    assert IN_THE_ADAPTER.keys() <= PATCHES.keys()
