"""What settings are made into, how they are shown, how they are described."""

import ast
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path

import yaml

from npstream import settings as settings_room
from npstream.model import Params
from npstream.monitor.dashboard import HttpConfig
from npstream.partition import LabelConfig, PartitionConfig
from npstream.records import Topics
from npstream.settings import Settings, from_mapping, json_schema, masked_dump, reference
from npstream.worker import Cadence, Limits
from tests.settings.builders import mapping

SECRETIVE = mapping(
    kafka={
        "security": {
            "protocol": "SASL_SSL",
            "mechanism": "PLAIN",
            "username": "u",
            "password": "hunter2",
            "cert_file": "c",
            "key_file": "k",
            "key_password": "hunter2",
        },
        "options": {"sasl.oauthbearer.client.secret": "hunter2", "ssl.key.pem": "hunter2", "linger.ms": 3},
    }
)


def test_defaults_are_those_of_the_rooms() -> None:
    """A setting that is not given has the default of the value it is made into."""
    settings = from_mapping(mapping())
    config = settings.partition_config()
    plain = PartitionConfig(params=Params(d=3), events=config.events)

    assert config == plain
    assert settings.labels.config() == LabelConfig()
    assert settings.checkpoint.cadence() == Cadence()
    assert settings.worker.limits() == Limits()
    assert settings.start_at() == "earliest"
    assert settings.topic_names() == Topics("orders", "orders-decisions", "orders-dead-letters", "orders-checkpoints")


def test_no_default_is_written_twice() -> None:
    """The settings write down only those defaults that no room has; the others are taken from there."""
    written = {name for path in Path(settings_room.__file__).parent.glob("*.py") for name in literal_defaults(path)}

    assert written == {
        *("EmbeddedSection.group", "EmbeddedSection.partitions", "HttpSection.host", "HttpSection.port"),
        *("LogSection.format", "LogSection.level", "SecuritySection.protocol", "DecisionsSection.format"),
    }
    assert {field.default for field in fields(HttpConfig) if field.name in ("host", "port")} == {MISSING}


def literal_defaults(path: Path) -> Iterator[str]:
    """The fields of a file's sections whose default is a plain value in the source."""
    sections = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]
    for section, node in ((owner, field) for owner in sections for field in owner.body):
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            options = node.value.keywords if isinstance(node.value, ast.Call) else []
            default = next((option.value for option in options if option.arg == "default"), node.value)
            if isinstance(default, ast.Constant) and default.value is not None:
                yield f"{section.name}.{ast.unparse(node.target)}"


def test_kafka_values_reach_the_clients() -> None:
    """The section becomes the clients' configuration, secrets in the clear only there."""
    settings = from_mapping(SECRETIVE)
    assert settings.kafka is not None

    config = settings.kafka.config(settings.topic_names())

    assert (config.group, config.transactional_id) == ("g", "g.w-0")
    assert config.security["password"] == config.security["key_password"] == "hunter2"
    assert config.options["linger.ms"] == 3
    assert settings.group == "g"


def test_embedded_settings_have_a_group() -> None:
    """State has a name to be kept under without Kafka, too."""
    settings = from_mapping(mapping(kafka=None, embedded={"path": "log.db"}))

    assert settings.embedded is not None
    assert (settings.group, settings.embedded.path, settings.embedded.partitions) == ("npstream", Path("log.db"), 1)


def test_secrets_are_masked_wherever_settings_are_shown() -> None:
    """Neither repr, nor the dump, nor the clients' configuration shows a secret."""
    settings = from_mapping(SECRETIVE)
    assert settings.kafka is not None

    shown = [repr(settings), str(settings), yaml.safe_dump(masked_dump(settings))]
    shown.append(repr(settings.kafka.config(settings.topic_names())))

    assert "hunter2" not in "".join(shown)
    assert masked_dump(settings)["kafka"]["security"]["password"] == "********"
    assert masked_dump(settings)["kafka"]["options"]["linger.ms"] == 3


def test_the_dump_is_a_settings_file() -> None:
    """The effective settings, written as YAML and loaded again, are the effective settings."""
    settings = from_mapping(mapping(events={"features": ["a", "b", "c"], "on_bad_event": -1}, http=False))
    dump = masked_dump(settings)

    again = from_mapping(yaml.safe_load(yaml.safe_dump(dump)))

    assert masked_dump(again) == dump
    assert again.partition_config() == settings.partition_config()
    assert again.http is None


def test_the_dump_leaves_out_what_has_no_effect() -> None:
    """Preset paper shows no budget, and its dump can be loaded again."""
    dump = masked_dump(from_mapping(mapping(model={"preset": "paper"})))

    assert not {"budget", "charge"} & dump["model"].keys()
    assert masked_dump(from_mapping(dump)) == dump


def test_every_setting_is_described() -> None:
    """No setting goes into the reference without a sentence on what it is for."""
    entries = reference()

    assert len(entries) == len({entry.path for entry in entries}) > 50
    assert [entry.path for entry in entries if len(entry.description) < 10 or not entry.takes] == []


def test_the_reference_names_each_choice_once() -> None:
    """What may be written as a number or as text is one choice to a reader."""
    takes = {entry.path: entry.takes.split(" | ") for entry in reference()}

    assert takes["events.on_bad_event"] == ["none", "-1", "1"]
    assert [path for path, words in takes.items() if len(words) > len(set(words))] == []


def test_the_model_section_is_params() -> None:
    """Every parameter of the model is a setting, none is missing or left over."""
    names = [field.name for field in fields(Params)]

    assert [entry.path for entry in reference() if entry.path.startswith("model.")] == [f"model.{n}" for n in names]


def test_the_schema_refuses_unknown_keys_everywhere() -> None:
    """An editor that knows the schema marks a misspelt key in any section."""
    schema = json_schema()
    sections = [schema, schema["properties"]["model"], *schema["$defs"].values()]

    assert all(section["additionalProperties"] is False for section in sections)
    assert set(schema["properties"]) == set(Settings.model_fields)
