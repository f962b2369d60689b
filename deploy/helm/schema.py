"""Write the chart's values.schema.json, whose `settings` come from the worker's own settings model.

python deploy/helm/schema.py

So `helm install` refuses a wrong key or value before anything is created, with
the same rules that `npstream check` has.
"""

import json
from pathlib import Path
from typing import Any

from npstream.settings import json_schema

TARGET = Path(__file__).with_name("npstream") / "values.schema.json"

TEXT = {"type": "string"}
FLAG = {"type": "boolean"}
MAPPING = {"type": "object"}
WORDS = {"type": "object", "additionalProperties": {"type": "string"}}
OBJECTS = {"type": "array", "items": {"type": "object"}}
NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 40}
PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
DURATION = {"type": "string", "pattern": "^([0-9]+(ms|s|m|h))+$"}
NOT_IN_A_CHART = ("embedded",)
"""A log in one file is for a single process."""


def whole(minimum: int) -> dict[str, Any]:
    """A whole number that is not below `minimum`."""
    return {"type": "integer", "minimum": minimum}


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
    "resources": closed({"cpu": {"type": ["string", "number"]}, "memory": TEXT}),
    "terminationGracePeriodSeconds": whole(1),
    "startSeconds": whole(30),
    "minReadySeconds": whole(0),
    "podAnnotations": WORDS,
    "podLabels": WORDS,
    "nodeSelector": WORDS,
    "tolerations": OBJECTS,
    "affinity": MAPPING,
    "priorityClassName": TEXT,
    "topologySpreadConstraints": OBJECTS,
    "env": {"type": "array", "items": {"type": "object", "required": ["name"]}},
    "autoscaling": closed(
        {
            "enabled": FLAG,
            # The workers themselves export how late they are: from zero nobody would wake them.
            "minReplicas": whole(1),
            "maxReplicas": whole(0),
            "prometheusAddress": TEXT,
            "authenticationRef": TEXT,
            "lagSeconds": {"type": "number", "exclusiveMinimum": 0},
        }
    ),
    "networkPolicy": closed(
        {"enabled": FLAG, "from": OBJECTS, "brokerPorts": {"type": "array", "items": PORT}, "brokers": OBJECTS}
    ),
    "monitoring": closed(
        {"podMonitor": FLAG, "interval": DURATION, "prometheusRule": FLAG, "labels": WORDS, "runbooks": TEXT}
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
"""What the chart itself may be told."""


def schema() -> dict[str, Any]:
    """The schema of the chart's values."""
    settings = json_schema()
    definitions = settings.pop("$defs")
    settings.pop("$schema")
    for name in NOT_IN_A_CHART:
        settings["properties"].pop(name)
    definitions.pop("EmbeddedSection")
    # In a chart the cluster is needed and its workers are named after their pods; probes need the HTTP port.
    settings["properties"]["kafka"] = {"$ref": "#/$defs/KafkaSection"}
    settings["properties"]["http"] = {"$ref": "#/$defs/HttpSection"}
    settings["required"] = sorted({*settings["required"], "kafka"})
    definitions["KafkaSection"]["required"].remove("slot")
    return {
        # The newest that Helm's validator knows.
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the npstream chart",
        **closed({**OWN, "settings": settings}, ("partitions", "settings")),
        "$defs": definitions,
    }


def text() -> str:
    """The file's content."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text())
