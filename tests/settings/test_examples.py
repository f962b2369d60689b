"""The example files work: each loads, says what its comments say, and keeps to the reference."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from npstream.errors import SettingsError
from npstream.settings import Settings, load, reference

FOLDER = Path(__file__).parents[2] / "config"
FILES = sorted(FOLDER.glob("*.yaml"))
ENV = {"KAFKA_BOOTSTRAP": "broker:9092", "HOSTNAME": "npstream-0"}


def example(name: str) -> Settings:
    """An example with its secret replaced: there is no secret file on the machine that runs the tests."""
    secret = ["kafka.security.password=secret"] if name == "kafka.yaml" else []
    return load(FOLDER / name, ENV, secret)


def test_there_are_five_examples() -> None:
    """A new example must be added to the tests below."""
    assert [path.name for path in FILES] == ["external.yaml", "fraud.yaml", "kafka.yaml", "local.yaml", "payments.yaml"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_examples_load_and_use_documented_settings_only(path: Path) -> None:
    """Every example is accepted as it is, and each of its settings is in the reference."""
    documented = {entry.path for entry in reference()}

    assert isinstance(example(path.name), Settings)
    assert set(leaves(yaml.safe_load(path.read_text()), documented)) <= documented


def leaves(node: Any, documented: set[str], path: str = "") -> Iterator[str]:
    """Paths of the settings in a file; what a documented setting holds is its own affair."""
    if isinstance(node, dict) and path not in documented:
        for name, item in node.items():
            yield from leaves(item, documented, f"{path}.{name}" if path else name)
    else:
        yield path


def test_the_kafka_example_needs_its_variables_and_its_secret() -> None:
    """What an operator must provide is named, all at once."""
    with pytest.raises(SettingsError) as caught:
        load(FOLDER / "kafka.yaml", {})

    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "kafka.bootstrap",
        "kafka.worker_name",
        "kafka.security.password",
    ]


def test_examples_say_what_their_comments_promise() -> None:
    """The point of each example holds."""
    fraud, external, kafka, local = (example(f"{name}.yaml") for name in ("fraud", "external", "kafka", "local"))

    assert (fraud.model.d, fraud.model.control, fraud.labels.on_expiry) == (5, "alarm_rate", "negative")
    assert (fraud.labels.expire_seconds, fraud.labels.review) == (7 * 24 * 3600, 0.002)
    assert (external.model.preset, external.partition_config().events.external) == ("external", True)
    assert (kafka.events.format, kafka.events.on_bad_event, kafka.start_at()) == ("f32", "-1", "latest")
    assert kafka.kafka is not None
    assert kafka.kafka.worker_name == "npstream-0"
    assert local.embedded is not None
    assert local.topic_names().decisions == "events-decisions"
