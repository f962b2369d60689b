"""Times in events: ISO-8601 text, or numbers since 1970 in seconds, milliseconds, microseconds or nanoseconds."""

import math
import re
from datetime import UTC, datetime

UNIT_LIMIT = 1e11
"""A number from here on counts a smaller unit: as seconds it were after the year 5138, as milliseconds it is 1973."""
TIME_LIMIT = 1e20

_ISO = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?"
    r"(?:[Zz]|([+-])([0-9]{2})(?::?([0-9]{2}))?)?)?"
)
_EPOCH_DAY = datetime(1970, 1, 1, tzinfo=UTC).toordinal()


def seconds_of_number(number: float) -> float:
    """Seconds since 1970, by the size of the number; below 1e20."""
    while abs(number) >= UNIT_LIMIT:
        number /= 1000.0
    return number


def seconds_of_text(text: str) -> float:
    """Seconds since 1970 of ISO-8601 text; without a zone it is UTC. NaN when it is no time."""
    found = _ISO.fullmatch(text)
    if found is None:
        return math.nan
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    fraction, sign, zone_hours, zone_minutes = found.groups()[6:]
    east_h, east_m = int(zone_hours or 0), int(zone_minutes or 0)
    try:
        days = datetime(year, month, day, tzinfo=UTC).toordinal() - _EPOCH_DAY
    except ValueError:
        return math.nan
    if hour > 23 or minute > 59 or second > 59 or east_h > 23 or east_m > 59:
        return math.nan
    east = (east_h * 60 + east_m) * (-60 if sign == "-" else 60)
    whole = days * 86_400 + hour * 3600 + minute * 60 + second - east
    return float(whole) + (int(fraction) / 10 ** len(fraction) if fraction else 0.0)
