"""Python's garbage collector in a process that makes a dozen small objects an event and hardly ever a cycle."""

import gc

_YOUNG_MAX = 50_000
"""New objects before the collector looks: some batches. The default of 700 looks a dozen times a batch, for nothing."""


def calm_collector() -> None:
    """Tell the collector to leave alone what is loaded by now, and to look at the rest less often.

    What was loaded stays for good: walking the compiler's objects would cost a
    microsecond an event, and looking at the objects of each batch another.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_MAX, 10, 10)
