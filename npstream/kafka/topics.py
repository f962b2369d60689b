"""How the topics must look, and what has to be done to get there: pure, nothing is asked or changed here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from npstream.errors import plural
from npstream.records import Channel, Topics

_FOREVER = str(2**63 - 1)
_MAX_BYTES = 1_048_588
"""Kafka's own default. All that a worker writes fits, uncompressed, however large its events are: see `codec.screen`,
`codec.dead_letters` and `codec.chunks`."""

_ROOM = {"max.message.bytes": str(_MAX_BYTES)}
_EVENT_TIME = {
    "message.timestamp.type": "CreateTime",
    # A decision has its event's timestamp, whatever it is; Kafka 4 would refuse one more than an hour ahead.
    "message.timestamp.before.max.ms": _FOREVER,
    "message.timestamp.after.max.ms": _FOREVER,
}
_COMPACTED = {
    **_ROOM,
    "cleanup.policy": "compact",
    "message.timestamp.type": "CreateTime",
}
_TIDY = {
    "min.cleanable.dirty.ratio": "0.1",
    # The active segment is never cleaned, so it must not grow old or large.
    "segment.bytes": str(32 * 1024 * 1024),
    "segment.ms": str(30 * 60 * 1000),
    "max.compaction.lag.ms": str(60 * 60 * 1000),
    # Keeps the snapshot that a restore is just reading.
    "min.compaction.lag.ms": str(10 * 60 * 1000),
    "delete.retention.ms": str(24 * 60 * 60 * 1000),
    "compression.type": "producer",
}


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as the cluster describes it."""

    name: str
    partitions: int
    replication: int
    config: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Create:
    """Make a topic."""

    topic: str
    partitions: int
    replication: int
    config: Mapping[str, str]

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in self.config.items())
        size = f"{plural(self.partitions, 'partition')}, {plural(self.replication, 'replica')}"
        return f"create topic {self.topic}: {size}, {settings}"


@dataclass(frozen=True, slots=True)
class Grow:
    """Add partitions to a topic that has fewer than the events."""

    topic: str
    old: int
    new: int

    def __str__(self) -> str:
        return f"grow topic {self.topic} from {self.old} to {self.new} partitions"


@dataclass(frozen=True, slots=True)
class Alter:
    """Change a setting that npstream cannot work with."""

    topic: str
    name: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"set {self.name} of topic {self.topic} from {self.old} to {self.new}"


Action = Create | Grow | Alter


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the operator may choose; `partitions` counts for a new events topic only, retention -1 is forever.

    Outputs carry event time, so a retention shorter than the age of the events
    deletes them at the next pass; hence forever unless configured otherwise.
    """

    partitions: int = 1
    replication: int = 1
    retention_ms: int = -1


def plan(topics: Topics, found: Mapping[str, TopicState], known: set[str], wishes: Wishes) -> list[Action]:
    """What must be done, in order. `known` are the topic settings this cluster understands; empty means all."""
    events = found.get(topics.events)
    partitions = events.partitions if events else wishes.partitions
    actions: list[Action] = []
    if events is None:
        actions.append(Create(topics.events, partitions, wishes.replication, _known(_EVENT_TIME, known)))
    for channel in (Channel.DECISIONS, Channel.DEAD_LETTERS, Channel.CHECKPOINTS):
        needed, chosen = _settings(channel, wishes)
        name = topics.names()[channel]
        state = found.get(name)
        if state is None:
            actions.append(Create(name, partitions, wishes.replication, _known({**needed, **chosen}, known)))
        else:
            actions += _repairs(state, partitions, _known(needed, known))
    if topics.labels is not None:
        labels = found.get(topics.labels)
        new = Create(topics.labels, partitions, wishes.replication, _known(_EVENT_TIME, known))
        actions += [new] if labels is None else _repairs(labels, partitions, {})
    return actions


def _settings(channel: Channel, wishes: Wishes) -> tuple[dict[str, str], dict[str, str]]:
    """(settings correctness needs, settings we choose for a new topic)."""
    durable = {"min.insync.replicas": "2"} if wishes.replication >= 3 else {}
    if channel is Channel.CHECKPOINTS:
        return _COMPACTED, {**_TIDY, **durable}
    return (
        {**_EVENT_TIME, **_ROOM},
        {"cleanup.policy": "delete", "retention.ms": str(wishes.retention_ms), **durable},
    )


def _repairs(state: TopicState, partitions: int, needed: Mapping[str, str]) -> list[Action]:
    actions: list[Action] = []
    if state.partitions < partitions:
        actions.append(Grow(state.name, state.partitions, partitions))
    for name, value in needed.items():
        old = state.config.get(name, "")
        if not _suffices(name, old, value):
            actions.append(Alter(state.name, name, old, value))
    return actions


def _suffices(name: str, old: str, needed: str) -> bool:
    if name == "max.message.bytes" and old:
        return int(old) >= int(needed)
    return old == needed


def _known(settings: Mapping[str, str], known: set[str]) -> dict[str, str]:
    """Older brokers lack some settings, and the limits that go with them."""
    return {name: value for name, value in settings.items() if not known or name in known}


def done(action: Action, found: Mapping[str, TopicState]) -> bool:
    """Whether the cluster shows what an action was to bring about."""
    state = found.get(action.topic)
    if state is None:
        return False
    match action:
        case Create(partitions=partitions) | Grow(new=partitions):
            return state.partitions >= partitions
        case Alter(name=name, new=value):
            return state.config.get(name) == value


def summary(actions: Sequence[Action]) -> list[str]:
    """One line per action, for a dry run."""
    return [str(action) for action in actions]
