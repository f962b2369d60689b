"""Faults at length, round by round: `make failover`, or `python -m tests.system STORY --seed N --minutes M`.

failover: every failpoint of three workers killed, every stop point held for three
  lengths (shorter than the session, between session and transaction, longer than
  the transaction), brokers killed and restarted. Labels come with the events, on
  a topic of their own, and there by way of a router which is killed as well; at
  least one round of each, in turn.
outage: every broker killed and away for a minute, while nobody restarts a worker.
rolling: each broker in turn stopped and started again, then each in turn killed.

Each round has a seed of its own. Ends with the first difference, or when the time
is over.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from time import monotonic

from tests.broker import Cluster, JarKafka, local_jars
from tests.fetching import exit_code
from tests.system import stories
from tests.system.driver import BrokerFault
from tests.system.failover import Failover, run_failover

HOLDS_S = (4.0, 9.0, 24.0)
BROKER_FAULTS = (BrokerFault(0.3), BrokerFault(0.65))
FAULTS_OF_THREE = (BrokerFault(0.2, 3.0), BrokerFault(0.4, kill=False), BrokerFault(0.55, 8.0), BrokerFault(0.75))
"""Two may not be away at the same time: it would be an outage, and take as long."""
AWAY_S = 60.0
ROUTED = "on that topic by way of a router"
LABELS = ("with the events", "on a topic of their own", ROUTED)


def main() -> int:
    """1 when a round has shown a difference or did not end."""
    about, *_ = __doc__.splitlines()
    parser = argparse.ArgumentParser(description=about, prog="python -m tests.system")
    parser.add_argument("story", nargs="?", choices=("failover", "outage", "rolling"), default="failover")
    parser.add_argument("--seed", type=int, default=1, help="of the first round; the next take the numbers after it")
    parser.add_argument("--minutes", type=float, default=5.0, help="begin no round after this")
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=1, help="3: a cluster that replicates")
    parser.add_argument("--events", type=int, default=60_000, help="events of a round of failover")
    parser.add_argument("--keep", type=Path, help="folder for the logs (default: forgotten unless a round fails)")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="npstream-failover-"))
    until = monotonic() + 60 * options.minutes
    seed = options.seed
    least = len(LABELS) if options.story == "failover" else 1
    try:
        while seed < options.seed + least or monotonic() < until:
            _round(options, seed, folder / f"seed-{seed}")
            seed += 1
    except (AssertionError, TimeoutError) as error:
        print(f"seed {seed} FAILED, logs in {folder}\n{error}", file=sys.stderr)
        return 1
    print(f"{seed - options.seed} rounds, all equal to the oracle")
    return 0


def _round(options: argparse.Namespace, seed: int, folder: Path) -> None:
    jars = local_jars()
    alone = options.brokers == 1
    cluster = Cluster([JarKafka(jars, folder / "kafka")]) if alone else Cluster.of_three(jars, folder / "kafka")
    try:
        cluster.start()
        match options.story:
            case "failover":
                labels = LABELS[(seed - options.seed) % len(LABELS)]
                print(f"seed {seed}: labels {labels}", flush=True)
                result = run_failover(_failover(seed, options.events, cluster, labels), cluster, folder / "run")
                print(result, flush=True)
            case "outage":
                _show(seed, stories.outage(cluster, folder / "run", AWAY_S))
            case "rolling":
                kills = [*[False] * cluster.size, *[True] * cluster.size]
                _show(seed, stories.broker_restarts(cluster, folder / "run", kills))
    finally:
        cluster.close()


def _show(seed: int, equal: int) -> None:
    print(f"seed {seed}: {equal} records equal the oracle, no worker ended", flush=True)


def _failover(seed: int, events: int, cluster: Cluster, labels: str) -> Failover:
    return Failover(
        seed,
        events,
        holds_s=HOLDS_S,
        broker_faults=BROKER_FAULTS if cluster.size == 1 else FAULTS_OF_THREE,
        label_topic=labels != LABELS[0],
        router=labels == ROUTED,
        timeout_s=2400.0,
    )


if __name__ == "__main__":
    sys.exit(exit_code(main))
