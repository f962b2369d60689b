"""The first mapping that `npstream map` writes: it loads, and the sample can be read with it."""

from typing import Any

import pytest
import yaml

from npstream.codec.draft import DocumentDecoder
from npstream.errors import UsageError
from npstream.settings import from_mapping
from npstream.settings.guess import guess_events
from tests.codec.streams import payments
from tests.settings.builders import mapping

ROWS = [document for document in payments(60) if document.get("amount") and document["card"]["country"] != 1.5]


def guessed(documents: list[Any]) -> dict[str, Any]:
    """The section, loaded."""
    section = yaml.safe_load(guess_events(documents))["events"]
    assert isinstance(section, dict)
    return section


def test_a_guess_from_payments_reads_them() -> None:
    """Id, label, money on a logarithmic scale, codes as categories, times; names of single merchants are left out."""
    named = [{**row, "merchant": {"name": f"shop {i}"}} for i, row in enumerate(ROWS)]
    section = guessed(named)
    config = from_mapping({**mapping(events=section), "model": {"tau": 0.1}}).partition_config().events

    assert section["id"] == "payment_id"
    assert section["label"] == {"path": "fraud", "target": [True, "Y"], "non_target": [False, "N"]}
    assert section["features"] == {
        "amount": {"number": "amount", "scale": "log"},
        "velocity_1h": {"number": "velocity_1h"},
        "device_score": {"number": "device_score", "missing": "allow"},
        "card_country": {"category": "card.country", "buckets": 64},
        "card_bin": {"category": "card.bin", "buckets": 64},
        "merchant_mcc": {"category": "merchant_mcc", "buckets": 64},
        "auth_three_ds": {"flag": "auth.three_ds"},
        "created_at": {"time": "created_at", "cycle": "day"},
    }
    assert "merchant.name: 'shop 0'" in guess_events(named)
    unlabelled = [{**row, "fraud": None} for row in named]
    assert DocumentDecoder(config).decode(unlabelled).errors == {}


def test_a_change_record_is_read_below_its_envelope() -> None:
    """Of a Debezium event the row after the change counts, not what surrounds it."""
    rows = [{"schema": {}, "payload": {"before": None, "after": row, "op": "c", "ts_ms": 1}} for row in ROWS]
    section = guessed(rows)

    assert section["id"] == "payload.after.payment_id"
    assert section["features"]["amount"] == {"number": "payload.after.amount", "scale": "log"}
    assert not any("ts_ms" in str(entry) for entry in section["features"].values())


def test_what_is_sometimes_null_may_be_missing() -> None:
    """Names with dots are quoted, and a sample of nothing is refused."""
    section = guessed([{"a.b": 1.5, "at": None, "": 1}, {"a.b": None, "at": "2026-01-01"}])

    assert section["features"] == {
        "a_b": {"number": '["a.b"]', "missing": "allow"},
        "at": {"time": "at", "cycle": "day", "missing": "allow"},
    }
    with pytest.raises(UsageError, match="no JSON object"):
        guess_events([1, []])
