"""The exporter: `observe.METRICS` as a Prometheus registry of its own.

The worker's thread updates once per batch; what only depends on the time is
brought up to date by the scrape.
"""

import threading
from collections.abc import Mapping
from itertools import islice

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from npstream.monitor.lag import Lag
from npstream.monitor.partition_metrics import Families, PartitionMetrics
from npstream.monitor.status import Identity, WorkerStatus
from npstream.records import Reading

CONTENT_TYPE = CONTENT_TYPE_LATEST


_BOUND_A_TURN = 4


class Metrics:
    """All metrics of one worker. `render` may be called from any thread, the rest from the worker's."""

    def __init__(self, identity: Identity) -> None:
        # The _created series double the scrape and say nothing that a counter's reset does not.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library forgot its annotation
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._families = Families(self._registry)
        self._worker = (identity.group, identity.topic)
        self._partitions: dict[int, PartitionMetrics] = {}
        self._expected: dict[int, Reading | None] = {}
        """Owned partitions that are not bound yet, with what they count from."""
        self._scrape = threading.Lock()
        self.transaction = self._histogram("npstream_transaction_seconds")
        self.restore = self._histogram("npstream_restore_seconds")
        self.replayed = self._counter("npstream_replayed_events_total")
        self.rebalances = {
            change: self._counter("npstream_rebalances_total", change) for change in ("assigned", "revoked", "lost")
        }
        self._assigned = self._gauge("npstream_assigned_partitions")
        self._paused = self._gauge("npstream_paused_partitions")
        self._loop_age = self._gauge("npstream_loop_age_seconds")
        self._ready = self._gauge("npstream_ready")
        self._gauge("npstream_build_info", identity.version, str(identity.algorithm)).set(1)

    def _counter(self, name: str, *labels: str) -> Counter:
        return self._families.child(Counter, name, (*self._worker, *labels))

    def _gauge(self, name: str, *labels: str) -> Gauge:
        return self._families.child(Gauge, name, (*self._worker, *labels))

    def _histogram(self, name: str) -> Histogram:
        return self._families.child(Histogram, name, self._worker)

    def aborted(self, cause: str) -> None:
        """Count a transaction that was not committed."""
        self._counter("npstream_aborts_total", cause).inc()

    def session_ended(self, cause: str) -> None:
        """Count it and forget every partition."""
        self._counter("npstream_session_restarts_total", cause).inc()
        self._expected.clear()
        for partition in tuple(self._partitions):
            self.remove(partition)

    def expect(self, partition: int) -> None:
        """This partition is owned: it will be exported after some turns, or when there is something to count."""
        self._expected.setdefault(partition, None)

    def bind_some(self) -> None:
        """Bind a few of those expected: a hundred series each would hold up the restore of a thousand partitions."""
        for partition in list(islice(self._expected, _BOUND_A_TURN)):
            self.partition(partition)

    def start_from(self, reading: Reading) -> None:
        """Count a partition from here on: what was replayed was counted by the worker that decided it."""
        bound = self._partitions.get(reading.partition)
        if bound is None:
            self._expected[reading.partition] = reading
        else:
            bound.start_from(reading)

    def partition(self, partition: int) -> PartitionMetrics:
        """The metrics of an owned partition, bound at the first call."""
        bound = self._partitions.get(partition)
        if bound is None:
            bound = PartitionMetrics(self._families, (*self._worker, str(partition)))
            began = self._expected.pop(partition, None)
            if began is not None:
                bound.start_from(began)
            self._partitions[partition] = bound
        return bound

    def remove(self, partition: int) -> None:
        """Forget a partition that is no longer owned."""
        self._expected.pop(partition, None)
        bound = self._partitions.pop(partition, None)
        if bound is not None:
            bound.remove()

    def render(
        self, status: WorkerStatus, lags: Mapping[int, Lag], now: float, loop_age_s: float, ready: bool
    ) -> bytes:
        """The scrape, with everything that depends on the time as of now."""
        with self._scrape:
            self._assigned.set(len(status.partitions))
            self._paused.set(status.paused())
            self._loop_age.set(loop_age_s)
            self._ready.set(ready)
            for partition, known in status.partitions.items():
                bound = self._partitions.get(partition)
                if bound is not None:
                    bound.refresh(known, lags.get(partition), now)
            return generate_latest(self._registry)
