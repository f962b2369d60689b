"""`make failover`: the failover proof at length, `python -m tests.system --seed N --minutes M`.

Each round has a seed of its own: every failpoint killed, every stop point held
for three lengths (shorter than the session, between session and transaction,
longer than the transaction), and the broker killed twice. Labels come with the
events and on a topic of their own, round by round. Ends with the first
difference, or when the time is over and both have had a round.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from time import monotonic

from tests.broker import JarKafka, local_jars
from tests.fetching import exit_code
from tests.system.driver import BrokerFault
from tests.system.failover import Failover, run_failover

HOLDS_S = (4.0, 9.0, 24.0)
BROKER_FAULTS = (BrokerFault(0.3), BrokerFault(0.65))


def main() -> int:
    """At least two rounds; 1 when a round has shown a difference or did not end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="python -m tests.system")
    parser.add_argument("--seed", type=int, default=1, help="of the first round; the next take the numbers after it")
    parser.add_argument("--minutes", type=float, default=5.0, help="begin no round after this")
    parser.add_argument("--events", type=int, default=60_000, help="events of a round")
    parser.add_argument("--keep", type=Path, help="folder for the logs (default: forgotten unless a round fails)")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="npstream-failover-"))
    until = monotonic() + 60 * options.minutes
    seed = options.seed
    try:
        while seed < options.seed + 2 or monotonic() < until:
            apart = (seed - options.seed) % 2 == 1
            _round(seed, options.events, folder / f"seed-{seed}", label_topic=apart)
            seed += 1
    except (AssertionError, TimeoutError) as error:
        print(f"seed {seed} FAILED, logs in {folder}\n{error}", file=sys.stderr)
        return 1
    print(f"{seed - options.seed} rounds, all equal to the oracle")
    return 0


def _round(seed: int, events: int, folder: Path, *, label_topic: bool) -> None:
    what = Failover(
        seed, events, holds_s=HOLDS_S, broker_faults=BROKER_FAULTS, label_topic=label_topic, timeout_s=900.0
    )
    kafka = JarKafka(local_jars(), folder / "kafka")
    try:
        kafka.start()
        print(run_failover(what, kafka, folder / "run"), flush=True)
    finally:
        kafka.close()


if __name__ == "__main__":
    sys.exit(exit_code(main))
