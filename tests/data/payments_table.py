"""The payments of a topic as rows of a table, and the same table as CSV, Parquet and events."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow
from pyarrow import parquet

MAPPED: dict[str, Any] = {
    "id": "payment_id",
    "label": {"path": "fraud", "target": [True, "Y"], "non_target": [False, "N"]},
    "features": {
        "amount": {"number": "amount", "scale": "log"},
        "velocity": {"number": "velocity_1h", "missing": "allow"},
        "country": {"category": "card.country"},
        "mcc": {"category": "merchant_mcc", "buckets": 256},
        "three_ds": {"flag": "auth.three_ds"},
        "hour": {"time": "created_at", "cycle": "day"},
        "weekday": {"time": "created_at", "cycle": "week"},
    },
}
"""`events` of the settings."""

Row = dict[str, Any]


def rows(count: int, seed: int = 0) -> list[Row]:
    """Payments by column name; frauds are large and from other countries. Some of the values are missing."""
    rng = np.random.default_rng(seed)
    found: list[Row] = []
    for i in range(count):
        fraud = bool(rng.random() < 0.25)
        found.append(
            {
                "payment_id": f"p-{i}",
                "created_at": f"2026-05-{1 + i % 28:02}T{int(rng.integers(24)):02}:30:00.{int(rng.integers(1000)):03}Z",
                "fraud": fraud,
                "amount": round(float(np.exp(rng.normal(4 + 2 * fraud, 1))), 2),
                "velocity_1h": None if rng.random() < 0.2 else int(rng.poisson(1 + 2 * fraud)),
                "card.country": None
                if rng.random() < 0.1
                else str(rng.choice(["DE", "FR", "Österreich"] if fraud else ["US", "IT"])),
                "merchant_mcc": int(rng.choice([5411, 4829, 7995])),
                "auth.three_ds": None if rng.random() < 0.1 else bool(rng.random() < 0.5),
                "note": "a, b",
            }
        )
    return found


def write_csv(path: Path, table: list[Row], columns: list[str] | None = None) -> Path:
    """Comma separated, the columns in this order; what is missing is an empty cell."""
    names = columns or list(table[0])
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([["" if row[name] is None else row[name] for name in names] for row in table])
    return path


def write_parquet(path: Path, table: list[Row]) -> Path:
    """With types: times are timestamps, countries a dictionary, and what has a dot in its name is a structure."""
    names = list(table[0])
    columns = {name: pyarrow.array([row[name] for row in table]) for name in names}
    columns["created_at"] = columns["created_at"].cast(pyarrow.timestamp("ms", "UTC"))
    columns["card.country"] = columns["card.country"].dictionary_encode()
    auth = pyarrow.StructArray.from_arrays([columns.pop("auth.three_ds")], ["three_ds"])
    parquet.write_table(pyarrow.table({**columns, "auth": auth}), path, row_group_size=37)
    return path


def documents(table: list[Row]) -> list[Row]:
    """The events an upstream team would send: nested, with null where something is missing."""
    return [
        {
            **{name: value for name, value in row.items() if "." not in name},
            "card": {"country": row["card.country"]},
            "auth": {"three_ds": row["auth.three_ds"]},
        }
        for row in table
    ]


def values(table: list[Row]) -> list[bytes]:
    """The events as JSON."""
    return [orjson.dumps(document) for document in documents(table)]
