"""Where settings come from: file, environment, command line, references."""

from pathlib import Path

import pytest

from npstream.errors import SettingsError, UsageError
from npstream.settings import from_mapping, load
from tests.settings.builders import MINIMAL, mapping, problems

YAML = """
embedded: {path: log.db}
topics: {events: orders}
model: {d: 3, tau: 1e-3, learning: off}
start: 2026-05-01T02:00:00+02:00
http: off
labels:
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text(YAML)
    return path


def test_a_file_becomes_settings(file: Path) -> None:
    """YAML's habits do no harm: 1e-3 is a number, off is off, timestamps keep their zone, null is absent."""
    settings = load(file, {})

    assert (settings.model.tau, settings.model.learning, settings.http) == (0.001, False, None)
    assert settings.start_at() == 1_777_593_600_000
    assert settings.labels.buffer_max == 10_000


def test_later_sources_win(file: Path) -> None:
    """The environment overrides the file, the command line overrides both."""
    env = {"NPSTREAM__MODEL__TAU": "0.02", "NPSTREAM__MODEL__D": "50", "NPSTREAM__WORKER__BATCH_MAX": "7"}

    settings = load(file, env, ["model.tau=0.03", "start=latest", "log.level=debug"])

    assert (settings.model.tau, settings.model.D, settings.model.d, settings.worker.batch_max) == (0.03, 50, 3, 7)
    assert (settings.start_at(), settings.log.level) == ("latest", "debug")


def test_lists_and_mappings_are_given_as_yaml() -> None:
    """An override that begins with a bracket is read as YAML; option names keep their dots."""
    settings = from_mapping(
        {**MINIMAL, "model": {}},
        {"NPSTREAM__EVENTS__FEATURES": "[amount, age]", "NPSTREAM__KAFKA__OPTIONS": "{linger.ms: 1}"},
        ["kafka.options.client.dns.lookup=use_all_dns_ips"],
    )

    assert settings.events.features == ("amount", "age")
    assert settings.kafka is not None
    assert settings.kafka.options == {"linger.ms": 1, "client.dns.lookup": "use_all_dns_ips"}


def test_text_stays_text() -> None:
    """A password of digits from the environment is not taken for a number."""
    security = {"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "u"}

    settings = from_mapping(mapping(kafka={"security": security}), {"NPSTREAM__KAFKA__SECURITY__PASSWORD": "0123"})

    assert settings.kafka is not None
    assert settings.kafka.config(settings.topic_names()).security["password"] == "0123"


def test_references_are_replaced(tmp_path: Path) -> None:
    """Variables and files are put in, also inside a longer text; a doubled dollar keeps the braces."""
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    security = {
        "protocol": "SASL_SSL",
        "mechanism": "PLAIN",
        "username": "$${literal}",
        "password": f"${{file:{secret}}}",
    }
    raw = mapping(kafka={"bootstrap": "${HOST}:9092", "security": security}, model={"tau": "${TAU}"})

    settings = from_mapping(raw, {"HOST": "broker-1", "TAU": "0.05"})

    assert settings.kafka is not None
    config = settings.kafka.config(settings.topic_names())
    assert (config.bootstrap, settings.model.tau) == ("broker-1:9092", 0.05)
    assert (config.security["username"], config.security["password"]) == ("${literal}", "s3cret")


def test_unresolved_references_are_named_once_beside_other_problems(tmp_path: Path) -> None:
    """A missing variable or file is reported with its path, and does not hide what else is wrong."""
    raw = mapping(
        kafka={"bootstrap": "${NOWHERE}", "options": {"a.pem": f"${{file:{tmp_path}/none}}"}},
        model={"tau": "${TAU}", "D": 0},
    )

    assert problems(raw) == [
        "kafka.bootstrap: environment variable NOWHERE is not set",
        f"kafka.options.a.pem: cannot read {tmp_path}/none: No such file or directory",
        "model.tau: environment variable TAU is not set",
        "model.D: 0 is not a whole number from 1 to 100000",
    ]


def test_the_host_name_is_the_default_worker_name() -> None:
    """In a container nobody has to name the worker; without a host name it is asked for."""
    raw = mapping(kafka={"worker_name": None})
    settings = from_mapping(raw, {"HOSTNAME": "npstream-2"})

    assert settings.kafka is not None
    assert settings.kafka.worker_name == "npstream-2"
    assert len(problems(raw)) == 1


def test_the_given_mapping_is_left_alone() -> None:
    """Overrides and references do not write into the caller's mapping."""
    raw = mapping(kafka={"bootstrap": "${HOST}"})

    from_mapping(raw, {"HOST": "b:1"}, ["kafka.group=other"])

    assert raw == mapping(kafka={"bootstrap": "${HOST}"})
    assert MINIMAL["kafka"]["group"] == "g"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [1", r"settings\.yaml, line \d+, column \d+: not YAML"),
        (
            "topics: {events: a}\ntopics: {events: b}",
            r"settings\.yaml, line 2, column 1: not YAML: 'topics' is there twice",
        ),
        ("- a\n- b", "must be a mapping of sections"),
        ("", "must be a mapping of sections"),
        ("!!python/object/apply:os.getcwd []", "not YAML"),
        ("a: \x00", "not YAML"),
    ],
)
def test_what_is_not_a_mapping_is_refused_with_its_place(tmp_path: Path, text: str, expected: str) -> None:
    """Broken YAML, a key given twice and code in YAML are refused, with line and column where there is one."""
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=expected):
        load(path, {})


def test_a_missing_file_and_a_malformed_assignment_are_usage_errors(tmp_path: Path, file: Path) -> None:
    """Errors of the command line are distinguished from errors in the file."""
    with pytest.raises(UsageError, match=r"cannot read .*none\.yaml: No such file"):
        load(tmp_path / "none.yaml", {})
    with pytest.raises(UsageError, match=r"--set model\.tau: write it as section\.key=value"):
        load(file, {}, ["model.tau"])
    with pytest.raises(SettingsError, match=r"--set start\.deep: start is not a section"):
        load(file, {}, ["start.deep=1"])
