"""Payments as they come: JSON with spaces, plain or in a change-data-capture envelope, late labels among them."""

import json
from typing import Any

import numpy as np

COUNTRIES = ("DE", "FR", "US", "BR")


def _country(rng: np.random.Generator, fraud: bool) -> str:
    return COUNTRIES[int(rng.integers(2, 4) if fraud else rng.integers(0, 3))]


def payment(rng: np.random.Generator, number: int) -> dict[str, Any]:
    """One payment; fraud has larger amounts, from other places. Scores and countries are missing now and then."""
    fraud = bool(rng.random() < 0.25)
    return {
        "payment_id": f"p-{number}",
        "amount": round(float(rng.lognormal(4.0 if fraud else 3.0)), 2),
        "velocity_1h": int(rng.poisson(3 if fraud else 1)),
        "device_score": None if number % 6 == 1 else round(float(rng.random()), 4),
        "card": {"country": None if number % 11 == 2 else _country(rng, fraud), "bin": 424242},
        "merchant_mcc": int(rng.choice([5411, 5812, 7995])),
        "merchant": {"name": "Café \u2615", "tags": ["food", None]},
        "auth": {"three_ds": bool(rng.random() < 0.5)},
        "created_at": f"2026-05-{1 + number % 28:02}T{number % 24:02}:15:00Z",
        "fraud": ("Y" if fraud else "N") if number % 2 else fraud,
    }


def payments(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """A stream: most payments bring their label, some get it later, some are bad."""
    rng = np.random.default_rng(seed)
    found: list[dict[str, Any]] = []
    for number in range(count):
        whole = payment(rng, number)
        if number % 5 == 3:
            found += [{**whole, "fraud": None}, {"payment_id": whole["payment_id"], "fraud": whole["fraud"]}]
        elif number % 41 == 7:
            found.append({**whole, "amount": None})
        elif number % 41 == 9:
            found.append({**whole, "card": {"country": 1.5}})
        else:
            found.append(whole)
    return found


def spaced(document: dict[str, Any]) -> bytes:
    """As `json.dumps` writes it."""
    return json.dumps(document).encode()


def enveloped(document: dict[str, Any]) -> bytes:
    """The same row as Debezium sends it."""
    payload = {"before": None, "after": document, "source": {"db": "shop", "ts_ms": 1}, "op": "c", "ts_ms": 2}
    return json.dumps({"schema": {"type": "struct", "fields": [], "optional": False}, "payload": payload}).encode()


def under(prefix: str, events: dict[str, Any]) -> dict[str, Any]:
    """A section `events` with all its paths below `prefix`."""
    kinds = ("number", "category", "flag", "time")
    features = {
        name: {key: f"{prefix}.{value}" if key in kinds else value for key, value in entry.items()}
        for name, entry in events["features"].items()
    }
    label = {**events["label"], "path": f"{prefix}.{events['label']['path']}"}
    return {**events, "id": f"{prefix}.{events['id']}", "label": label, "features": features}
