"""The whole of a settings file, and the values it is made into."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from npstream.partition import PartitionConfig
from npstream.partition.config import ChallengerConfig
from npstream.port import DEFAULT_START, Start
from npstream.records import Topics
from npstream.settings.challenger_section import ChallengerField, merged
from npstream.settings.connection import EmbeddedSection, KafkaSection
from npstream.settings.features_section import read_features, shape_of
from npstream.settings.login_source import LoginSource
from npstream.settings.model_section import ModelSection
from npstream.settings.section import Problems, Section, refuse
from npstream.settings.sections import (
    CheckpointSection,
    DecisionsSection,
    EventsSection,
    HttpSection,
    LabelsSection,
    LogSection,
    StartText,
    TopicsSection,
    WorkerSection,
    start_of,
)
from npstream.settings.sizes import size_problems


def _none_when_off(value: Any) -> Any:
    """YAML reads a bare `off` as false; the environment gives it as text."""
    return None if value is False or value in ("off", "false") else value


def _allow_off(schema: dict[str, Any]) -> None:
    schema["anyOf"].append({"enum": [False, "off"]})


class Settings(Section):
    """All settings of a worker. Immutable; secrets are masked in its repr."""

    kafka: KafkaSection | None = None
    """A Kafka cluster; either this or `embedded`."""
    embedded: EmbeddedSection | None = None
    """A log in one file, without Kafka; either this or `kafka`."""
    topics: TopicsSection
    """The four topics."""
    events: EventsSection = EventsSection()
    """How events are written."""
    decisions: DecisionsSection = DecisionsSection()
    """How decisions are written."""
    model: ModelSection
    """The classifier of each partition."""
    challenger: ChallengerField = None
    """A second model that decides and learns beside the first and publishes nothing but its rates: what of `model` is
    other, such as `{D: 200}`, and `features`, where it reads others. `npstream promote` puts it in the place of the
    first."""
    labels: LabelsSection = LabelsSection()
    """Where labels come from, and how long to wait for them."""
    checkpoint: CheckpointSection = CheckpointSection()
    """How often state is saved."""
    start: StartText = DEFAULT_START
    """Where a partition without state begins: `earliest`, `latest`, or a timestamp such as 2026-05-01T00:00:00Z."""
    start_from: Path | None = None
    """Model file that partitions without state start from, instead of a random start."""
    worker: WorkerSection = WorkerSection()
    """Bounds of the loop."""
    http: Annotated[HttpSection | None, BeforeValidator(_none_when_off)] = Field(
        default=HttpSection(), json_schema_extra=_allow_off
    )
    """The page, metrics and probes of a running worker; `off` for none."""
    log: LogSection = LogSection()
    """The worker's log."""

    @model_validator(mode="before")
    @classmethod
    def _count_features(cls, raw: Any) -> Any:
        """Let `events.features` say `model.d` and `model.buckets`."""
        if not isinstance(raw, Mapping):
            return raw
        model, events = raw.get("model", {}), raw.get("events")
        listed = events.get("features") if isinstance(events, Mapping) else None
        if isinstance(raw.get("challenger"), Mapping) and isinstance(model, Mapping):
            raw = {**raw, "challenger": merged(raw["challenger"], model, listed)}
        if not isinstance(listed, list | tuple | Mapping) or not isinstance(model, Mapping):
            return raw
        try:
            features = read_features(listed) or ()
        except Problems:
            return {**raw, "model": {"d": max(1, len(listed)), **model}}  # reported where they are read again
        given = {name: value for name, value in model.items() if value is not None}
        return {**raw, "model": {**shape_of(features), **given}}

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        found = self._broker_problems() + self._registry_problems() + self._feature_problems() + self._label_problems()
        found += self._challenger_problems()
        # Sizes are only meaningful when the rest is.
        refuse(found or size_problems(self.partition_config()))
        return self

    def _broker_problems(self) -> list[str]:
        if self.kafka is None and self.embedded is None:
            return ["kafka or embedded: missing; say where the events are"]
        if self.kafka is not None and self.embedded is not None:
            return ["kafka and embedded: both are given; keep the one that holds the events"]
        if self.kafka is not None and self.worker.poll_ms >= self.kafka.transaction_timeout_ms:
            return [f"worker.poll_ms: {self.worker.poll_ms} must be below kafka.transaction_timeout_ms"]
        return []

    def _registry_problems(self) -> list[str]:
        if self.decisions.format == "avro" and self.events.registry is None:
            return ["events.registry: missing; decisions.format avro needs the url of a schema registry"]
        return []

    def _label_problems(self) -> list[str]:
        if self.labels.topic in self.topics.names().names():
            return [f"labels.topic: {self.labels.topic!r} is one of the four topics; labels need one of their own"]
        return []

    def _challenger_problems(self) -> list[str]:
        if self.challenger is None:
            return []
        d, features = self.challenger.params.d, self.challenger.features
        if features is not None and (columns := shape_of(features)["d"]) != d:
            return [f"challenger.d: {d} given, {columns} columns in its features; leave d out to let them count"]
        other = self._challenger_config()
        problems = []
        if other == ChallengerConfig(params=self.model, events=self.events.config(self.model)):
            problems.append("challenger: is what model is; say what is other, such as D: 200, or leave it out")
        if self.labels.review:
            problems.append(
                "challenger: not with labels.review, whose labels are weighted by the decisions that were published; "
                "leave one of them out"
            )
        if self.labels.corrections and self.challenger.params.tier_names != self.model.tier_names:
            problems.append("challenger.tiers: with labels.corrections they have the names of model.tiers")
        if self.decisions.reasons and self.challenger.params.preset == "external":
            problems.append("challenger.preset: external sees no features; leave decisions.reasons out")
        if self.events.format == "f32" and other is not None and other.params.d != self.model.d:
            problems.append("challenger.features: events in format f32 have the features of the model and no others")
        return problems

    def _challenger_config(self) -> ChallengerConfig | None:
        if self.challenger is None:
            return None
        promoted = self.promoted
        return ChallengerConfig(params=promoted.model, events=promoted.events.config(promoted.model))

    def _feature_problems(self) -> list[str]:
        d, features = self.model.d, self.events.features
        if features is not None and self.model.preset == "external":
            return ["events.features: preset external takes a score instead of features; leave them out"]
        if self.decisions.reasons and self.model.preset == "external":
            return ["decisions.reasons: preset external takes a score and sees no features; leave it out"]
        if features is not None and (columns := shape_of(features)["d"]) != d:
            return [f"model.d: {d} given, {columns} columns in events.features; leave d out to let them count"]
        numbers = max(len(features or ()), d if features is None else 0, 1)
        if self.events.format == "f32" and 4 * numbers > self.events.max_bytes:
            return [f"events.max_bytes: {self.events.max_bytes} is too small for {numbers} float32 values"]
        return []

    def came_from(self, references: Mapping[str, Any], env: Mapping[str, str]) -> None:
        """Remember where the login was read from: its files may change while a worker runs."""
        if self.kafka is not None:
            self.kafka.came_from(LoginSource(references["kafka"], env))

    @property
    def alone(self) -> Self:
        """The same without the challenger."""
        return self.model_copy(update={"challenger": None})

    @property
    def promoted(self) -> Self:
        """The same with the challenger, which there is, in the place of the model."""
        assert self.challenger is not None
        events = self.events.model_copy(update={"features": self.challenger.features})
        return self.model_copy(update={"model": self.challenger.params, "events": events, "challenger": None})

    @property
    def group(self) -> str:
        """The name that state is kept under."""
        section = self.kafka or self.embedded
        assert section is not None
        return section.group

    def topic_names(self) -> Topics:
        """The topics, that of the labels included where there is one."""
        return replace(self.topics.names(), labels=self.labels.topic)

    def start_at(self) -> Start:
        """Where a partition without state begins."""
        return start_of(self.start)

    def partition_config(self) -> PartitionConfig:
        """What a partition does with an event."""
        return PartitionConfig(
            params=self.model,
            events=self.events.config(self.model),
            labels=self.labels.config(),
            on_bad_event=self.events.on_bad_event,
            dead_letter_cap=self.events.dead_letter_cap,
            reasons=self.decisions.reasons,
            label_topic=self.labels.label_topic(),
            challenger=self._challenger_config(),
        )
