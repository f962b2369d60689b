"""The dashboard's panels: what an operator may ask, and the query for it."""

from dataclasses import dataclass

OF_GROUP = 'namespace=~"$namespace",group=~"$group",topic=~"$topic"'
OF_PARTITION = f'{OF_GROUP},partition=~"$partition"'
BY_PARTITION = "{{topic}}/{{partition}}"
BY_TIER = "topic, partition, tier"
OF_TIER = f"{BY_PARTITION} {{{{tier}}}}"


@dataclass(frozen=True, slots=True)
class Panel:
    """One question: its title, what the graph means, (query, legend) pairs, unit and form."""

    title: str
    text: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    form: str = "timeseries"
    width: int = 8
    height: int = 8


def gauge(metric: str, more: str = "", by: str = "topic, partition") -> str:
    """The largest value over pods, for a partition moves between them."""
    return f"max by ({by}) ({metric}{{{OF_PARTITION}{more}}})"


def rate(metric: str, by: str, more: str = "", of: str = OF_PARTITION) -> str:
    """Events a second, added up over what `by` does not name."""
    return f"sum by ({by}) (rate({metric}{{{of}{more}}}[$__rate_interval]))"


def quantile(q: float, metric: str, of: str) -> str:
    """A quantile of a histogram over all workers."""
    return f"histogram_quantile({q}, sum by (le) (rate({metric}_bucket{{{of}}}[$__rate_interval])))"


def of_process(metric: str) -> str:
    """A metric of the client library, which knows no group: found through the scrape target it shares with one."""
    return f"{metric} * on (instance) group_left () max by (instance) (npstream_build_info{{{OF_GROUP}}})"


NON_TARGETS = f'sum(increase(npstream_outcomes_total{{{OF_PARTITION},truth="non_target"}}[1h]))'
FALSE_ALARMS = NON_TARGETS.replace('"}', '",decision="1"}')
"""Labelled non-targets of the last hour over the whole selection, and those of them that were called targets."""


ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Now",
        (
            Panel(
                "Events",
                "Input records handled a second.",
                ((f"sum(rate(npstream_events_total{{{OF_PARTITION}}}[$__rate_interval]))", ""),),
                "cps",
                "stat",
                4,
                4,
            ),
            Panel(
                "Latest",
                "How long the oldest event not handled yet has waited.",
                ((f"max(npstream_lag_seconds{{{OF_PARTITION}}} >= 0)", ""),),
                "s",
                "stat",
                4,
                4,
            ),
            Panel(
                "False-positive rate, last hour",
                "Over all chosen partitions; compare with tau.",
                ((f"{FALSE_ALARMS} / {NON_TARGETS}", ""),),
                "percentunit",
                "stat",
                4,
                4,
            ),
            Panel(
                "tau",
                "The rate to hold.",
                ((f"max(npstream_tau_ratio{{{OF_PARTITION}}})", ""),),
                "percentunit",
                "stat",
                4,
                4,
            ),
            Panel(
                "Workers ready",
                "Workers whose /readyz returns 200.",
                ((f"sum(npstream_ready{{{OF_GROUP}}})", ""),),
                "short",
                "stat",
                4,
                4,
            ),
            Panel(
                "Paused partitions",
                "Each waits for an operator; see the runbook.",
                ((f"sum(npstream_paused_partitions{{{OF_GROUP}}})", ""),),
                "short",
                "stat",
                4,
                4,
            ),
        ),
    ),
    (
        "False alarms and detections",
        (
            Panel(
                "False-positive rate against tau",
                "Of recent labelled non-targets. The dashed lines are the 95% interval.",
                (
                    (gauge("npstream_fpr_ratio", ',span="window"'), BY_PARTITION),
                    (gauge("npstream_fpr_lower_ratio", ',span="window"'), f"{BY_PARTITION} lower"),
                    (gauge("npstream_fpr_upper_ratio", ',span="window"'), f"{BY_PARTITION} upper"),
                    (f"max(npstream_tau_ratio{{{OF_PARTITION}}})", "tau"),
                ),
                "percentunit",
                width=12,
            ),
            Panel(
                "Detection rate",
                "Of recent labelled targets. The dashed lines are the 95% interval.",
                (
                    (gauge("npstream_tpr_ratio", ',span="window"'), BY_PARTITION),
                    (gauge("npstream_tpr_lower_ratio", ',span="window"'), f"{BY_PARTITION} lower"),
                    (gauge("npstream_tpr_upper_ratio", ',span="window"'), f"{BY_PARTITION} upper"),
                ),
                "percentunit",
                width=12,
            ),
            Panel("Threshold", "A score above it is an alarm.", ((gauge("npstream_threshold"), BY_PARTITION),)),
            Panel("Gamma", "Relative cost of a false alarm in learning.", ((gauge("npstream_gamma"), BY_PARTITION),)),
            Panel(
                "Threshold pinned",
                "1 when it did not move over 1,000 labelled non-targets.",
                ((gauge("npstream_threshold_pinned"), BY_PARTITION),),
            ),
            Panel(
                "Alarms raised and withheld",
                "Withheld by warm-up or by an empty budget.",
                (
                    (rate("npstream_decisions_total", "reason", ',decision="1"'), "raised, {{reason}}"),
                    (
                        rate("npstream_decisions_total", "reason", ',decision="-1",reason=~"warmup|budget"'),
                        "withheld, {{reason}}",
                    ),
                ),
                "cps",
            ),
            Panel(
                "Budget left",
                "False alarms it can still take before alarms are withheld.",
                ((gauge("npstream_budget_left_alarms"), BY_PARTITION),),
            ),
            Panel(
                "Waiting for labels",
                "Alarms without a label, and observations kept for one.",
                (
                    (gauge("npstream_outstanding_alarms"), f"{BY_PARTITION} alarms"),
                    (gauge("npstream_pending_observations"), f"{BY_PARTITION} observations"),
                ),
            ),
            Panel(
                "Rates by the review sample",
                "Of all observations, by the labels of alarms and of the sample (labels.review), with 95% intervals.",
                tuple(
                    (gauge(f"npstream_weighted_{rate}{end}_ratio"), f"{BY_PARTITION} {rate}{end}")
                    for rate in ("fpr", "tpr")
                    for end in ("", "_lower", "_upper")
                ),
                "percentunit",
                width=24,
            ),
            Panel(
                "Alarm rate against tau",
                "Of recent decisions. What tau is for where the control is 1 (model.control: alarm_rate).",
                (
                    (gauge("npstream_alarm_ratio", ',span="window"'), BY_PARTITION),
                    (gauge("npstream_alarm_rate_control"), f"{BY_PARTITION} control"),
                    (f"max(npstream_tau_ratio{{{OF_PARTITION}}})", "tau"),
                ),
                "percentunit",
                width=12,
            ),
            Panel(
                "Alarms per day",
                "Per day of event time, over the last day of it.",
                ((gauge("npstream_alarms_per_day"), BY_PARTITION),),
                width=12,
            ),
        ),
    ),
    (
        "Tiers",
        (
            Panel(
                "False-positive rate of tiers",
                "Of recent labelled non-targets, by model.tiers, beside the rate that each tier is to hold.",
                (
                    (gauge("npstream_tier_fpr_ratio", ',span="window"', BY_TIER), OF_TIER),
                    (f"max by (tier) (npstream_tier_tau_ratio{{{OF_PARTITION}}})", "tau of {{tier}}"),
                ),
                "percentunit",
                width=12,
            ),
            Panel(
                "Detection rate of tiers",
                "Of recent labelled targets. An alarm of a stricter tier is one of the wider ones too.",
                ((gauge("npstream_tier_tpr_ratio", ',span="window"', BY_TIER), OF_TIER),),
                "percentunit",
                width=12,
            ),
            Panel(
                "Alarms of tiers",
                "Alarms that reached a tier; those of stricter tiers are among them.",
                ((rate("npstream_tier_alarms_total", "tier"), "{{tier}}"),),
                "cps",
            ),
            Panel(
                "Thresholds of tiers",
                "They never cross.",
                ((gauge("npstream_tier_threshold", by=BY_TIER), OF_TIER),),
            ),
            Panel(
                "Budget left of tiers",
                "Alarms that each can still take before its own are withheld.",
                ((gauge("npstream_tier_budget_left_alarms", by=BY_TIER), OF_TIER),),
            ),
        ),
    ),
    (
        "Challenger",
        (
            Panel(
                "False-positive rate of the challenger",
                "Of recent labelled non-targets, beside the champion's, and the rate that the challenger is to hold.",
                (
                    (gauge("npstream_challenger_fpr_ratio", ',span="window"'), f"{BY_PARTITION} challenger"),
                    (gauge("npstream_fpr_ratio", ',span="window"'), f"{BY_PARTITION} champion"),
                    (f"max(npstream_challenger_tau_ratio{{{OF_PARTITION}}})", "its tau"),
                ),
                "percentunit",
            ),
            Panel(
                "Detection rate of the challenger",
                "Of recent labelled targets, beside the champion's. npstream compare tests the two on the same events.",
                (
                    (gauge("npstream_challenger_tpr_ratio", ',span="window"'), f"{BY_PARTITION} challenger"),
                    (gauge("npstream_tpr_ratio", ',span="window"'), f"{BY_PARTITION} champion"),
                ),
                "percentunit",
            ),
            Panel(
                "Alarm rate of the challenger",
                "Of recent decisions, which nobody sees, beside the champion's.",
                (
                    (gauge("npstream_challenger_alarm_ratio", ',span="window"'), f"{BY_PARTITION} challenger"),
                    (gauge("npstream_alarm_ratio", ',span="window"'), f"{BY_PARTITION} champion"),
                ),
                "percentunit",
            ),
        ),
    ),
    (
        "Progress",
        (
            Panel(
                "Events by partition",
                "One hot partition cannot be helped by more workers.",
                ((rate("npstream_events_total", "topic, partition"), BY_PARTITION),),
                "cps",
            ),
            Panel(
                "Lag in seconds", "Drives alerts and scaling.", ((gauge("npstream_lag_seconds"), BY_PARTITION),), "s"
            ),
            Panel(
                "Lag in records",
                "Committed input not handled yet, and labels not learned yet where they have a topic.",
                (
                    (gauge("npstream_lag_records"), BY_PARTITION),
                    (gauge("npstream_label_lag_records"), f"{BY_PARTITION} labels"),
                ),
            ),
            Panel(
                "Partitions by phase",
                "Restoring, replaying, live, paused.",
                ((f"sum by (phase) (npstream_partition_phase{{{OF_PARTITION}}})", "{{phase}}"),),
            ),
            Panel(
                "Partitions by worker",
                "Even when the group is at rest.",
                ((f"sum by (instance) (npstream_assigned_partitions{{{OF_GROUP}}})", "{{instance}}"),),
            ),
            Panel(
                "Records of one batch",
                "Small batches mean a quiet stream, full ones a worker that catches up.",
                (
                    (quantile(0.5, "npstream_batch_records", OF_PARTITION), "median"),
                    (quantile(0.99, "npstream_batch_records", OF_PARTITION), "99%"),
                ),
            ),
        ),
    ),
    (
        "Kafka",
        (
            Panel(
                "Time to commit",
                "One transaction: decisions, dead letters, checkpoint, offsets.",
                (
                    (quantile(0.5, "npstream_transaction_seconds", OF_GROUP), "median"),
                    (quantile(0.99, "npstream_transaction_seconds", OF_GROUP), "99%"),
                ),
                "s",
            ),
            Panel(
                "Transactions",
                "Committed, and aborted by cause.",
                (
                    (rate("npstream_transaction_seconds_count", "group", of=OF_GROUP), "committed"),
                    (rate("npstream_aborts_total", "cause", of=OF_GROUP), "aborted, {{cause}}"),
                ),
                "cps",
            ),
            Panel(
                "Session restarts and rebalances per hour",
                "A session restart drops all state and restores it; a rebalance moves partitions.",
                (
                    (
                        f"sum by (cause) (increase(npstream_session_restarts_total{{{OF_GROUP}}}[1h]))",
                        "restart, {{cause}}",
                    ),
                    (f"sum by (change) (increase(npstream_rebalances_total{{{OF_GROUP}}}[1h]))", "{{change}}"),
                ),
            ),
            Panel(
                "Stuck transactions",
                "1 while an undecided transaction blocks the partition.",
                ((gauge("npstream_stuck_transaction"), BY_PARTITION),),
            ),
            Panel(
                "Loop age",
                "Time since each worker's loop turned; what /livez looks at.",
                ((f"npstream_loop_age_seconds{{{OF_GROUP}}}", "{{instance}}"),),
                "s",
            ),
        ),
    ),
    (
        "State",
        (
            Panel(
                "Checkpoint age",
                "Time that a crash now would have to replay.",
                ((gauge("npstream_checkpoint_age_seconds"), BY_PARTITION),),
                "s",
            ),
            Panel("Checkpoint size", "Of the newest.", ((gauge("npstream_checkpoint_bytes"), BY_PARTITION),), "bytes"),
            Panel(
                "Checkpoint traffic",
                "Bytes and snapshots written a second.",
                (
                    (rate("npstream_checkpoint_written_bytes_total", "topic"), "bytes of {{topic}}"),
                    (rate("npstream_checkpoints_total", "topic"), "snapshots of {{topic}}"),
                ),
            ),
            Panel(
                "Time to restore",
                "Load one partition's state.",
                (
                    (quantile(0.5, "npstream_restore_seconds", OF_GROUP), "median"),
                    (quantile(0.99, "npstream_restore_seconds", OF_GROUP), "99%"),
                ),
                "s",
            ),
            Panel(
                "Replayed events",
                "Processed again in silence after a crash.",
                ((rate("npstream_replayed_events_total", "group", of=OF_GROUP), "{{group}}"),),
                "cps",
            ),
            Panel(
                "Replay left",
                "Offsets still to cover; must fall.",
                ((gauge("npstream_replay_left_records"), BY_PARTITION),),
            ),
        ),
    ),
    (
        "Labels and bad events",
        (
            Panel(
                "Labels by fate",
                "Late ones teach nothing.",
                ((rate("npstream_labels_total", "fate"), "{{fate}}"),),
                "cps",
            ),
            Panel(
                "Observations without a label",
                "Expired, or the id was waiting already.",
                ((rate("npstream_observations_total", "fate"), "{{fate}}"),),
                "cps",
            ),
            Panel(
                "Dead letters by reason",
                "Original bytes and reason are in the dead-letter topic.",
                ((rate("npstream_dead_letters_total", "reason"), "{{reason}}"),),
                "cps",
            ),
        ),
    ),
    (
        "Process",
        (
            Panel("Memory", "Resident.", ((of_process("process_resident_memory_bytes"), "{{instance}}"),), "bytes"),
            Panel(
                "Processor",
                "One worker uses about one core at most.",
                ((of_process("rate(process_cpu_seconds_total[$__rate_interval])"), "{{instance}}"),),
            ),
            Panel("Open files", "Flat over days.", ((of_process("process_open_fds"), "{{instance}}"),)),
        ),
    ),
)
