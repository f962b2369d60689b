"""The worker of `alive_worker` as a process: short limits, and a loop that can be made to hang."""

import os
import signal
from typing import Any

from tests.stage.command import WorkerCommand
from tests.stage.site import Site

NEVER_S = 3600.0


class AliveWorker(WorkerCommand):
    """`tests.operations.alive_worker`: the worker with limits of its own for how long a turn may take."""

    limits = (NEVER_S, NEVER_S, NEVER_S)
    held = False

    def command(self) -> list[str]:
        """Its limits come after its settings."""
        held = ["held"] if self.held else []
        return ["tests.operations.alive_worker", str(self.config), *map(str, self.limits), *held]

    def go_on(self) -> None:
        """Let a held one out of its start."""
        os.kill(self.pid, signal.SIGUSR2)

    def hang(self) -> None:
        """Make the loop's next call of the broker never return."""
        os.kill(self.pid, signal.SIGUSR1)


def alive(site: Site, worker_name: str, max_age_s: float, stuck_s: float) -> AliveWorker:
    """A worker with these limits; it ends with the site."""
    worker = AliveWorker(site.folder, worker_name, {**site.settings(worker_name), "kafka": _quick(site, worker_name)})
    worker.limits = (NEVER_S, max_age_s, stuck_s)
    site.commands.append(worker)
    return worker


def held(site: Site, worker_name: str, start_s: float, max_age_s: float, stuck_s: float) -> AliveWorker:
    """A worker with these limits that stays in its start until it may go on."""
    worker = alive(site, worker_name, max_age_s, stuck_s)
    worker.limits = (start_s, max_age_s, stuck_s)
    worker.held = True
    return worker


def _quick(site: Site, worker_name: str) -> dict[str, Any]:
    """It leaves the group when it stops, and soon gives up on a broker that does not respond."""
    return {**site.settings(worker_name)["kafka"], "static_membership": False, "connect_timeout_ms": 3000}
