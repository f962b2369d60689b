"""`npstream bench`: how fast is this machine?"""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from npstream.cli.options import json_option
from npstream.cli.output import echo_json

BenchRow = dict[str, Any]
Measure = Callable[..., BenchRow | list[BenchRow]]

_MEASURED = "Exit codes: 0 measured; 2 wrong options."
_ON_A_BROKER = """Makes topics and groups named npstream-bench-..., and removes them at the end.
Exit codes: 0 measured; 4 brokers out of reach, or a run failed."""


def _epilog(example: str, notes: str) -> str:
    return f"\b\nExample:\n  npstream bench {example} --json\n\n\b\n{notes}"


def _rounds(default: int, counts: str = "the best one counts") -> Callable[[Measure], Measure]:
    return click.option(
        "--rounds", type=click.IntRange(1), default=default, show_default=True, help=f"Rounds; {counts}."
    )


_kafka = click.option("--kafka", "bootstrap", required=True, metavar="ADDRESS", help="Broker to measure on, host:port.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def bench() -> None:
    """Measure this machine: kernel, decoder, a state saved and restored, reasons, labels, and a worker on a broker.

    \b
    Examples:
      npstream bench kernel
      npstream bench decode
      npstream bench snapshot
      npstream bench reasons
      npstream bench challenger
      npstream bench label
      npstream bench pipeline --kafka localhost:9092
    """


def _measuring(example: str, notes: str = _MEASURED) -> Callable[[Measure], click.Command]:
    """A command that prints the row, or the rows, that its function returns: as a table, or with `--json`."""

    def decorate(measure: Measure) -> click.Command:
        @wraps(measure)
        def command(*, as_json: bool, **options: Any) -> None:
            found = measure(**options)
            if as_json:
                echo_json(found)
            else:
                _print(found if isinstance(found, list) else [found])

        return bench.command(epilog=_epilog(example, notes))(command)

    return decorate


@_measuring("kernel")
@click.option("--events", type=click.IntRange(1000), default=20_000, show_default=True, help="Events of one pass.")
@json_option
def kernel(events: int) -> list[BenchRow]:
    """Events per second of the compiled kernel, beside the same algorithm in plain Python."""
    from npstream.bench.kernel import bench_kernel

    return bench_kernel(events=events)


@_measuring("decode")
@click.option("--batch", type=click.IntRange(100), default=2_000, show_default=True, help="Events of one batch.")
@_rounds(50)
@json_option
def decode(batch: int, rounds: int) -> list[BenchRow]:
    """Microseconds per event of the JSON decoder, with 1% odd events, and beside orjson on the same bytes."""
    from npstream.bench.decoding import bench_decode

    return bench_decode(batch=batch, rounds=rounds)


@_measuring("challenger")
@_rounds(30)
@json_option
def challenger(rounds: int) -> list[BenchRow]:
    """Microseconds per event of a processor with a challenger, beside the same without one."""
    from npstream.bench.challenger import bench_challenger

    return bench_challenger(rounds=rounds)


@_measuring("snapshot")
@_rounds(100)
@json_option
def snapshot(rounds: int) -> list[BenchRow]:
    """Bytes of a partition's state, and microseconds to save and to restore it, without broker and disk."""
    from npstream.bench.snapshots import bench_snapshots

    return bench_snapshots(rounds=rounds)


@_measuring("waiting --observations 200000", f"Needs Linux. {_MEASURED}")
@click.option(
    "--observations", type=click.IntRange(20_000), default=1_000_000, show_default=True, help="How many wait."
)
@click.option("--features", type=click.IntRange(1, 512), default=29, show_default=True, help="Numbers of each.")
@json_option
def waiting(observations: int, features: int) -> BenchRow:
    """What observations that wait for a label cost: memory, bytes of checkpoints per event, a restore."""
    from npstream.bench.waiting import bench_waiting

    return bench_waiting(observations, features)


@_measuring(
    "label --events 1000000 --ids 5000",
    """Without --kafka the topic is in an embedded log, in the folder for temporary files. On Kafka
it makes topics named npstream-bench-..., and removes them at the end.
Exit codes: 0 measured; 2 wrong options; 4 brokers out of reach, or the command failed.""",
)
@click.option("--kafka", "bootstrap", metavar="ADDRESS", help="Broker to measure on, host:port.")
@click.option("--events", type=click.IntRange(1), default=1_000_000, show_default=True, help="Events of the topic.")
@click.option("--ids", type=click.IntRange(1), default=5_000, show_default=True, help="Labels in the file.")
@json_option
def label(bootstrap: str | None, events: int, ids: int) -> list[BenchRow]:
    """Events per second that `npstream label` looks through, run twice: the second run publishes nothing."""
    from npstream.bench.labelling import LabelBench, bench_label

    return bench_label(LabelBench(events, ids, bootstrap), lambda line: click.echo(line, err=True))


@_measuring("reasons")
@click.option("--events", type=click.IntRange(1000), default=50_000, show_default=True, help="Events of one round.")
@_rounds(5, "the best of each batch")
@json_option
def reasons(events: int, rounds: int) -> BenchRow:
    """What `decisions.reasons: 3` costs when 1% of the events are alarms."""
    from npstream.bench.reasons import bench_reasons

    return bench_reasons(events=events, rounds=rounds)


@bench.command(epilog=_epilog("pipeline --kafka localhost:9092", _ON_A_BROKER))
@_kafka
@click.option("--events", type=click.IntRange(2000), default=400_000, show_default=True, help="Events of one run.")
@click.option("--runs", type=click.IntRange(1), default=3, show_default=True, help="Runs of each loop; medians count.")
@click.option("--partitions", type=click.IntRange(1), default=4, show_default=True, help="Partitions of each topic.")
@click.option("--seconds", type=click.FloatRange(1), default=8.0, show_default=True, help="Length of a latency run.")
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    type=click.Choice(["compact", "mapped", "delayed", "avro", "f32"]),
    help="Shape of the events, may be repeated; default compact and f32. mapped: JSON with spaces and its own names; "
    "delayed: labels come in events of their own; avro: as mapped, with a schema, which is read in stage consume.",
)
@json_option
def pipeline(
    bootstrap: str, events: int, runs: int, partitions: int, seconds: float, shapes: tuple[Any, ...], as_json: bool
) -> None:
    """A worker end to end beside a bare consume-produce loop, both exactly-once: throughput, stages and latency."""
    from npstream.bench.pipeline import PipelineBench, bench_pipeline

    what = PipelineBench(
        bootstrap=bootstrap,
        shapes=shapes or ("compact", "f32"),
        partitions=partitions,
        events=events,
        runs=runs,
        seconds=seconds,
    )
    rows = bench_pipeline(what, lambda line: click.echo(line, err=True) if sys.stderr.isatty() or not as_json else None)
    if as_json:
        echo_json(rows)
    else:
        stages = [{"shape": row["shape"], **row.pop("us_per_event")} for row in rows]
        _print(rows)
        click.echo("\nmicroseconds per event, worker:")
        _print(stages)


@_measuring("partitions --kafka localhost:9092 --count 300", f"Needs Linux. {_ON_A_BROKER}")
@_kafka
@click.option("--count", type=click.IntRange(1), default=300, show_default=True, help="Partitions of each topic.")
@json_option
def partitions(bootstrap: str, count: int) -> BenchRow:
    """One worker with many partitions: seconds until all are restored after a crash, memory, and the cost of a turn."""
    from npstream.bench.partitions import PartitionsBench, bench_partitions

    return bench_partitions(PartitionsBench(bootstrap, count))


@_measuring("explain --kafka localhost:9092", _ON_A_BROKER)
@_kafka
@click.option("--events", type=click.IntRange(1000), default=1_000_000, show_default=True, help="Events of the topic.")
@json_option
def explain(bootstrap: str, events: int) -> BenchRow:
    """Seconds that `npstream explain --id` takes on a large topic, and with a time range of a minute."""
    from npstream.bench.explaining import ExplainBench, bench_explain

    return bench_explain(ExplainBench(bootstrap, events), lambda line: click.echo(line, err=True))


def _print(rows: list[BenchRow]) -> None:
    from npstream.report.page import text_table

    click.echo(text_table(list(rows[0]), [[f"{value}" for value in row.values()] for row in rows]))
