"""The failover proof: three workers, four partitions, every fault, and the decisions of an undisturbed run."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import monotonic

from tests.broker import Cluster
from tests.stage.site import Site
from tests.system import routing, verdict
from tests.system.driver import Breakage, BrokerFault, Patient, Run
from tests.system.faults import Fault, plan
from tests.system.feed import Feed
from tests.system.stream import interleaved, labelled_apart, late_observation, stream, system_config

WORKERS = 3
PARTITIONS = 4
BATCH_MAX = 20
"""Small, so that batches come full and are committed while the next is processed."""


@dataclass(frozen=True, slots=True)
class Failover:
    """What a run is made of; the seed decides the rest."""

    seed: int
    events: int = 60_000
    per_second: float = 900.0
    holds_s: tuple[float, ...] = (8.5,)
    broker_faults: tuple[BrokerFault, ...] = (BrokerFault(0.4),)
    label_topic: bool = False
    """Whether labels come on a topic of their own."""
    router: bool = False
    """Whether those labels are written to a foreign topic, and copied from there by a router that dies as well."""
    timeout_s: float = 400.0


@dataclass(frozen=True, slots=True)
class Result:
    """What a run has shown, once its topics have been found equal to the oracle."""

    seed: int
    equal: int
    fired: tuple[Fault, ...]
    kills_from_outside: int
    broker_ends: int
    exits: tuple[int, ...]
    replays: int
    replayed: int
    aborted: int
    router_kills: tuple[str, ...]
    seconds: float

    @property
    def killed(self) -> set[str]:
        """Where workers were killed."""
        return {fault.point for fault in self.fired if fault.action == "kill"}

    @property
    def stopped(self) -> set[str]:
        """Where workers were stopped."""
        return {fault.point for fault in self.fired if fault.action == "stop"}

    def __str__(self) -> str:
        kills, stops = (sum(fault.action == action for fault in self.fired) for action in ("kill", "stop"))
        return (
            f"seed {self.seed}: {self.equal} records equal the oracle after {kills} kills, {stops} stops, "
            f"{self.broker_ends} brokers ended, {self.kills_from_outside} other kills, {len(self.router_kills)} kills "
            f"of the router, exits {list(self.exits)}; "
            f"{self.replays} replays of {self.replayed} events verified, {self.aborted} aborted records hidden, "
            f"{self.seconds:.0f} s"
        )


def run_failover(what: Failover, cluster: Cluster, folder: Path, say: Callable[[str], None] = print) -> Result:
    """Run it to its end. Raises `Different` or `AssertionError` when anything is not as it must be."""
    began = monotonic()
    random = Random(what.seed)
    lives = plan(random, WORKERS, what.holds_s)
    say(f"seed {what.seed}: " + "; ".join(f"w{i} {[[*map(str, life)] for life in own]}" for i, own in enumerate(lives)))
    config = labelled_apart() if what.label_topic else system_config()
    site = Site(cluster.bootstrap, folder, PARTITIONS, config, replication=cluster.size)
    events = interleaved([stream(what.events // PARTITIONS, what.seed, p) for p in range(PARTITIONS)])
    label_topic, router, fed = site.topics.labels, None, Counter[tuple[int, bytes]]()
    if what.router:
        label_topic = routing.foreign_topic(site)
        router = routing.RouterProcess(site, label_topic, random)
        events, fed = routing.labels_elsewhere(events, PARTITIONS)
    feed = Feed(cluster.bootstrap, site.topics.events, events, what.per_second, label_topic)
    patients = [Patient(site.worker(f"w{i}", batch_max=BATCH_MAX), own) for i, own in enumerate(lives)]
    breakage = Breakage(cluster, what.broker_faults, say)
    try:
        Run(site, feed, patients, breakage, router).until_decided(what.timeout_s)
        if router is not None:
            router.wait_copied(site, fed)
        if what.label_topic:
            for patient in patients:
                patient.worker.restart_if_down()
            site.wait_labelled(late_observation)
        equal = verdict.compare(site)
        assert not what.label_topic or verdict.audit(site) == equal
        assert verdict.pauses(site) == []
        return _result(what, site, patients, router, equal, monotonic() - began)
    finally:
        if router is not None:
            router.kill()
        site.close()
        breakage.end()


def _result(
    what: Failover,
    site: Site,
    patients: list[Patient],
    router: routing.RouterProcess | None,
    equal: int,
    seconds: float,
) -> Result:
    replays = verdict.replays(site)
    return Result(
        seed=what.seed,
        equal=equal,
        fired=tuple(fault for patient in patients for fault in patient.fired),
        kills_from_outside=sum(patient.kills_from_outside for patient in patients),
        broker_ends=len(what.broker_faults),
        exits=tuple(code for patient in patients for code in patient.exits),
        replays=len(replays),
        replayed=sum(replays),
        aborted=verdict.aborted(site),
        router_kills=() if router is None else tuple(router.killed),
        seconds=seconds,
    )
