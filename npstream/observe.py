"""What the worker reports: every metric with its meaning, and the interface the worker calls.

`METRICS` is the one list: the exporter is built from it, the documentation is
generated from it, and alert rules may name nothing else. The worker calls an
`Observer` a few times per batch, always on its own thread; the base class ignores
everything.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from npstream.records import Phase, Reading, Share

MetricKind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One exported series: its full name as scraped, without the suffixes a histogram adds."""

    name: str
    kind: MetricKind
    unit: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


WORKER = ("group", "topic")
"""Labels of everything a worker says about itself."""
PARTITION = (*WORKER, "partition")
"""Labels of everything a worker says about one partition it owns; gone when the partition is."""
TIER = (*PARTITION, "tier")
"""Labels of everything a worker says about one tier of a partition's model."""

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_RECORDS = (1, 10, 50, 100, 250, 500, 1000, 2000, 5000, 10_000)
_RESTORE = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)

_WORK = (
    Metric("npstream_events_total", "counter", "events", "Input records handled, dead letters included.", PARTITION),
    Metric(
        "npstream_decisions_total",
        "counter",
        "decisions",
        "Decisions published: decision is 1 (alarm) or -1, reason is score, warmup, budget or invalid.",
        (*PARTITION, "decision", "reason"),
    ),
    Metric(
        "npstream_labels_total",
        "counter",
        "labels",
        "Labels by fate: with_event, joined (came later), echoed, early, late, duplicate, orphan, corrected (it "
        "replaced another one).",
        (*PARTITION, "fate"),
    ),
    Metric(
        "npstream_outcomes_total",
        "counter",
        "events",
        "Labelled events by truth (target, non_target) and published decision (1, -1): "
        "false positives are non_target with decision 1.",
        (*PARTITION, "truth", "decision"),
    ),
    Metric(
        "npstream_observations_total",
        "counter",
        "observations",
        "Observations that will not get a label: expired, or duplicate (the id was waiting already).",
        (*PARTITION, "fate"),
    ),
    Metric(
        "npstream_dead_letters_total", "counter", "events", "Bad events set aside, by reason.", (*PARTITION, "reason")
    ),
)

_QUALITY = (
    Metric(
        "npstream_tau_ratio",
        "gauge",
        "ratio",
        "The rate to hold: false alarms among non-targets, or alarms among all observations (model.control).",
        PARTITION,
    ),
    Metric(
        "npstream_alarm_rate_control",
        "gauge",
        "boolean",
        "1 where tau is held for all alarms (model.control: alarm_rate), 0 where for false ones (fpr).",
        PARTITION,
    ),
    Metric(
        "npstream_alarm_ratio",
        "gauge",
        "ratio",
        "Share of alarms among published decisions; span is window (recent decisions) or lifetime, without warm-up.",
        (*PARTITION, "span"),
    ),
    Metric(
        "npstream_alarms_per_day",
        "gauge",
        "alarms",
        "Alarms per day of event time, over the last day of it; NaN in its first hour, and where event times are none.",
        PARTITION,
    ),
    Metric(
        "npstream_fpr_ratio",
        "gauge",
        "ratio",
        "False-positive rate of published decisions; span is window (recent labelled non-targets) or lifetime, without "
        "decisions of the warm-up.",
        (*PARTITION, "span"),
    ),
    Metric("npstream_fpr_lower_ratio", "gauge", "ratio", "Lower end of its 95% Wilson interval.", (*PARTITION, "span")),
    Metric("npstream_fpr_upper_ratio", "gauge", "ratio", "Upper end of its 95% Wilson interval.", (*PARTITION, "span")),
    Metric(
        "npstream_tpr_ratio",
        "gauge",
        "ratio",
        "Detection rate of published decisions; span is window (recent labelled targets) or lifetime, without "
        "decisions of the warm-up.",
        (*PARTITION, "span"),
    ),
    Metric("npstream_tpr_lower_ratio", "gauge", "ratio", "Lower end of its 95% Wilson interval.", (*PARTITION, "span")),
    Metric("npstream_tpr_upper_ratio", "gauge", "ratio", "Upper end of its 95% Wilson interval.", (*PARTITION, "span")),
    *(
        Metric(
            f"npstream_weighted_{rate}{end}_ratio",
            "gauge",
            "ratio",
            f"{name} of all observations by the labels of alarms and of the review sample (labels.review), over the "
            f"partition's life{where}; NaN without a sample.",
            PARTITION,
        )
        for rate, name in (("fpr", "False-positive rate"), ("tpr", "Detection rate"))
        for end, where in (("", ""), ("_lower", ": lower end of its 95% interval"), ("_upper", ": upper end"))
    ),
    Metric("npstream_threshold", "gauge", "score", "A score above it is an alarm.", PARTITION),
    Metric("npstream_gamma", "gauge", "cost", "Lagrange multiplier: relative cost of a false alarm.", PARTITION),
    Metric(
        "npstream_threshold_pinned",
        "gauge",
        "boolean",
        "1 when threshold or gamma did not move at all over 1,000 labelled non-targets though learning is on; "
        "with model.control: alarm_rate the threshold over 1,000 decisions.",
        PARTITION,
    ),
    Metric(
        "npstream_budget_left_alarms",
        "gauge",
        "alarms",
        "False alarms (model.control: alarm_rate: alarms) the budget can still take before it withholds; +Inf without "
        "a budget.",
        PARTITION,
    ),
    Metric("npstream_challenger_tau_ratio", "gauge", "ratio", "The rate that the challenger is to hold.", PARTITION),
    *(
        Metric(
            f"npstream_challenger_{rate}_ratio",
            "gauge",
            "ratio",
            f"{name} of the challenger's decisions, which are not published; span is window or lifetime, without its "
            "warm-up.",
            (*PARTITION, "span"),
        )
        for rate, name in (("alarm", "Share of alarms"), ("fpr", "False-positive rate"), ("tpr", "Detection rate"))
    ),
    Metric("npstream_tier_tau_ratio", "gauge", "ratio", "The rate that a tier is to hold (model.tiers).", TIER),
    Metric(
        "npstream_tier_alarms_total",
        "counter",
        "alarms",
        "Alarms that reached a tier; those of stricter tiers are among them.",
        TIER,
    ),
    Metric(
        "npstream_tier_fpr_ratio",
        "gauge",
        "ratio",
        "False-positive rate of a tier's alarms; span is window (recent labelled non-targets) or lifetime, without "
        "decisions of the warm-up.",
        (*TIER, "span"),
    ),
    Metric(
        "npstream_tier_tpr_ratio",
        "gauge",
        "ratio",
        "Detection rate of a tier's alarms; span is window (recent labelled targets) or lifetime, without decisions of "
        "the warm-up.",
        (*TIER, "span"),
    ),
    Metric("npstream_tier_threshold", "gauge", "score", "The threshold of a tier.", TIER),
    Metric(
        "npstream_tier_budget_left_alarms",
        "gauge",
        "alarms",
        "Alarms that the budget of a tier can take.",
        TIER,
    ),
    Metric("npstream_outstanding_alarms", "gauge", "alarms", "Alarms whose label has not come.", PARTITION),
    Metric("npstream_pending_observations", "gauge", "observations", "Observations waiting for a label.", PARTITION),
)

_PROGRESS = (
    Metric(
        "npstream_lag_records",
        "gauge",
        "records",
        "Committed input records not handled yet (stable end minus position); NaN while the end is not known.",
        PARTITION,
    ),
    Metric(
        "npstream_lag_seconds",
        "gauge",
        "seconds",
        "How long the oldest record not handled yet has waited, at most; where its event time is no time, as long as "
        "this worker has seen it wait; 0 without lag, NaN while not known.",
        PARTITION,
    ),
    Metric(
        "npstream_label_lag_records",
        "gauge",
        "records",
        "Records of the labels topic not learned yet; NaN without labels.topic, and while the end is not known.",
        PARTITION,
    ),
    Metric(
        "npstream_partition_phase",
        "gauge",
        "boolean",
        f"1 for the phase the partition is in: {', '.join(Phase)}.",
        (*PARTITION, "phase"),
    ),
    Metric("npstream_replay_left_records", "gauge", "records", "Offsets a replay still has to cover.", PARTITION),
    Metric("npstream_batch_records", "histogram", "records", "Records of one batch.", PARTITION, _RECORDS),
    Metric("npstream_checkpoints_total", "counter", "checkpoints", "Snapshots committed.", PARTITION),
    Metric(
        "npstream_checkpoint_written_bytes_total",
        "counter",
        "bytes",
        "Bytes of committed snapshots, and of segments.",
        PARTITION,
    ),
    Metric("npstream_checkpoint_bytes", "gauge", "bytes", "Size of the newest snapshot.", PARTITION),
    Metric(
        "npstream_checkpoint_age_seconds",
        "gauge",
        "seconds",
        "Time since the newest snapshot while there are events that it does not cover; 0 when it covers all.",
        PARTITION,
    ),
    Metric(
        "npstream_stuck_transaction",
        "gauge",
        "boolean",
        "1 while an undecided transaction of a producer has held back the partition's stable end for too long.",
        PARTITION,
    ),
)

_WORKER = (
    Metric("npstream_assigned_partitions", "gauge", "partitions", "Partitions this worker owns.", WORKER),
    Metric("npstream_paused_partitions", "gauge", "partitions", "Of these, those that wait for an operator.", WORKER),
    Metric(
        "npstream_transaction_seconds",
        "histogram",
        "seconds",
        "Time a worker spends on a transaction; not what passes while it processes the next batch.",
        WORKER,
        _SECONDS,
    ),
    Metric("npstream_aborts_total", "counter", "transactions", "Transactions not committed.", (*WORKER, "cause")),
    Metric(
        "npstream_session_restarts_total",
        "counter",
        "restarts",
        "Times the worker dropped its clients and all state and restored.",
        (*WORKER, "cause"),
    ),
    Metric(
        "npstream_rebalances_total",
        "counter",
        "changes",
        "Changes of ownership: assigned, revoked or lost.",
        (*WORKER, "change"),
    ),
    Metric("npstream_restore_seconds", "histogram", "seconds", "Time to load one partition.", WORKER, _RESTORE),
    Metric("npstream_replayed_events_total", "counter", "events", "Events processed again, silently.", WORKER),
    Metric(
        "npstream_loop_age_seconds", "gauge", "seconds", "Time since the loop turned; what /livez looks at.", WORKER
    ),
    Metric("npstream_ready", "gauge", "boolean", "1 while /readyz returns 200.", WORKER),
    Metric("npstream_build_info", "gauge", "boolean", "Always 1.", (*WORKER, "version", "algorithm")),
)

_PROCESS = (
    Metric("process_resident_memory_bytes", "gauge", "bytes", "Resident memory."),
    Metric("process_virtual_memory_bytes", "gauge", "bytes", "Virtual memory."),
    Metric("process_cpu_seconds_total", "counter", "seconds", "Processor time used."),
    Metric("process_start_time_seconds", "gauge", "seconds", "Start of the process since the epoch."),
    Metric("process_open_fds", "gauge", "files", "Open file descriptors."),
    Metric("process_max_fds", "gauge", "files", "Most file descriptors that may be open."),
)
"""Made by the client library; Linux only."""

METRICS: tuple[Metric, ...] = (*_WORK, *_QUALITY, *_PROGRESS, *_WORKER, *_PROCESS)
"""Everything that is exported."""


class Observer:
    """Ignores everything. Override what is of interest; methods must not raise or block."""

    wanted_models: Collection[int] = ()
    """Partitions whose model somebody asks to see; looked at once per turn, so it must cost nothing."""

    def turned(self) -> None:
        """The loop has turned, or a long wait within it has."""

    def polled(self) -> None:
        """A poll has returned, with records or without."""

    def rebalanced(self, change: Literal["assigned", "revoked", "lost"]) -> None:
        """Ownership changes; calls for each partition follow."""

    def restoring(self, partition: int) -> None:
        """A partition was assigned and its state is being loaded."""

    def assigned(self, partition: int, seconds: float, replay_from: int, replay_to: int) -> None:
        """A partition was restored in `seconds`; its replay covers these offsets."""

    def went_live(self, partition: int, replayed: int) -> None:
        """A partition has reached its committed offset and may decide."""

    def released(self, partition: int) -> None:
        """A partition was revoked or lost."""

    def paused(self, partition: int, reason: str) -> None:
        """A partition is paused until an operator acts."""

    def processed(self, partition: int, records: int, last_timestamp_ms: int) -> None:
        """A batch of live records was decided; not committed yet."""

    def committed(self, shares: list[Share], seconds: float) -> None:
        """One transaction is committed."""

    def replaying(self, reading: Reading) -> None:
        """A partition after it was restored, and after each batch it replayed."""

    def observed(self, reading: Reading) -> None:
        """A partition after a commit; called a few times a second while it commits, and once after the last commit."""

    def shown_model(self, partition: int, params: Any, state: bytes) -> None:
        """A model of `wanted_models`: its parameters and canonical bytes."""

    def aborted(self, cause: str) -> None:
        """A transaction was not committed."""

    def session_ended(self, cause: str) -> None:
        """The worker dropped its clients and all state; it will restore in another session."""
