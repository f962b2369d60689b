"""The schemas Kubernetes and the operators' own resources are judged by."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

CRDS = Path(__file__).with_name("crds")


@cache
def operator_schemas() -> dict[tuple[str, str], dict[str, Any]]:
    """(apiVersion, kind) of every resource an operator defines, with its schema made strict."""
    found = {}
    for path in sorted(CRDS.glob("*.yaml")):
        for definition in yaml.safe_load_all(path.read_text()):
            if definition is None:
                continue
            spec = definition["spec"]
            for version in spec["versions"]:
                schema = strict(version["schema"]["openAPIV3Schema"])
                # A cluster adds these to every resource.
                schema["properties"]["metadata"] = {"type": "object", "required": ["name"]}
                found[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = schema
    return found


def strict(schema: Any) -> Any:
    """The schema, refusing unknown keys where a cluster would silently drop them."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: strict(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        result.setdefault("additionalProperties", False)
    return result


def complaints(manifest: dict[str, Any]) -> list[str]:
    """What the operator's schema has against a resource; raises KeyError for one that no operator defines."""
    schema = operator_schemas()[manifest["apiVersion"], manifest["kind"]]
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(manifest)]
