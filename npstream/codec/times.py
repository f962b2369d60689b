"""Times in events: ISO-8601 text, or numbers since 1970 in seconds, milliseconds, microseconds or nanoseconds."""

import math
import re
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

UNIT_LIMIT = 1e11
"""A number from here on counts a smaller unit: as seconds it were after the year 5138, as milliseconds it is 1973."""
TIME_LIMIT = 1e20

_ISO = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?"
    r"(?:[Zz]|([+-])([0-9]{2})(?::?([0-9]{2}))?)?)?"
)
_PER_SECOND = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}
_EPOCH_DAY = datetime(1970, 1, 1, tzinfo=UTC).toordinal()


def seconds_of_number(number: float) -> float:
    """Seconds since 1970, by the size of the number; below 1e20."""
    while abs(number) >= UNIT_LIMIT:
        number /= 1000.0
    return number


def seconds_of_numbers(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same for many at once."""
    while (late := np.abs(numbers) >= UNIT_LIMIT).any():
        numbers = np.where(late, numbers / 1000.0, numbers)
    return numbers


def seconds_of_datetimes(moments: NDArray[np.datetime64]) -> NDArray[np.float64]:
    """Seconds since 1970 of numpy's times, the bits of `seconds_of_text`; NaN where there is none."""
    unit, step = np.datetime_data(moments.dtype)
    if unit not in _PER_SECOND:
        moments, unit, step = moments.astype("datetime64[s]"), "s", 1
    per_second = _PER_SECOND[unit]
    counts = moments.astype(np.int64) * step
    whole, rest = np.divmod(counts, per_second)
    return np.where(np.isnat(moments), np.nan, whole.astype(np.float64) + rest / per_second)


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
