"""A secret never reaches a ConfigMap or a pod's description, and the refusal says where it belongs."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy import chart

SECRET = "hunter2-31415926"
FILE = "${file:/etc/npstream/secrets/user/it}"
SECRET_OPTIONS = [
    "sasl.password",
    "ssl.key.pem",
    "ssl.key.password",
    "ssl.keystore.password",
    "ssl_key",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.assertion.private.key.pem",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.jaas.config",
    "SSL.KEY.PEM",
]
PUBLIC_OPTIONS = ["ssl.ca.pem", "ssl.certificate.pem", "ssl.key.location", "sasl.oauthbearer.token.endpoint.url"]
SECRET_VARIABLES = [
    "NPSTREAM__KAFKA__SECURITY__PASSWORD",
    "NPSTREAM__KAFKA__SECURITY__KEY_PASSWORD",
    "NPSTREAM__KAFKA__SECURITY__CLIENT_SECRET",
    "NPSTREAM__KAFKA__OPTIONS__SSL__KEY__PEM",
    "NPSTREAM__KAFKA__OPTIONS__SASL__OAUTHBEARER__CLIENT__SECRET",
    "KAFKA_PASSWORD",
    "db_passwd",
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "API_KEY",
    "SASL_JAAS_CONFIG",
]
PUBLIC_VARIABLES = ["AWS_WEB_IDENTITY_TOKEN_FILE", "PASSWORD_PATH", "OAUTH_TOKEN_URL", "NUMBA_CPU_NAME", "MONKEY"]


def rendered(tmp_path: Path, **given: Any) -> tuple[int, str, str]:
    """What the smallest values make with these options of the client, or these variables, or this address."""
    values = yaml.safe_load((chart.VALUES / "minimal.yaml").read_text())
    values["env"] = given.pop("env", [])
    values["settings"]["kafka"].update(given)
    path = tmp_path / "values.yaml"
    path.write_text(yaml.safe_dump(values))
    return chart.template(path)


@pytest.mark.parametrize("option", SECRET_OPTIONS)
def test_a_secret_among_the_options_is_refused(option: str, tmp_path: Path) -> None:
    """It would be readable in the ConfigMap; from a mounted file it is taken."""
    code, manifests, messages = rendered(tmp_path, options={option: SECRET})

    assert (code, manifests) == (1, "")
    assert f"settings.kafka.options.{option}: " in messages
    assert "mount it with `secrets` and write ${file:/etc/npstream/secrets/<name>/<key>}" in messages
    assert SECRET not in messages
    assert rendered(tmp_path, options={option: FILE})[0] == 0


@pytest.mark.parametrize("option", PUBLIC_OPTIONS)
def test_what_is_no_secret_is_no_secret(option: str, tmp_path: Path) -> None:
    """Certificates, paths and addresses may be seen."""
    assert rendered(tmp_path, options={option: "seen"})[0] == 0


@pytest.mark.parametrize("name", SECRET_VARIABLES)
def test_a_secret_among_the_variables_is_refused(name: str, tmp_path: Path) -> None:
    """It would be readable in the pod's description; from a Secret, or from a mounted file, it is taken."""
    code, manifests, messages = rendered(tmp_path, env=[{"name": name, "value": SECRET}])
    reference = {"secretKeyRef": {"name": "npstream", "key": "it"}}

    assert (code, manifests) == (1, "")
    assert f"env.{name}: " in messages
    assert "valueFrom.secretKeyRef" in messages
    assert SECRET not in messages
    if not name.startswith("NPSTREAM__KAFKA__SECURITY"):  # which needs a protocol, too
        assert rendered(tmp_path, env=[{"name": name, "valueFrom": reference}])[0] == 0
        assert rendered(tmp_path, env=[{"name": name, "value": FILE}])[0] == 0


@pytest.mark.parametrize("name", PUBLIC_VARIABLES)
def test_a_variable_that_only_points_to_a_secret_is_taken(name: str, tmp_path: Path) -> None:
    """Paths and addresses may be seen, and so may a word that only sounds alike."""
    assert rendered(tmp_path, env=[{"name": name, "value": "seen"}])[0] == 0


def test_a_login_may_come_from_a_secret_by_variables(tmp_path: Path) -> None:
    """What a variable will set is not missing."""
    env = [
        {
            "name": f"NPSTREAM__KAFKA__SECURITY__{name}",
            "valueFrom": {"secretKeyRef": {"name": "npstream", "key": name.lower()}},
        }
        for name in ("USERNAME", "PASSWORD")
    ]
    security = {"protocol": "SASL_SSL", "mechanism": "PLAIN"}

    tokens = {
        "protocol": "SASL_SSL",
        "mechanism": "OAUTHBEARER",
        "token_url": "https://id.example.org/token",
        "client_id": "npstream",
    }

    assert rendered(tmp_path, security=security, env=env)[0] == 0
    assert rendered(tmp_path, security={**tokens, "client_secret": FILE})[0] == 0
    assert (
        "settings.kafka.security.client_secret: a secret"
        in rendered(tmp_path, security={**tokens, "client_secret": SECRET})[2]
    )
    assert "settings.kafka.security.username: missing" in rendered(tmp_path, security=security, env=env[1:])[2]


def test_a_password_in_an_address_is_refused(tmp_path: Path) -> None:
    """No Kafka client logs in that way, and the address is in the ConfigMap and in logs."""
    code, _, messages = rendered(tmp_path, bootstrap=f"user:{SECRET}@kafka:9092")

    assert code == 1
    assert "settings.kafka.bootstrap: " in messages
    assert SECRET not in messages


@pytest.mark.parametrize("name", ["password", "key_password"])
def test_a_secret_that_is_no_text_is_refused_unseen(name: str) -> None:
    """Helm's own message about a wrong type does not repeat the value either."""
    given = json.dumps({"protocol": "SASL_SSL", name: 31415926})

    code, _, messages = chart.template(
        chart.VALUES / "minimal.yaml", options=["--set-json", f"settings.kafka.security={given}"]
    )

    assert code == 1
    assert name in messages
    assert "31415926" not in messages
