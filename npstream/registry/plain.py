"""What JSON has no type for, as an event in JSON would carry it."""

from base64 import b64encode
from datetime import UTC, datetime


def as_iso(moment: datetime) -> str:
    """ISO text; UTC with a Z, a local time without a zone as it is."""
    if moment.tzinfo is None:
        return moment.isoformat()
    utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return utc.isoformat().removesuffix("+00:00") + "Z"


def as_base64(content: bytes) -> str:
    """Bytes as text, as Protobuf's own JSON has them."""
    return b64encode(content).decode()
