"""The smallest parts of JSON in compiled code: white space, strings, numbers, times, and the hash of categories.

Texts end with a zero byte, which no part of JSON holds, so that nothing reads
on into the next event. What JSON allows and this leaves alone, and what JSON
does not allow, look alike: -1, and a parser that knows all of it decides.
"""

import numpy as np
from numpy.typing import NDArray

from npstream.codec.categories import CODE_BITS, FNV_PRIME, MIX_1, MIX_2
from npstream.codec.decimal import to_double
from npstream.codec.times import UNIT_LIMIT
from npstream.jit import jit, jit_inline

Text = NDArray[np.uint8]
Index = np.uint64
"""An index that is known not to be negative: compiled code need not ask whether it counts from the end."""

QUOTE, BACKSLASH, MINUS, PLUS, POINT, COMMA, COLON, ZERO, NINE = b'"\\-+.,:09'
_SPACE, _TAB, _LINE, _RETURN = b" \t\n\r"
_E_SMALL, _E_LARGE, _U, _Z_SMALL, _Z_LARGE, _T_SMALL, _T_LARGE = b"eEuzZtT"
_DIGITS_MAX = 19
_WHOLE_DIGITS_MAX = 18
_EXPONENT_MAX = 10_000
_FRACTION_DIGITS_MAX = 9

_PLAIN = np.array([32 <= byte < 128 and byte not in b'"\\' for byte in range(256)])
_ESCAPED = np.array([byte in b'"\\/bfnrt' for byte in range(256)])
_HEX = np.array([int(chr(byte), 16) if chr(byte) in "0123456789abcdefABCDEF" else -1 for byte in range(256)], np.int64)
_MONTH_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)
_TENS = np.array([10.0**power for power in range(10)])

_0, _9, _10, _33, _48 = (np.uint64(number) for number in (0, 9, 10, 33, 48))
_PRIME, _MIX_1, _MIX_2 = np.uint64(FNV_PRIME), np.uint64(MIX_1), np.uint64(MIX_2)
_CODE_SHIFT = np.uint64(64 - CODE_BITS)


@jit_inline
def past_space(text: Text, at: int) -> int:
    """Where the next token begins."""
    while text[Index(at)] <= _SPACE and (
        text[Index(at)] == _SPACE or text[Index(at)] == _LINE or text[Index(at)] == _TAB or text[Index(at)] == _RETURN
    ):
        at += 1
    return at


@jit_inline
def past_string(text: Text, at: int) -> tuple[int, bool]:
    """(where the closing quote is or -1, whether there is no escape before it) of a string that begins at `at`."""
    plain = True
    while True:
        while _PLAIN[text[Index(at)]]:
            at += 1
        if text[Index(at)] == QUOTE:
            return at, plain
        if text[Index(at)] == BACKSLASH:
            plain = False
            at = _past_escape(text, at + 1)
        else:
            at = _past_character(text, at)
        if at < 0:
            return -1, False


@jit
def _past_escape(text: Text, at: int) -> int:
    """After what follows a backslash; -1 for half of a surrogate pair, and what is no escape."""
    if _ESCAPED[text[Index(at)]]:
        return at + 1
    if text[Index(at)] != _U:
        return -1
    code = np.int64(0)
    for i in range(1, 5):
        digit = _HEX[text[Index(at + i)]]
        if digit < 0:
            return -1
        code = code * 16 + digit
    return -1 if 0xD800 <= code < 0xE000 else at + 5


@jit
def _past_character(text: Text, at: int) -> int:
    """After one character of two to four bytes in UTF-8; -1 when it is none."""
    first = text[Index(at)]
    low, high, more = 0x80, 0xBF, 1
    if 0xC2 <= first <= 0xDF:
        more = 1
    elif 0xE0 <= first <= 0xEF:
        more = 2
        low = 0xA0 if first == 0xE0 else 0x80
        high = 0x9F if first == 0xED else 0xBF
    elif 0xF0 <= first <= 0xF4:
        more = 3
        low = 0x90 if first == 0xF0 else 0x80
        high = 0x8F if first == 0xF4 else 0xBF
    else:
        return -1
    for i in range(1, more + 1):
        if text[Index(at + i)] < low or text[Index(at + i)] > high:
            return -1
        low, high = 0x80, 0xBF
    return at + more + 1


@jit_inline
def past_number(text: Text, at: int) -> tuple[int, float, bool]:
    """(where it ends or -1, its value, whether it is an integer of at most 18 digits)."""
    negative = text[Index(at)] == MINUS
    at += negative
    first, digits = at, np.uint64(0)
    digit = np.uint64(text[Index(at)]) - _48
    while digit <= _9:  # below 0 wraps around to something large
        digits = digits * _10 + digit
        at += 1
        digit = np.uint64(text[Index(at)]) - _48
    size, whole, q = at - first, True, 0
    if size == 0 or (size > 1 and text[Index(first)] == ZERO):
        return -1, 0.0, False
    if text[Index(at)] == POINT:
        whole, at = False, at + 1
        point = at
        digit = np.uint64(text[Index(at)]) - _48
        while digit <= _9:
            digits = digits * _10 + digit
            at += 1
            digit = np.uint64(text[Index(at)]) - _48
        q = point - at
        if q == 0:
            return -1, 0.0, False
        size -= q
    if size > _DIGITS_MAX and _significant(text, first, size) > _DIGITS_MAX:
        return -1, 0.0, False
    if text[Index(at)] == _E_SMALL or text[Index(at)] == _E_LARGE:
        whole = False
        at, exponent = _exponent(text, at + 1)
        if at < 0:
            return -1, 0.0, False
        q += exponent
    value = to_double(digits, q) if digits > _0 else 0.0
    if value != value:
        return -1, 0.0, False
    if negative and not (whole and digits == _0):  # parsers take -0 for the integer 0, and -0.0 as it is
        value = -value
    return at, value, whole and size <= _WHOLE_DIGITS_MAX


@jit
def _significant(text: Text, at: int, size: int) -> int:
    """How many of `size` digits, with a point between them perhaps, come after the leading zeros."""
    while size > 0 and (text[Index(at)] == ZERO or text[Index(at)] == POINT):
        size -= text[Index(at)] == ZERO
        at += 1
    return size


@jit
def _exponent(text: Text, at: int) -> tuple[int, int]:
    """(where it ends or -1 when there is none or it is absurd, the power of ten)."""
    negative = text[Index(at)] == MINUS
    if text[Index(at)] == MINUS or text[Index(at)] == PLUS:
        at += 1
    first, power = at, 0
    while ZERO <= text[Index(at)] <= NINE:
        power = min(power * 10 + int(text[Index(at)] - ZERO), _EXPONENT_MAX)
        at += 1
    if at == first or power == _EXPONENT_MAX:
        return -1, 0
    return at, -power if negative else power


@jit
def code_of_token(text: Text, begin: int, end: int, start: np.uint64) -> float:
    """`categories.code_of` of the bytes from `begin` to `end`."""
    h = start
    for at in range(begin, end):
        h = (h ^ np.uint64(text[Index(at)])) * _PRIME
    h = (h ^ (h >> _33)) * _MIX_1
    h = (h ^ (h >> _33)) * _MIX_2
    return float((h ^ (h >> _33)) >> _CODE_SHIFT)


@jit
def seconds_of_value(number: float) -> float:
    """`times.seconds_of_number`."""
    while abs(number) >= UNIT_LIMIT:
        number /= 1000.0
    return number


@jit
def seconds_of_token(text: Text, at: int, end: int) -> float:
    """`times.seconds_of_text` of a string from `at` to its quote at `end`."""
    year = _fixed(text, at, 4)
    if year < 1 or text[Index(at + 4)] != MINUS:
        return np.nan
    month = _fixed(text, at + 5, 2)
    if month < 1 or month > 12 or text[Index(at + 7)] != MINUS:
        return np.nan
    day = _fixed(text, at + 8, 2)
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day < 1 or day > _MONTH_DAYS[month - 1] + (1 if leap else 0):
        return np.nan
    whole = _days(year, month, day) * 86_400
    at += 10
    if at == end:
        return float(whole)
    if text[Index(at)] != _T_LARGE and text[Index(at)] != _T_SMALL and text[Index(at)] != _SPACE:
        return np.nan
    hour = _fixed(text, at + 1, 2)
    if hour < 0 or hour > 23 or text[Index(at + 3)] != COLON:
        return np.nan
    minute = _fixed(text, at + 4, 2)
    if minute < 0 or minute > 59:
        return np.nan
    whole += hour * 3600 + minute * 60
    at += 6
    fraction = 0.0
    if text[Index(at)] == COLON:
        second = _fixed(text, at + 1, 2)
        if second < 0 or second > 59:
            return np.nan
        whole += second
        at += 3
        if text[Index(at)] == POINT or text[Index(at)] == COMMA:
            at += 1
            size, digits = 0, 0
            while ZERO <= text[Index(at)] <= NINE and size < _FRACTION_DIGITS_MAX:
                digits = digits * 10 + int(text[Index(at)] - ZERO)
                size, at = size + 1, at + 1
            if size == 0:
                return np.nan
            fraction = digits / _TENS[size]
    east = _zone(text, at, end)
    return float(whole - east) + fraction if east < 86_400 else np.nan


@jit
def _fixed(text: Text, at: int, size: int) -> int:
    """The number of `size` digits at `at`, -1 when there are fewer."""
    number = 0
    for i in range(size):
        if text[Index(at + i)] < ZERO or text[Index(at + i)] > NINE:
            return -1
        number = number * 10 + int(text[Index(at + i)] - ZERO)
    return number


@jit
def _zone(text: Text, at: int, end: int) -> int:
    """Seconds east of Greenwich; 86400 when what is left up to `end` is no zone."""
    if at == end or (at + 1 == end and (text[Index(at)] == _Z_LARGE or text[Index(at)] == _Z_SMALL)):
        return 0
    if text[Index(at)] != PLUS and text[Index(at)] != MINUS:
        return 86_400
    sign = 60 if text[Index(at)] == PLUS else -60
    hours = _fixed(text, at + 1, 2)
    if hours < 0 or hours > 23:
        return 86_400
    at += 3
    if at == end:
        return sign * 60 * hours
    if text[Index(at)] == COLON:
        at += 1
    minutes = _fixed(text, at, 2)
    return sign * (60 * hours + minutes) if 0 <= minutes <= 59 and at + 2 == end else 86_400


@jit
def _days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a date of the Gregorian calendar: years begin in March, so that leap days come last."""
    years = year - (1 if month <= 2 else 0)
    era, of_era = years // 400, years % 400
    of_year = (153 * (month + (9 if month <= 2 else -3)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
