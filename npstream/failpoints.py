"""Named places where a test may kill or stop this process.

`hit(name)` does nothing unless `NPSTREAM_FAILPOINTS` names it: a comma list of
`name:count:action`, action `kill` (SIGKILL to self) or `stop` (SIGSTOP to self,
the test continues it). The count-th hit of that name fires, once.
"""

import os
import signal
import threading

NAMES = (
    "after_poll",
    "begin",
    "produce",
    "segment",
    "mid_snapshot",
    "after_flush",
    "before_send_offsets",
    "after_send_offsets",
    "before_commit",
    "after_commit",
    "in_flight",
    "restore",
    "replay",
)

_ACTIONS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


def _parse(text: str) -> dict[str, list[tuple[int, signal.Signals]]]:
    plan: dict[str, list[tuple[int, signal.Signals]]] = {}
    for item in filter(None, text.split(",")):
        name, count, action = item.split(":")
        if name not in NAMES:
            raise ValueError(f"unknown failpoint {name!r}; known: {', '.join(NAMES)}")
        plan.setdefault(name, []).append((int(count), _ACTIONS[action]))
    return plan


_plan = _parse(os.environ.get("NPSTREAM_FAILPOINTS", ""))
_hits: dict[str, int] = {}


def watched(name: str) -> bool:
    """Whether a test waits for hits of `name`; for places that are passed once per event."""
    return name in _plan


def hit(name: str) -> None:
    """Fire the signal planned for this hit of `name`, if any."""
    if not _plan:
        return
    _hits[name] = _hits.get(name, 0) + 1
    for count, number in _plan.get(name, ()):
        if count == _hits[name]:
            # To this thread: any other would have to be woken first, and this one would go on meanwhile.
            signal.pthread_kill(threading.get_ident(), number)
