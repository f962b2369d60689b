"""The plain sections of a settings file: topics, events, decisions, labels, checkpoint, worker, http, log."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self, cast

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from npstream.codec.decoder import EventConfig
from npstream.codec.event import SCHEMA_FORMATS, EventFormat
from npstream.codec.features import DEFAULT_LABEL, Feature
from npstream.codec.labels import DEFAULT_ID, LabelTopic
from npstream.codec.transform import transform_of
from npstream.model import Params
from npstream.partition import LabelConfig, PartitionConfig
from npstream.partition.archive import ArchiveRules
from npstream.port import Start
from npstream.records import Topics
from npstream.settings.features_section import FeaturesField, LabelField, PathField
from npstream.settings.registry_section import RegistrySection
from npstream.settings.section import Section, refuse
from npstream.worker import Cadence, Limits

# Defaults live in the rooms: a section takes those of the value that it is made into.
_RULES = PartitionConfig(params=Params(d=1), events=EventConfig(d=1))
_CADENCE = Cadence()
_ARCHIVES = _CADENCE.archives
_LIMITS = Limits()

TopicName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]


class TopicsSection(Section):
    """The four topics. All have the partition count of the events topic."""

    events: TopicName
    """Where events are read from."""
    decisions: TopicName | None = None
    """Where decisions are published; by default the name of the events topic and `-decisions`."""
    dead_letters: TopicName | None = None
    """Where unusable events are put; by default the name of the events topic and `-dead-letters`."""
    checkpoints: TopicName | None = None
    """Where state is kept (compacted); by default the name of the events topic and `-checkpoints`."""

    @model_validator(mode="after")
    def _are_four(self) -> Self:
        names = self.names().names()
        twice = sorted({name for name in names if names.count(name) > 1})
        refuse([f"{name!r} is used for more than one topic; each of the four needs its own" for name in twice])
        return self

    def names(self) -> Topics:
        """The four names, defaults filled in."""
        return Topics(
            self.events,
            self.decisions or f"{self.events}-decisions",
            self.dead_letters or f"{self.events}-dead-letters",
            self.checkpoints or f"{self.events}-checkpoints",
        )


def _as_word(value: Any) -> Any:
    """YAML reads -1 and 1 as numbers."""
    return str(value) if type(value) is int else value


def _is_transform(name: str) -> str:
    transform_of(name)
    return name


class EventsSection(Section):
    """How events are written, and what happens to bad ones."""

    format: EventFormat = cast(EventFormat, _RULES.events.format)
    """`json`: an object per event; `f32`: little-endian float32 values with headers, cheaper to read; `avro`,
    `protobuf`, `json_schema`: with the id of a schema in front, as serializers of a schema registry write them."""
    registry: RegistrySection | None = None
    """The schema registry, for `avro` and `protobuf`."""
    id: PathField = _RULES.events.id
    """Path of the event's id: dots go down, [0] into an array."""
    label: LabelField = _RULES.events.label
    """Path of the label, or {path, target: [values], non_target: [values]}; absent or null: not known yet."""
    features: FeaturesField = None
    """What the model sees, in this order: names of the numbers in `x`, or a mapping of names to kinds and paths, such
    as `amount: {number: amount, scale: log}` (EVENTS.md). They set `model.d`. Without: the numbers of the array `x`."""
    transform: Annotated[str, AfterValidator(_is_transform)] | None = None
    """A function of your own, `package.module:function`: it gets the parsed event, a dict, and returns the dict that
    the paths read. It must be pure. Every event then takes some microseconds more."""
    max_bytes: int = Field(default=_RULES.events.max_bytes, ge=1, le=10_000_000)
    """Longest event taken; a longer one becomes a dead letter unread."""
    on_bad_event: Annotated[Literal["none", "-1", "1"], BeforeValidator(_as_word)] = Field(
        default=_RULES.on_bad_event,
        json_schema_extra={"type": ["string", "integer"], "enum": ["none", -1, 1, "-1", "1"]},
    )
    """Decision to publish for a bad event whose id can be read, so that nobody waits forever."""
    dead_letter_cap: float = Field(default=_RULES.dead_letter_cap, gt=0, le=1)
    """Share of bad events in a block of 1000 above which the partition is paused instead of drained."""

    @property
    def mapping(self) -> tuple[Feature, ...] | None:
        """The features that are found by path, None in the short form."""
        return cast(tuple[Feature, ...], self.features) if isinstance((self.features or ("",))[0], Feature) else None

    @model_validator(mode="after")
    def _has_its_schemas(self) -> Self:
        if self.format in SCHEMA_FORMATS and self.registry is None:
            refuse([f"registry: missing; format {self.format} needs the url of a schema registry"])
        return self

    @model_validator(mode="after")
    def _fits_the_format(self) -> Self:
        if self.format == "f32":
            refuse(
                ["transform: takes parsed events; format f32 has none"] * (self.transform is not None)
                + [
                    f"features.{each.name}: a {each.kind} cannot be a float32; format f32 has numbers and flags"
                    for each in self.mapping or ()
                    if each.kind in ("category", "time")
                ]
            )
        return self

    def config(self, params: Params) -> EventConfig:
        """What the decoder needs, for a model with these parameters."""
        mapping = self.mapping
        return EventConfig(
            d=params.d,
            format=self.format,
            features=None if mapping is not None else cast(tuple[str, ...] | None, self.features),
            mapping=mapping,
            id=self.id,
            label=self.label,
            key=params.seed,
            transform=None if self.transform is None else transform_of(self.transform),
            external=params.preset == "external",
            max_bytes=self.max_bytes,
        )


class DecisionsSection(Section):
    """How decisions are written."""

    format: Literal["json", "avro"] = "json"
    """`json`: an object per decision; `avro`: by a schema that `npstream init` registers in `events.registry`."""
    reasons: int = Field(default=_RULES.reasons, ge=0, le=100)
    """An alarm names so many features, those that moved its score most, and how far each moved it; 0: none."""


class LabelsSection(Section):
    """Where labels come from, and how long an observation waits for its own, in bounded memory."""

    topic: TopicName | None = None
    """Topic that labels come on, as JSON, with the keys and the partition count of the events topic (LABELS.md). It is
    read, never written. Without it labels come with the events."""
    id: PathField = DEFAULT_ID
    """Path of the id, in records of `labels.topic`, of the event that a label is for."""
    label: LabelField = DEFAULT_LABEL
    """Path and values of the label in records of `labels.topic`, as for `events.label`."""
    buffer_max: int = Field(default=_RULES.labels.buffer_max, ge=1, le=10_000_000)
    """Observations that may wait in one partition; the oldest makes room for a new one. Each is written once."""
    expire_events: int | None = Field(default=None, ge=1)
    """Stop waiting after this many later events of the partition."""
    expire_seconds: float | None = Field(default=None, gt=0)
    """Stop waiting after this much event time of the partition (timestamps of events, never the wall clock)."""
    on_expiry: Literal["drop", "negative"] = _RULES.labels.on_expiry
    """Without a label: forget the observation, or learn it as a non-target because only targets are reported."""
    review: float = Field(default=_RULES.labels.review, ge=0, lt=1)
    """Share of the observations without an alarm that asks for a review: `"review": true` in its decision. Their labels
    count 1/share, so that rates are right though only alarms and this sample are looked at (LABELS.md). 0: none."""
    remembered_max: int = Field(default=_RULES.labels.remembered_max, ge=1, le=10_000_000)
    """Ids remembered after their observation has left, to call a further label late or duplicate. 17 bytes each."""
    early_max: int = Field(default=_RULES.labels.early_max, ge=1, le=10_000_000)
    """Labels kept that came before their observation; the oldest is given up for a new one. 17 bytes each."""
    corrections: bool = _RULES.labels.corrections
    """`on`: an observation stays after its label, until it expires or room is needed, and another label for it corrects
    the first. `off`: it leaves with its first label, and takes no memory any more (LABELS.md)."""

    def config(self) -> LabelConfig:
        """How long the processor lets an observation wait."""
        return LabelConfig(**{name: value for name, value in self if name not in ("topic", "id", "label")})

    def label_topic(self) -> LabelTopic | None:
        """How the processor reads labels that have a topic of their own."""
        return None if self.topic is None else LabelTopic(self.topic, self.id, self.label)

    @model_validator(mode="after")
    def _reads_a_topic(self) -> Self:
        if self.topic is None:
            given = [("id", self.id != DEFAULT_ID), ("label", self.label != DEFAULT_LABEL)]
            refuse([f"{name}: is for records of labels.topic, which is not given" for name, other in given if other])
        return self


class CheckpointSection(Section):
    """How often state is saved. More often: shorter replay after a crash, more traffic. Never changes a decision."""

    every_events: int = Field(default=_CADENCE.every_events, ge=1)
    """Save a partition after this many events."""
    every_seconds: float = Field(default=_CADENCE.every_seconds, gt=0)
    """Save a partition that moved after this many seconds."""
    keep: int = Field(default=_CADENCE.keep, ge=2, le=100)
    """Snapshots kept per partition, for rollback and audit."""
    archive_seconds: float | None = Field(default=_ARCHIVES.every_ms and _ARCHIVES.every_ms / 1000, gt=0)
    """Archive a snapshot each time events are this many seconds later, by their own time; null: not by time."""
    archive_events: int | None = Field(default=_ARCHIVES.every_events, ge=1)
    """Archive a snapshot after this many events; null: not by their number."""
    archive_keep: int = Field(default=_ARCHIVES.keep, ge=0, le=1000)
    """Archived snapshots kept per partition: audit, explain and rollback reach back as far; 0: none."""

    def cadence(self) -> Cadence:
        """What the worker needs."""
        every_ms = None if self.archive_seconds is None else max(1, round(self.archive_seconds * 1000))
        archives = ArchiveRules(every_ms, self.archive_events, self.archive_keep)
        return Cadence(self.every_events, self.every_seconds, self.keep, archives)


class WorkerSection(Section):
    """Bounds of the loop."""

    batch_max: int = Field(default=_LIMITS.batch_max, ge=1, le=100_000)
    """Most events in one transaction. Larger: more throughput; smaller: decisions appear sooner under load."""
    poll_ms: int = Field(default=round(_LIMITS.poll_s * 1000), ge=1, le=5000)
    """Longest wait for a batch to fill. Smaller: decisions appear sooner; larger: fewer transactions."""
    drain_seconds: float = Field(default=_LIMITS.drain_s, gt=0)
    """Longest time to finish and save after SIGTERM; keep it below the grace period of whoever sends it."""
    recover_seconds: float = Field(default=_LIMITS.recover_s, gt=0)
    """Exit when an outage of the brokers lasts longer than this."""

    def limits(self) -> Limits:
        """What the worker needs."""
        return Limits(self.batch_max, self.poll_ms / 1000, self.drain_seconds, self.recover_seconds)


class HttpSection(Section):
    """The page, metrics and probes of a running worker."""

    host: str = Field(default="127.0.0.1", min_length=1)
    """Address to listen on; `0.0.0.0` in a container that is scraped from outside."""
    port: int = Field(default=8080, ge=0, le=65_535)
    """Port to listen on; 0 takes a free one and logs it."""


class LogSection(Section):
    """The worker's log, on standard output."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe event that is written."""
    format: Literal["auto", "json", "console"] = "auto"
    """`auto`: coloured lines on a terminal, JSON elsewhere."""


def start_of(text: str) -> Start:
    """`earliest`, `latest`, or the milliseconds of an ISO timestamp that names its zone. Raises ValueError."""
    match text:
        case "earliest" | "latest":
            return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("must be earliest, latest or a timestamp such as 2026-05-01T00:00:00Z") from None
    if moment.tzinfo is None:
        raise ValueError(f"must name its time zone, for instance {moment.isoformat()}Z for UTC")
    return int(moment.timestamp() * 1000)


def _is_start(text: str) -> str:
    start_of(text)
    return text


StartText = Annotated[str, AfterValidator(_is_start)]
