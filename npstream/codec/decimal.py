"""A decimal number to the nearest double, in compiled code: the same bits as any correct parser.

Lemire, "Number parsing at a gigabyte per second" (2021): the 64 bits of the
digits times a 128-bit power of five give the rounded result. They always suffice:
Mushtak and Lemire, "Fast number parsing without fallback" (2023).
"""

import numpy as np

from npstream.jit import jit

_LOWEST, _HIGHEST = -342, 308
_EXACT_LOWEST = -27
_HALF = np.uint64(0xFFFFFFFF)
_32, _1 = np.uint64(32), np.uint64(1)
_UNSURE = np.uint64(0x1FF)  # 55 bits are kept; when all below them are ones, a carry may come
_IMPLICIT, _FRACTION = np.uint64(1 << 52), np.uint64((1 << 52) - 1)
_EVEN = np.uint64(0xFFFFFFFFFFFFFFFE)
_WHOLE_MAX = np.uint64(1 << 53)
_TENS_MAX = 22
_TENS = np.array([float(10**q) for q in range(_TENS_MAX + 1)])


def _power(q: int) -> int:
    """5**q scaled to 128 bits, as the proof of the method wants them rounded."""
    if q >= 0:
        return _in_128_bits(int(5**q))
    five = int(5**-q)
    size = (five - 1).bit_length()
    return (1 << size + 127) // five + (q >= _EXACT_LOWEST)


def _in_128_bits(number: int) -> int:
    excess = number.bit_length() - 128
    return number >> excess if excess > 0 else number << -excess


_POWERS = [_power(q) for q in range(_LOWEST, _HIGHEST + 1)]
_HIGH = np.array([power >> 64 for power in _POWERS], np.uint64)
_LOW = np.array([power & (1 << 64) - 1 for power in _POWERS], np.uint64)


@jit
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """(high, low) 64 bits of a * b."""
    a1, a0, b1, b0 = a >> _32, a & _HALF, b >> _32, b & _HALF
    low = a0 * b0
    middle = a1 * b0 + (low >> _32)
    other = a0 * b1 + (middle & _HALF)
    return a1 * b1 + (middle >> _32) + (other >> _32), (other << _32) | (low & _HALF)


@jit
def to_double(digits: np.uint64, q: int) -> float:
    """The double nearest to digits * 10**q for digits > 0; NaN where that is not normal."""
    if digits <= _WHOLE_MAX and -_TENS_MAX <= q <= _TENS_MAX:
        # Both are exact doubles, so one operation rounds once.
        return float(digits * _TENS[q] if q >= 0 else digits / _TENS[-q])
    if q < _LOWEST or q > _HIGHEST:
        return np.nan
    w, zeros = digits, 0
    for step in (32, 16, 8, 4, 2, 1):
        if w >> np.uint64(64 - step) == 0:
            w <<= np.uint64(step)
            zeros += step
    high, low = _product(w, _HIGH[q - _LOWEST])
    if high & _UNSURE == _UNSURE:
        more, _ = _product(w, _LOW[q - _LOWEST])
        low += more
        if more > low:
            high += _1
    upper = np.int64(high >> np.uint64(63))
    shift = np.uint64(upper + 9)
    mantissa = high >> shift
    # 217706 / 65536 is the binary logarithm of ten, close enough for every q here.
    exponent = (217706 * q >> 16) + 63 + upper - zeros + 1023
    if exponent <= 0 or exponent >= 2046:
        return np.nan
    # Half-way between two doubles, which only these powers can be: to the even one.
    if low <= _1 and -4 <= q <= 23 and mantissa & np.uint64(3) == _1 and mantissa << shift == high:
        mantissa &= _EVEN
    mantissa = (mantissa + (mantissa & _1)) >> _1
    if mantissa >= _IMPLICIT << _1:
        mantissa = _IMPLICIT
        exponent += 1
    return float(np.uint64((mantissa & _FRACTION) | (np.uint64(exponent) << np.uint64(52))).view(np.float64))
