"""What is checked of a Kafka cluster: topics, retention, timeouts, group and stuck transactions."""

from collections.abc import Callable, Mapping
from itertools import pairwise

from npstream.codec.dead_letters import VALUE_MAX_BYTES
from npstream.codec.position import METADATA_MAX
from npstream.doctor.findings import Finding, Level
from npstream.errors import NpstreamError, StateCorrupt, plural
from npstream.kafka.admin import Admin, GroupState
from npstream.kafka.config import KafkaConfig
from npstream.kafka.log import KafkaLog
from npstream.kafka.topics import Alter, Create, Grow, TopicState, Wishes
from npstream.monitor.stuck import StuckWatch, threshold_s
from npstream.port import Place
from npstream.records import Channel, Topics

_REPLICAS = 3
_WEEK_MIN = 7 * 24 * 60
_LATE = 0.8
"""An undecided event older than this share of its topic's retention is in danger."""
_STUCK_LOOK_S = 1.0
_STUCK_MARGIN_S = 3.0
_UNPACKED_MAX_BYTES = 100_000_000
"""The client's default for what it receives and unpacks at once."""
_END_IT = "find and end the transaction with the two commands above, ADDRESS being one of kafka.bootstrap"


def check_topics(admin: Admin, topics: Topics) -> list[Finding]:
    """Topics that are missing, too small, or set so that npstream cannot work with them."""
    found = []
    for action in admin.plan(Wishes()):
        if isinstance(action, Create):
            problem = f"does not exist (it needs {plural(action.partitions, 'partition')})"
        elif isinstance(action, Grow):
            problem = f"has {action.old} partitions, {topics.events} has {action.new}"
        else:
            assert isinstance(action, Alter)
            problem = f"has {action.name}={action.old}, needed is {action.new}"
        found.append(Finding("error", action.topic, problem, "run `npstream init`, which does it"))
    return found


def check_cleanup(topics: Topics, states: Mapping[str, TopicState]) -> list[Finding]:
    """Compaction keeps one record a key: right for checkpoints, the loss of events and decisions elsewhere."""
    return [
        Finding(
            "error",
            name,
            f"has cleanup.policy={policy}: all but the newest record of each key would vanish",
            f"set cleanup.policy of {name} to delete",
        )
        for name in (topics.events, topics.decisions, topics.dead_letters)
        if name in states and "compact" in (policy := states[name].config.get("cleanup.policy", "delete"))
    ]


def check_replicas(brokers: int, states: Mapping[str, TopicState], broker: Mapping[str, str]) -> list[Finding]:
    """One lost disk must not lose decisions, where the cluster is large enough to help it."""
    if brokers < _REPLICAS:
        return []
    found = []
    for name, state in states.items():
        least = int(state.config.get("min.insync.replicas", "1"))
        if state.replication < _REPLICAS or least < 2:
            problem = f"has {state.replication} replicas and min.insync.replicas={least} on {brokers} brokers"
            fix = f"give it {_REPLICAS} replicas (kafka-reassign-partitions.sh) and min.insync.replicas=2"
            found.append(Finding("warning", name, problem, fix))
    for setting in ("offsets.topic.replication.factor", "transaction.state.log.replication.factor"):
        if int(broker.get(setting, _REPLICAS)) < _REPLICAS:
            problem = f"has {setting}={broker[setting]} on {brokers} brokers: positions hang on one disk"
            found.append(Finding("warning", "brokers", problem, f"raise {setting} and reassign that topic"))
    return found


def check_retention(
    topics: Topics, states: Mapping[str, TopicState], now_ms: int, undecided_ms: int | None, newest_ms: int | None
) -> list[Finding]:
    """Topics delete by event time: what is older than their retention goes at the next pass.

    `undecided_ms` is the time of the oldest event that is not decided yet, None
    when all are; `newest_ms` that of the newest event. Decisions carry these times.
    """
    found = []
    kept_ms = _retention_ms(states.get(topics.events))
    if kept_ms is not None and undecided_ms is not None and now_ms - undecided_ms > _LATE * kept_ms:
        problem = (
            f"keeps events {_hours(kept_ms)}, the oldest undecided one is {_hours(now_ms - undecided_ms)} old: it may "
            "be deleted before it is decided"
        )
        fix = f"raise retention.ms of {topics.events}, or catch up with more workers"
        found.append(Finding("error", topics.events, problem, fix))
    about_ms = newest_ms if undecided_ms is None else undecided_ms
    for name in (topics.decisions, topics.dead_letters):
        kept_ms = _retention_ms(states.get(name))
        if kept_ms is not None and about_ms is not None and now_ms - about_ms > kept_ms:
            problem = (
                f"keeps records {_hours(kept_ms)} by event time, events now are {_hours(now_ms - about_ms)} old: what "
                "is published is deleted at the next pass"
            )
            found.append(Finding("error", name, problem, f"set retention.ms of {name} to -1, or above that age"))
    return found


def _retention_ms(state: TopicState | None) -> int | None:
    """How long a topic keeps records, None forever or not known."""
    if state is None or "delete" not in state.config.get("cleanup.policy", "delete"):
        return None
    kept_ms = int(state.config.get("retention.ms", "-1"))
    return None if kept_ms < 0 else kept_ms


def _hours(milliseconds: int) -> str:
    return f"{milliseconds / 3_600_000:.1f} h"


def check_timeouts(config: KafkaConfig, poll_ms: int, broker: Mapping[str, str]) -> list[Finding]:
    """Each time limit shorter than the next, and all within what the brokers allow."""
    chain = [
        ("worker.poll_ms", poll_ms),
        ("kafka.transaction_timeout_ms", config.transaction_timeout_ms),
        ("kafka.session_timeout_ms", config.session_timeout_ms),
        ("kafka.max_poll_interval_ms", config.max_poll_interval_ms),
    ]
    found = [
        Finding(
            "warning",
            "timeouts",
            f"{name} {value} is not shorter than {next_name} {next_value}",
            f"best when each is shorter than the next: {' < '.join(part for part, _ in chain)}",
        )
        for (name, value), (next_name, next_value) in pairwise(chain)
        if value >= next_value
    ]
    return found + _broker_limits(config, broker)


def _broker_limits(config: KafkaConfig, broker: Mapping[str, str]) -> list[Finding]:
    found = []
    bounds = (
        ("kafka.transaction_timeout_ms", config.transaction_timeout_ms, "transaction.max.timeout.ms"),
        ("kafka.session_timeout_ms", config.session_timeout_ms, "group.max.session.timeout.ms"),
    )
    for name, value, limit in bounds:
        if limit in broker and value > int(broker[limit]):
            problem = f"{name} {value} is more than the brokers allow ({limit}={broker[limit]})"
            found.append(Finding("error", "timeouts", problem, f"lower {name}, or raise {limit} of the brokers"))
    least = "group.min.session.timeout.ms"
    if least in broker and config.session_timeout_ms < int(broker[least]):
        problem = f"kafka.session_timeout_ms {config.session_timeout_ms} is less than {least}={broker[least]}"
        found.append(Finding("error", "timeouts", problem, f"raise kafka.session_timeout_ms, or lower {least}"))
    kept_min = int(broker.get("offsets.retention.minutes", _WEEK_MIN))
    if kept_min < _WEEK_MIN:
        problem = f"offsets.retention.minutes={kept_min}: a group that is idle for longer loses its offsets"
        fix = "raise it to a week or more; `npstream recover` repairs a loss"
        found.append(Finding("warning", "brokers", problem, fix))
    return found


def check_sizes(
    config: KafkaConfig, event_max_bytes: int, states: Mapping[str, TopicState], broker: Mapping[str, str]
) -> list[Finding]:
    """Sizes that cannot pass one another: what a topic takes, what the client unpacks, what an event may have."""
    found = []
    events = config.topics.events
    largest = int(states[events].config.get("max.message.bytes", "0")) if events in states else 0
    unpacked = int(config.options.get("receive.message.max.bytes", _UNPACKED_MAX_BYTES))
    if largest > unpacked:
        problem = f"takes batches of {largest} bytes, the client no more than {unpacked} (receive.message.max.bytes)"
        fix = f"set kafka.options.receive.message.max.bytes above {largest}, or lower max.message.bytes of {events}"
        found.append(Finding("error", events, problem, fix))
    if 0 < largest < event_max_bytes:
        problem = (
            f"takes {largest} bytes at most, events.max_bytes allows {event_max_bytes}: producers are refused first"
        )
        found.append(Finding("note", events, problem))
    if event_max_bytes > VALUE_MAX_BYTES:
        problem = f"events.max_bytes {event_max_bytes}: a bad event of more than {VALUE_MAX_BYTES} bytes is cut"
        found.append(Finding("note", "events.max_bytes", problem))
    metadata = "offset.metadata.max.bytes"
    if int(broker.get(metadata, METADATA_MAX)) < METADATA_MAX:
        problem = f"{metadata}={broker[metadata]}: a position with its proof takes up to {METADATA_MAX}"
        found.append(Finding("error", "brokers", problem, f"raise {metadata} to 4096, its default"))
    return found


def check_group(group: str, state: GroupState, partitions: int) -> list[Finding]:
    """Whether every partition has a worker, when there are any."""
    if not state.members:
        return [Finding("note", f"group {group}", f"has no members ({state.state.lower()}): nobody decides now")]
    if state.state != "Stable":
        fix = "look again in a minute; if it stays so, a worker joins and leaves again and again: read its log"
        return [Finding("warning", f"group {group}", f"is {state.state.lower().replace('_', ' ')}", fix)]
    owned = {partition for member in state.members for partition in member.partitions}
    alone = sorted(set(range(partitions)) - owned)
    if alone:
        problem = f"{'partition' if len(alone) == 1 else 'partitions'} {', '.join(map(str, alone))} without an owner"
        fix = "workers take new partitions up within half a minute; if it stays so, restart them one by one"
        return [Finding("error", f"group {group}", problem, fix)]
    idle = sum(not member.partitions for member in state.members)
    if idle:
        problem = f"{idle} of {len(state.members)} workers own nothing: there are only {partitions} partitions"
        return [Finding("note", f"group {group}", problem)]
    return []


def check_stuck(
    log: KafkaLog,
    config: KafkaConfig,
    partitions: int,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
    *,
    wait: bool = True,
) -> list[Finding]:
    """Transactions that nobody ends. Waits while one is open, for as long as one may last."""
    after_s = threshold_s(config.transaction_timeout_ms)
    watch = StuckWatch(config.topics, after_s)
    places: list[Place] = [(channel, partition) for channel in Channel for partition in range(partitions)]
    began, ends = clock(), log.all_ends(places)
    stuck = watch.look(began, ends)
    held = {place: found.stable for place, found in ends.items() if found.stable < found.high}
    while held and not stuck and wait and clock() - began <= after_s + _STUCK_MARGIN_S:
        sleep(_STUCK_LOOK_S)
        ends = log.all_ends(places)
        stuck = watch.look(clock(), ends)
        held = {place: at for place, at in held.items() if ends[place].stable == at < ends[place].high}
    if stuck:
        return [Finding("error", f"{item.topic}/{item.partition}", str(item), _END_IT) for item in stuck]
    names = config.topics.names()
    return [
        Finding("note", f"{names[channel]}/{partition}", f"held back by an open transaction; {after_s:g} s are normal")
        for channel, partition in held
    ]


def try_look(found: list[Finding], what: str, look: Callable[[], list[Finding]]) -> None:
    """Add what a look finds; one that is refused becomes a finding itself, and the others go on."""
    try:
        found += look()
    except NpstreamError as error:
        level: Level = "error" if isinstance(error, StateCorrupt) else "warning"
        found.append(Finding(level, what, f"could not be looked at: {error}", "see the message"))
