"""Whatever a client raises, wherever, once or forever: what would come back stops its own partition and no other.

    python -m tests.kafka.test_faults --count 300 --seed 1

tries more of it: cases drawn from every call, every error code and both
lengths, on a broker at `--kafka`.
"""

import argparse
import random
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from confluent_kafka import KafkaError

from npstream.kafka.errors import _FATAL, _REFUSED, _RETRYABLE, WEATHER
from npstream.kafka.messages import speaks_of_partition
from tests.kafka.cases import Cases, Outcome, is_fatal
from tests.kafka.faults import BOUND, CALLS, MESSAGE, Fault, Raised
from tests.stage.places import PARTITIONS, KafkaPlace, topics_of

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]

HOSTILE, OTHERS = 0, frozenset(range(1, PARTITIONS))
UNNAMED = KafkaError.INVALID_CONFIG
"""One of the codes that nobody has a name for at any of these calls."""
AT_START = frozenset({"subscribe", "memberid", "incremental_assign", "committed", "assign", "list_topics"}) | {
    "init_transactions",
    "describe_topics",
}
"""Calls that a worker makes at the beginning of a session only."""


def kind(raised: Raised) -> str:
    """What an error is, by our own tables."""
    if not isinstance(raised, int):
        return "unnamed"
    if raised in _FATAL:
        return "fatal"
    if raised in _REFUSED:
        return "refused"
    return "weather" if raised in _RETRYABLE or raised in WEATHER else "unnamed"


def codes() -> list[int]:
    """Every error code the client knows."""
    found = {getattr(KafkaError, name) for name in dir(KafkaError) if name.strip("_").isupper()}
    return sorted(code for code in found if isinstance(code, int) and code != KafkaError.NO_ERROR)


def check(fault: Fault, outcome: Outcome) -> None:
    """What must hold after a case, whatever it was."""
    said = f"{fault}: {outcome}"
    what = kind(fault.raised)
    assert fault.hits > 0, f"never met: {said}"
    if outcome.ended is not None:
        assert is_fatal(outcome), said
        assert what == "fatal" or fault.forever, f"one passing error ended the worker: {said}"
        assert what in ("fatal", "weather") or fault.partition is None, f"one partition ended the worker: {said}"
        return
    if fault.partition is not None:
        assert outcome.decided >= OTHERS, f"another partition made no progress: {said}"
        assert outcome.paused.keys() <= {HOSTILE}, f"another partition was paused: {said}"
        if fault.forever:
            assert HOSTILE in outcome.paused or what == "weather", f"it goes on forever: {said}"
            return
    # What is refused by name is taken at its word: whoever was alone in that transaction is paused at once.
    blamed = what == "refused" or (fault.call == MESSAGE and speaks_of_partition(KafkaError(int(fault.raised))))  # type: ignore[arg-type]
    assert blamed or (not outcome.paused and len(outcome.decided) == PARTITIONS), f"nothing was to be left: {said}"


def run(stage: Cases, fault: Fault) -> None:
    """One case, checked."""
    check(fault, stage.case(fault, restarts=fault.call in AT_START))


@pytest.fixture
def stage(place: KafkaPlace, tmp_path: Path) -> Iterator[Cases]:
    """Topics, and clients that can fail."""
    with Cases(place, tmp_path) as made:
        yield made


def all_calls() -> list[str]:
    """Every call that can fail, each once, and the error in the place of a record."""
    return [MESSAGE, *dict.fromkeys(call for calls in CALLS.values() for call in calls)]


def test_an_error_that_comes_once_leaves_no_trace(stage: Cases) -> None:
    """At every call: nothing is lost, doubled or left open, and no partition is paused."""
    for call in all_calls():
        run(stage, Fault(call, KafkaError.NOT_ENOUGH_REPLICAS, forever=False))
        run(stage, Fault(call, UNNAMED, forever=False))

    assert stage.compare() > 0


@pytest.mark.parametrize("call", BOUND)
def test_an_error_that_comes_back_for_one_partition_stops_that_one_only(stage: Cases, call: str) -> None:
    """Refused by name or not: it is paused with the reason, the others are decided to their ends."""
    for raised in (UNNAMED, KafkaError.MSG_SIZE_TOO_LARGE):
        run(stage, Fault(call, raised, forever=True, partition=HOSTILE))

    assert stage.compare() > 0


def test_an_error_that_never_ends_for_all_ends_the_worker(stage: Cases) -> None:
    """With a message, after the time it was given; the next worker finds everything as it was."""
    for call in ("commit_transaction", "init_transactions", "consume"):
        fault = Fault(call, KafkaError.NOT_ENOUGH_REPLICAS, forever=True)
        outcome = stage.case(fault, restarts=call in AT_START, recover_s=1.0)
        assert is_fatal(outcome), outcome
        assert "no progress for" in str(outcome.ended), outcome

    assert stage.compare() > 0


def test_what_a_new_connection_would_not_cure_ends_the_worker_at_once(stage: Cases) -> None:
    """A missing right is no weather and nobody's record."""
    outcome = stage.case(Fault("send_offsets_to_transaction", KafkaError.GROUP_AUTHORIZATION_FAILED, forever=False))

    assert is_fatal(outcome)
    assert "grant READ on group" in str(outcome.ended)
    assert stage.compare() > 0


def drawn(rng: random.Random) -> Fault:
    """Any call, any error, once or forever, for one partition where that is possible."""
    call = rng.choice(all_calls())
    bound = call in BOUND
    forever = bound and rng.random() < 0.5
    return Fault(call, rng.choice(codes()), forever, HOSTILE if bound else None)


def main() -> int:
    """Draw cases until there are enough; the seed gives them again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka", default="localhost:9092")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    name = f"faults-{uuid.uuid4().hex[:8]}."
    place = KafkaPlace(options.kafka, topics_of(name), name + "group").create()
    failed = 0
    with TemporaryDirectory() as folder, Cases(place, Path(folder)) as stage:
        for number in range(options.count):
            fault = drawn(rng)
            try:
                run(stage, fault)
                print(f"{number}: {fault.call} {KafkaError(int(fault.raised)).name()} {fault}", flush=True)  # type: ignore[arg-type]
            except AssertionError as error:
                failed += 1
                print(f"{number}: FAILED {KafkaError(int(fault.raised)).name()} {error}", flush=True)  # type: ignore[arg-type]
        print(f"{options.count - failed} of {options.count} cases hold; {stage.compare()} records equal the oracle")
    place.leave()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
