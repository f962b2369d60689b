"""All that decides what a partition does with an event, as one value.

It travels inside every snapshot, so that a replay uses the rules that were in
force, and a change of rules is visible as a difference of two values.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from npstream.codec.decoder import EventConfig
from npstream.codec.features import Feature, LabelRule, Transform, difference
from npstream.codec.labels import LabelTopic
from npstream.errors import SettingsError
from npstream.model import Params

OnBadEvent = Literal["none", "-1", "1"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelConfig:
    """How long an observation waits for its label, and what happens when none comes."""

    buffer_max: int = 10_000
    expire_events: int | None = None
    expire_seconds: float | None = None
    on_expiry: Literal["drop", "negative"] = "drop"
    review: float = 0.0
    """Share of the observations without an alarm that is to be reviewed; 0: none."""
    remembered_max: int = 4096
    early_max: int = 1024
    corrections: bool = False
    """Whether an observation stays after its label, so that another label corrects the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChallengerConfig:
    """What a second model, which publishes nothing, does with the same events."""

    params: Params
    events: EventConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionConfig:
    """The model's parameters and the rules around it."""

    params: Params
    events: EventConfig
    labels: LabelConfig = field(default_factory=LabelConfig)
    on_bad_event: OnBadEvent = "none"
    dead_letter_cap: float = 0.5
    decision_schema: int | None = None
    """The registered id of decisions in Avro; None for JSON."""
    reasons: int = 0
    """So many features, those that moved its score most, are named by an alarm."""
    label_topic: LabelTopic | None = None
    """The topic that labels come on; None: they come with the events."""
    challenger: ChallengerConfig | None = None

    @property
    def reads_twice(self) -> bool:
        """Whether the challenger reads other features than the champion."""
        return self.challenger is not None and self.challenger.events != self.events

    @property
    def promoted(self) -> "PartitionConfig":
        """These rules with the challenger, which there is, in the place of the champion."""
        assert self.challenger is not None
        return replace(self, params=self.challenger.params, events=self.challenger.events, challenger=None)

    def to_dict(self) -> dict[str, Any]:
        """Canonical JSON-able form: every field, nothing derived."""
        return {
            "params": self.params.to_dict(),
            "events": asdict(self.events),
            "labels": asdict(self.labels),
            "on_bad_event": self.on_bad_event,
            "dead_letter_cap": self.dead_letter_cap,
            "decision_schema": self.decision_schema,
            "reasons": self.reasons,
            "label_topic": None if self.label_topic is None else asdict(self.label_topic),
            "challenger": None if self.challenger is None else _challenger_dict(self.challenger),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "PartitionConfig":
        """Inverse of `to_dict`."""
        return cls(
            params=Params.from_dict(values["params"]),
            events=_events(values["events"]),
            labels=LabelConfig(**values["labels"]),
            on_bad_event=values["on_bad_event"],
            dead_letter_cap=values["dead_letter_cap"],
            decision_schema=values["decision_schema"],
            reasons=values["reasons"],
            label_topic=_label_topic(values["label_topic"]),
            challenger=_challenger(values["challenger"]),
        )

    @property
    def feature_names(self) -> list[str]:
        """What to call each of the model's columns: its configured name, else its place in `x`."""
        names = self.events.columns
        return [f"x[{i}]" for i in range(self.params.d)] if names is None else list(names)

    def with_params(self, params: Params) -> "PartitionConfig":
        """The same rules around other parameters."""
        return replace(self, params=params)


def _events(values: Mapping[str, Any]) -> EventConfig:
    """Inverse of `asdict`, from JSON, which knows no tuples."""
    names, mapping, label, transform = (values[name] for name in ("features", "mapping", "label", "transform"))
    return EventConfig(
        **{
            **values,
            "features": None if names is None else tuple(names),
            "mapping": None if mapping is None else tuple(Feature(**each) for each in mapping),
            "transform": None if transform is None else Transform(**transform),
            "label": _label_rule(label),
        }
    )


def _challenger_dict(config: ChallengerConfig) -> dict[str, Any]:
    return {"params": config.params.to_dict(), "events": asdict(config.events)}


def _challenger(values: Mapping[str, Any] | None) -> ChallengerConfig | None:
    if values is None:
        return None
    return ChallengerConfig(params=Params.from_dict(values["params"]), events=_events(values["events"]))


def _label_topic(values: Mapping[str, Any] | None) -> LabelTopic | None:
    return None if values is None else LabelTopic(**{**values, "label": _label_rule(values["label"])})


def _label_rule(values: Mapping[str, Any]) -> LabelRule:
    return LabelRule(values["path"], tuple(values["target"]), tuple(values["non_target"]))


def outlives(old: PartitionConfig, new: PartitionConfig) -> bool:
    """Whether the challenger of `old` is that of `new`: what it has learned fits, and it reads the same features."""
    before, after = old.challenger, new.challenger
    if before is None or after is None or old.reads_twice != new.reads_twice:
        return False
    same = before.events.contract == after.events.contract and before.events.key == after.events.key
    return same and not before.params.fixed_differences(after.params)


def check_change(old: PartitionConfig, new: PartitionConfig) -> None:
    """Refuse a change that would give the stored observations another meaning.

    What a model itself cannot change (d, D, preset, kernel) is refused by `Model.with_params`.
    """
    if old.events.contract == new.events.contract:
        return
    if old.events.mapping is not None and new.events.mapping is not None:
        found = [f"events.features.{each}" for each in difference(old.events.mapping, new.events.mapping)]
    else:
        found = [f"events.features: {_names(new)} given, the checkpoint was learned with {_names(old)}"]
    found[-1] += (
        f" (feature contract {new.events.contract or 'none'}, learned with {old.events.contract or 'none'}); restore "
        "the old features and their order, or let a model with the new ones learn beside this one "
        "(challenger.features) and take its place by `npstream promote`"
    )
    raise SettingsError(found)


def _names(config: PartitionConfig) -> str:
    mapping = config.events.mapping
    listed = config.events.features if mapping is None else [f"{each.name} ({each})" for each in mapping]
    return "no names" if listed is None else ", ".join(listed)
