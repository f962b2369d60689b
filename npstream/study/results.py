"""Keys and cells of a study's rows."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def digest(parts: Mapping[str, Any]) -> str:
    """Sixteen hex digits of everything that determines a result. Values must be plain JSON."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def number(row: Mapping[str, str], name: str) -> float:
    """A cell as a number; an empty cell is NaN."""
    return float(row[name]) if row[name] else float("nan")
