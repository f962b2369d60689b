"""Write what the chart knows of the worker's settings, from the settings model itself.

python deploy/helm/schema.py

values.schema.json says what each value may be, files/settings.json what the
templates need for rules that no schema can say. So `helm install` refuses what
`npstream check` would refuse, before anything is created.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from npstream.kafka.config import REFUSED, SECRETS
from npstream.settings import BUFFER_MAX_BYTES, LOGINS, SNAPSHOT_MAX_BYTES, from_mapping, json_schema, sizes

CHART = Path(__file__).with_name("npstream")

TEXT = {"type": "string"}
FLAG = {"type": "boolean"}
MAPPING = {"type": "object"}
WORDS = {"type": "object", "additionalProperties": {"type": "string"}}
OBJECTS = {"type": "array", "items": {"type": "object"}}
NAMED = {"type": "array", "items": {"type": "object", "required": ["name"]}}
NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 40}
PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
CPU = {"type": ["string", "number"], "pattern": "^([0-9]+m|[0-9]+([.][0-9]+)?)$", "exclusiveMinimum": 0}
MEMORY = {"type": "string", "pattern": "^[0-9]+([.][0-9]+)?(Ki|Mi|Gi|Ti|k|M|G|T)?$"}
WORKERS = {"type": ["integer", "string"], "minimum": 1, "pattern": "^([1-9][0-9]?|100)%$"}
DURATION = {"type": "string", "pattern": "^([0-9]+(ms|s|m|h))+$"}
REAL_TEXT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
WHOLE_TEXT = r"^[+-]?(0|[1-9][0-9]*)$"
START = (
    r"^(earliest|latest|\$\{.+\}|"
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]([01][0-9]|2[0-3])(:[0-5][0-9](:[0-5][0-9]([.,][0-9]+)?)?)?"
    r"(Z|[+-][0-9]{2}(:?[0-9]{2})?))$"
)
"""A timestamp has its time zone. The calendar is left to the templates."""
LIMITS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
NOT_IN_A_CHART = ("embedded",)
"""A log in one file is for a single process."""


def whole(minimum: int) -> dict[str, Any]:
    """A whole number that is not below `minimum`."""
    return {"type": "integer", "minimum": minimum}


def or_text(node: dict[str, Any]) -> dict[str, Any]:
    """A number that may come as text: `--set` makes text of every number with a point. Templates check its bounds."""
    kind = node["type"]
    return {**node, "type": [kind, "string"], "pattern": WHOLE_TEXT if kind == "integer" else REAL_TEXT}


SHARE = or_text({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})


def closed(properties: dict[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """An object with these keys and no others."""
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "additionalProperties": False, "properties": properties, **needed}


OWN = {
    "global": MAPPING,
    "partitions": whole(0),
    # Null is for those who apply rendered manifests and leave the number to the autoscaler.
    "replicas": {"type": ["integer", "null"], "minimum": 0},
    "image": closed(
        {
            "repository": {"type": "string", "minLength": 1},
            "tag": TEXT,
            "digest": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
            "pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
        }
    ),
    "imagePullSecrets": OBJECTS,
    "nameOverride": TEXT,
    "fullnameOverride": TEXT,
    "secrets": {"type": "array", "items": closed({"name": NAME, "secretName": TEXT}, ("name", "secretName"))},
    "files": {"type": "array", "items": closed({"name": NAME, "configMapName": TEXT}, ("name", "configMapName"))},
    "job": closed({"args": {"type": "array", "items": TEXT}}),
    "resources": closed({"cpu": CPU, "memory": MEMORY}),
    "terminationGracePeriodSeconds": whole(1),
    "startSeconds": whole(30),
    "minReadySeconds": whole(0),
    "probes": closed(
        {
            # One second is too near to what a busy process takes on a busy node.
            "timeoutSeconds": whole(2),
            "liveness": closed({"periodSeconds": whole(1), "failureThreshold": whole(1)}),
            "readiness": closed({"periodSeconds": whole(1), "failureThreshold": whole(1)}),
        }
    ),
    "podDisruptionBudget": closed({"enabled": FLAG, "maxUnavailable": WORKERS}),
    "check": closed({"enabled": FLAG, "timeoutSeconds": whole(10)}),
    "podSecurityContext": MAPPING,
    "securityContext": MAPPING,
    "workloadAnnotations": WORDS,
    "podAnnotations": WORDS,
    "podLabels": WORDS,
    "nodeSelector": WORDS,
    "tolerations": OBJECTS,
    "affinity": MAPPING,
    "priorityClassName": TEXT,
    "topologySpreadConstraints": OBJECTS,
    "env": NAMED,
    "envFrom": OBJECTS,
    "extraVolumes": NAMED,
    "extraVolumeMounts": NAMED,
    "initContainers": NAMED,
    "extraContainers": NAMED,
    "autoscaling": closed(
        {
            "enabled": FLAG,
            # The workers themselves export how late they are: from zero nobody would wake them.
            "minReplicas": whole(1),
            "maxReplicas": whole(0),
            "prometheusAddress": TEXT,
            "authenticationRef": TEXT,
            "lagSeconds": or_text({"type": "number", "exclusiveMinimum": 0}),
        }
    ),
    "networkPolicy": closed(
        {"enabled": FLAG, "from": OBJECTS, "brokerPorts": {"type": "array", "items": PORT}, "brokers": OBJECTS}
    ),
    "monitoring": closed(
        {
            "podMonitor": FLAG,
            "serviceMonitor": FLAG,
            "interval": DURATION,
            "prometheusRule": FLAG,
            "thresholds": closed(
                {
                    **dict.fromkeys(("lateCriticalSeconds", "lateWarningSeconds", "checkpointAgeSeconds"), whole(1)),
                    **dict.fromkeys(("rebalancesPerHour", "hoursWithoutLabels"), whole(1)),
                    "fprStandardDeviations": or_text({"type": "number", "exclusiveMinimum": 0}),
                    **dict.fromkeys(("abortShare", "withheldShare", "labelsLostShare", "deadLetterShare"), SHARE),
                }
            ),
            "labels": WORDS,
            "runbooks": TEXT,
        }
    ),
    "dashboard": closed({"enabled": FLAG, "labels": WORDS}),
    "strimzi": closed(
        {
            "enabled": FLAG,
            "cluster": TEXT,
            "namespace": TEXT,
            "topics": closed({"events": FLAG, "replicas": whole(1), "retentionMs": whole(-1)}),
            "user": closed({"authentication": {"enum": ["scram-sha-512", "tls", "none"]}}),
        }
    ),
    "serviceAccount": closed({"name": TEXT, "annotations": WORDS}),
}
"""The settings of the chart itself."""


def numbers(settings: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(section.key, schema) of every setting that is a number, also where it may be null."""
    for section, given in settings["properties"].items():
        reference = given.get("$ref", "").rpartition("/")[2]
        for key, setting in settings["$defs"].get(reference, given).get("properties", {}).items():
            for option in (setting, *setting.get("anyOf", ())):
                if option.get("type") in ("integer", "number"):
                    yield f"{section}.{key}", option


def worker_settings() -> dict[str, Any]:
    """The schema of the worker's settings as far as a chart may give them."""
    settings = json_schema()
    settings.pop("$schema")
    for name in NOT_IN_A_CHART:
        settings["properties"].pop(name)
    settings["$defs"].pop("EmbeddedSection")
    # In a chart the cluster is needed and its workers are named after their pods; probes need the HTTP port.
    settings["properties"]["kafka"] = {"$ref": "#/$defs/KafkaSection"}
    settings["properties"]["http"] = {"$ref": "#/$defs/HttpSection"}
    settings["properties"]["start"]["pattern"] = START
    settings["required"] = sorted({*settings["required"], "kafka"})
    settings["$defs"]["KafkaSection"]["required"].remove("worker_name")
    return settings


def schema() -> dict[str, Any]:
    """The schema of the chart's values."""
    settings = worker_settings()
    for _, node in numbers(settings):
        node.update(or_text(node))
    definitions = settings.pop("$defs")
    return {
        # The newest that Helm's validator knows.
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the npstream chart",
        **closed({**OWN, "settings": settings}, ("partitions", "settings")),
        "$defs": definitions,
    }


def rules() -> dict[str, Any]:
    """What the templates need to know: numbers and their bounds, refused options, how large a snapshot may be."""
    return {
        "numbers": {
            path: {"type": node["type"], **{limit: node[limit] for limit in LIMITS if limit in node}}
            for path, node in numbers(worker_settings())
        },
        "options": REFUSED,
        "logins": {mechanism: login._asdict() for mechanism, login in LOGINS.items()},
        "secrets": SECRETS,
        "snapshot": snapshot(),
    }


def snapshot() -> dict[str, int]:
    """Its greatest size, that of the label buffer, and a waiting observation's: so much, and so much for a feature."""
    bare, wide = (waiting(d) for d in (1, 2))
    entry = {"feature": wide - bare, "observation": 2 * bare - wide}
    return {"max": SNAPSHOT_MAX_BYTES, "buffer_max": BUFFER_MAX_BYTES, **entry}


def waiting(d: int) -> int:
    """Bytes of one observation of d features that waits for its label."""
    connection = {"bootstrap": "b", "group": "g", "worker_name": "s"}
    raw = {"kafka": connection, "topics": {"events": "e"}, "model": {"d": d}, "labels": {"buffer_max": 1}}
    return sizes(from_mapping(raw)).buffer


def texts() -> dict[Path, str]:
    """The files and their content."""
    contents = {CHART / "values.schema.json": schema(), CHART / "files" / "settings.json": rules()}
    return {path: json.dumps(content, indent=2, ensure_ascii=False) + "\n" for path, content in contents.items()}


if __name__ == "__main__":
    for path, text in texts().items():
        path.write_text(text)
