"""The live part: a feeder beside the real worker, and a status line."""

import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from npstream import client
from npstream.client import Message
from npstream.port import Log
from npstream.records import Channel
from npstream.report.intervals import wilson

_CHUNK = 250


class Feeder(threading.Thread):
    """Appends messages at a steady rate until done or `stop` is set."""

    def __init__(self, log: Log, messages: Iterator[Message], rate: float, stop: threading.Event) -> None:
        super().__init__(daemon=True, name="demo feeder")
        self._log = log
        self._messages = messages
        self._rate = rate
        self._halt = stop
        self.sent: dict[int, int] = {}
        self.done = threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        """Feed; an error is kept for the main thread."""
        try:
            self._feed(self._log.partitions(Channel.EVENTS))
        except Exception as error:  # A thread has nobody to raise to; the main loop looks here.
            self.error = error
        finally:
            self.done.set()

    def _feed(self, partitions: int) -> None:
        started, sent = time.monotonic(), 0
        while (batch := list(islice(self._messages, _CHUNK))) and not self._halt.is_set():
            for partition, items in _by_partition(batch, partitions).items():
                self._log.append(
                    Channel.EVENTS, partition, [(m.key, m.value, m.headers, m.timestamp_ms) for m in items]
                )
                self.sent[partition] = self.sent.get(partition, 0) + len(items)
            sent += len(batch)
            self._halt.wait(max(0.0, started + sent / self._rate - time.monotonic()))


def _by_partition(batch: list[Message], partitions: int) -> dict[int, list[Message]]:
    found: dict[int, list[Message]] = {}
    for message in batch:
        found.setdefault(client.partition_for(message.key, partitions), []).append(message)
    return found


def status_line(status: dict[str, Any], tau: float, events_per_s: float) -> str:
    """One line: speed, rate against tau with its interval, detection, threshold."""
    parts = [part for part in status["partitions"] if "fpr" in part]
    false_alarms, negatives = _lifetime(parts, "fpr")
    detections, targets = _lifetime(parts, "tpr")
    if not negatives:
        return f"{events_per_s:7,.0f} records/s   waiting for labels"
    low, high = wilson(false_alarms, negatives)
    threshold = ", ".join(f"{part['threshold']:.2f}" for part in parts)
    found = f"{detections / targets:.1%}" if targets else "-"
    return (
        f"{events_per_s:7,.0f} records/s   FPR {false_alarms / negatives:.4f} ({low:.4f}-{high:.4f}), tau {tau:g}   "
        f"detected {found}   threshold {threshold}"
    )


def _lifetime(parts: list[dict[str, Any]], rate: str) -> tuple[int, int]:
    counted = [part[rate]["lifetime"] for part in parts]
    return sum(rate["hits"] for rate in counted), sum(rate["of"] for rate in counted)


def caught_up(status: dict[str, Any], feeder: Feeder) -> bool:
    """Whether everything that was fed has been decided and committed."""
    if not feeder.done.is_set():
        return False
    reached = {part["partition"]: part.get("next_offset", 0) for part in status["partitions"]}
    return all(reached.get(partition, 0) >= count for partition, count in feeder.sent.items())


class WorkerThread(threading.Thread):
    """Runs a worker beside the display; an error is kept for the main thread."""

    def __init__(self, run: Callable[[], None]) -> None:
        super().__init__(daemon=True, name="demo worker")
        self._work = run
        self.error: Exception | None = None

    def run(self) -> None:
        """Work until stopped."""
        try:
            self._work()
        except Exception as error:  # A thread has nobody to raise to; the main thread raises it again.
            self.error = error
