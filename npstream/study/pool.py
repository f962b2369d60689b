"""Running a study's tasks on every core and keeping each result as soon as it is there."""

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from typing import Protocol

from npstream.study.results import Results, Row

Progress = Callable[[int, int], None]
"""Told (tasks done, tasks in all) after each task."""


class Task(Protocol):
    """One independent piece of a study. Picklable; `run` depends on nothing but its fields."""

    @property
    def key(self) -> str:
        """Digest of everything that determines the rows."""

    def run(self) -> list[Row]:
        """Do the work."""


def run_all(tasks: Sequence[Task], results: Results, jobs: int, progress: Progress) -> None:
    """Run what `results` does not hold yet, `jobs` processes at a time.

    An exception of a task ends the run; what was finished before stays on disk.
    """
    todo = [task for task in tasks if not results.has(task.key)]
    done = len(tasks) - len(todo)
    progress(done, len(tasks))
    for key, rows in _execute(todo, jobs):
        results.append(key, rows)
        done += 1
        progress(done, len(tasks))


def _execute(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[str, list[Row]]]:
    if jobs == 1 or len(tasks) <= 1:
        for task in tasks:
            yield task.key, task.run()
        return
    # Spawned, not forked: a forked child of a process with numba or BLAS threads may hang.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=context, initializer=_leave_interrupts_to_the_parent)
    try:
        futures: dict[Future[list[Row]], str] = {pool.submit(_run, task): task.key for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BaseException:
        # Interrupted or failed: the tasks under way may have minutes to go, and nobody will read their rows.
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    """Ctrl-C reaches every process of a terminal; only the parent should answer it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(task: Task) -> list[Row]:
    return task.run()
