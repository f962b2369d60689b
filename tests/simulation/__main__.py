"""`make simulate`: thousands of schedules from consecutive seeds, `python -m tests.simulation --schedules N --seed S`.

Each is a group of workers on a cluster in memory, with faults at every kind of
request, and must end with the decisions of an undisturbed run. The first that
does not is cut down to what it takes, printed, and ends the run.
"""

import argparse
import multiprocessing
import sys
from collections.abc import Iterable, Sequence
from time import monotonic

from tests.fetching import exit_code
from tests.simulation.mutants import OUT_OF_REACH, PATCHES
from tests.simulation.requests import POINTS
from tests.simulation.schedule import Kind, draw
from tests.simulation.shrink import shrink
from tests.simulation.simulation import Seen, attempt, is_sound

_EVERY_S = 5.0
_AT_ONCE = 10
"""Schedules that a process is given at a time."""


def main() -> int:
    """1 when a schedule has ended in something else than the oracle's decisions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="python -m tests.simulation")
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="of the first schedule; the next take the numbers after it")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--no-shrink", action="store_true", help="print a failing schedule as it was drawn")
    parser.add_argument("--mutants", action="store_true", help="find each deliberate bug within so many schedules")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.schedules)
    if options.mutants:
        return _hunt(seeds, options.processes)
    with multiprocessing.Pool(options.processes) as pool:
        failed = _watch(pool.imap_unordered(_run, seeds, _AT_ONCE), len(seeds))
    if failed is None:
        return 0
    schedule = draw(failed)
    if not options.no_shrink:
        print(f"seed {failed} fails; looking for the shortest way to it", flush=True)
        schedule = shrink(schedule, lambda smaller: not is_sound(smaller))
    print(f"{schedule}\n{attempt(schedule)[1]}\n\n{schedule!r}")
    return 1


def _hunt(seeds: Sequence[int], processes: int) -> int:
    """Run schedules with each deliberate bug until one fails; 1 when none does."""
    alive = []
    for name, patch in PATCHES.items():
        with multiprocessing.Pool(processes, patch) as pool:
            found = (result for result in enumerate(pool.imap(_run, seeds), 1) if result[1][2] is not None)
            tried, (_, _, problem) = next(found, (len(seeds), (0, None, None)))
        if problem is None:
            alive.append(name)
        verdict = "SURVIVED" if problem is None else "found   "
        print(f"{verdict} {name} after {tried} schedules: {str(problem)[:150]}", flush=True)
    print(f"{len(PATCHES) - len(alive)} of {len(PATCHES)} mutants found; out of reach:")
    print("\n".join(f"  {name}: {reason}" for name, reason in OUT_OF_REACH.items()))
    return 1 if alive else 0


def _run(seed: int) -> tuple[int, Seen, str | None]:
    return seed, *attempt(draw(seed))


def _watch(results: Iterable[tuple[int, Seen, str | None]], total: int) -> int | None:
    """Report progress; return the first seed that failed, None when none did."""
    seen, done, began, reported = Seen(), 0, monotonic(), monotonic()
    for seed, what, problem in results:
        if problem is not None:
            print(f"seed {seed}, after {done} others: {problem}", flush=True)
            return seed
        seen.add(what)
        done += 1
        now = monotonic()
        if now - reported > _EVERY_S or done == total:
            reported = now
            print(
                f"{done} of {total} schedules in {now - began:.0f} s, {done / (now - began):.1f} a second", flush=True
            )
    print(_summary(seen))
    return None


def _summary(seen: Seen) -> str:
    """How often each thing happened, so that a run that tests nothing is noticed."""
    rows = [f"{point:12}" + "".join(f"{seen.met[kind, point]:8}" for kind in Kind) for point in POINTS]
    head = " " * 12 + "".join(f"{kind.name.lower()[:7]:>8}" for kind in Kind)
    events = ", ".join(f"{count} {name}" for name, count in seen.events.most_common())
    return "\n".join(
        [f"0 differences, {seen.equal} records equal the oracle's", events, "faults met, by request:", head, *rows]
    )


if __name__ == "__main__":
    sys.exit(exit_code(main))
