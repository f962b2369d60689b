"""`make soak`: does a worker grow? Memory and open files of a long run with rebalances.

One worker stays, another joins and leaves, again and again, while events flow
on a broker of the run's own. Prints a table and the slope of a straight line
through the second half; fails when that line would add more than is allowed.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.broker import JarKafka, local_jars
from tests.fetching import exit_code
from tests.monitor.builders import events
from tests.stage.command import WorkerCommand
from tests.stage.site import Site

SAMPLE_S = 10.0
GUEST_S = 30.0
"""How long the second worker stays, and stays away."""
PER_TURN = 200
TURN_S = 0.5
MEMORY_MAX_MB_PER_HOUR = 60.0
"""A real leak of an event (200 bytes at this rate) gives ten times as much; an allocator's noise gives less."""
FDS_MAX_PER_HOUR = 30.0
"""A leaked client has at least three files, and there is a rebalance every half minute."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at the worker that stays."""

    minute: float
    rss_mb: float
    fds: int
    threads: int
    events: int
    rebalances: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, judge: 0 when memory and files are flat."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.operations.soak")
    parser.add_argument("--minutes", type=float, default=10.0)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="npstream-soak-") as scratch:
        broker = JarKafka(local_jars(), Path(scratch) / "kafka")
        try:
            broker.start()
            samples = soak(Site(broker.bootstrap, Path(scratch) / "site", partitions=2), options.minutes, report)
        finally:
            broker.close()
    return judge(samples)


def soak(site: Site, minutes: float, report: Callable[[Sample], None]) -> list[Sample]:
    """Feed two partitions for so long, with a guest that comes and goes, and return what was seen of the host."""
    host, guest = site.command("host"), site.command("guest", kafka=dynamic(site, "guest"))
    try:
        host.start().wait_started()
        return _watch(site, host, guest, minutes, report)
    finally:
        site.close()


def dynamic(site: Site, worker_name: str) -> dict[str, object]:
    """A worker that leaves the group when it stops, so that its partitions move at once."""
    return {**site.settings(worker_name)["kafka"], "static_membership": False}


def _watch(
    site: Site, host: WorkerCommand, guest: WorkerCommand, minutes: float, report: Callable[[Sample], None]
) -> list[Sample]:
    began = time.monotonic()
    sampled, changed, turn = began - SAMPLE_S, began, 0
    samples: list[Sample] = []
    while (now := time.monotonic()) < began + minutes * 60:
        assert host.running, host.said()
        for partition in range(site.partitions):
            site.feed(events(PER_TURN, seed=turn), partition)
        turn += 1
        if now - changed >= GUEST_S:
            changed = now
            _change(guest)
        if now - sampled >= SAMPLE_S:
            sampled = now
            samples.append(look(host, (now - began) / 60))
            report(samples[-1])
        host.get("metrics")  # as Prometheus would
        time.sleep(TURN_S)  # the rate of the feed
    return samples


def _change(guest: WorkerCommand) -> None:
    if not guest.running:
        guest.start()
        return
    code = guest.terminate()
    assert code == 0, guest.said()


def look(worker: WorkerCommand, minute: float) -> Sample:
    """Memory and files from the kernel, the rest from the worker's own status."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{worker.pid}/status").read_text().splitlines())
    status = worker.status()
    return Sample(
        minute=minute,
        rss_mb=int(lines["VmRSS"].split()[0]) / 1024,
        fds=len(os.listdir(f"/proc/{worker.pid}/fd")),
        threads=int(lines["Threads"]),
        events=sum(partition.get("events", 0) for partition in status["partitions"]),
        rebalances=status["rebalances"],
    )


def report(sample: Sample) -> None:
    """One line of the table."""
    print(
        f"{sample.minute:6.1f} min  {sample.rss_mb:8.1f} MB  {sample.fds:4d} fds  {sample.threads:3d} threads  "
        f"{sample.events:8d} events  {sample.rebalances:3d} rebalances",
        flush=True,
    )


def slope_per_hour(samples: Sequence[Sample], value: Callable[[Sample], float]) -> float:
    """The slope of a straight line through the second half, when caches are warm."""
    half = samples[len(samples) // 2 :]
    return float(np.polyfit([sample.minute / 60 for sample in half], [value(sample) for sample in half], 1)[0])


def judge(samples: Sequence[Sample]) -> int:
    """Print the slopes; 0 when both are below what is allowed."""
    memory = slope_per_hour(samples, lambda sample: sample.rss_mb)
    files = slope_per_hour(samples, lambda sample: sample.fds)
    flat = memory <= MEMORY_MAX_MB_PER_HOUR and files <= FDS_MAX_PER_HOUR
    print(
        f"memory {memory:+.1f} MB an hour (at most {MEMORY_MAX_MB_PER_HOUR:g}), files {files:+.1f} an hour "
        f"(at most {FDS_MAX_PER_HOUR:g}) over {samples[-1].rebalances} rebalances: {'flat' if flat else 'GROWING'}"
    )
    return 0 if flat else 1


if __name__ == "__main__":
    sys.exit(exit_code(main))
