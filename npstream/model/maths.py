"""Elementary functions whose bits do not depend on the machine.

A C library's sin, cos, exp and log differ in the last bit between versions and
processors; these use only IEEE addition, multiplication, division and exact
scaling, in a written order. Polynomials and constants are the classical ones of
fdlibm. `sincos` has no branches, so that a loop over units becomes vector code.
"""

import math

import numpy as np

from npstream.jit import jit

# x + _ROUND - _ROUND is x rounded to the nearest integer for |x| < 2**51.
_ROUND = 6755399441055744.0

LARGEST_ANGLE = 1048576.0
"""Angles are clamped to 2**20: below it the reduction is exact, above it the sine of a score is noise anyway."""

_TWO_OVER_PI = 0.6366197723675814
# pi/2 in three pieces; the first two have 33 bits, so that their product with a 20-bit integer is exact.
_PIO2_1 = 1.5707963267341256
_PIO2_2 = 6.077100506303966e-11
_PIO2_3 = 2.0222662487959506e-21

_S1, _S2, _S3 = -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04
_S4, _S5, _S6 = 2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10
_C1, _C2, _C3 = 4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05
_C4, _C5, _C6 = -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11

_LN2_HI, _LN2_LO, _INV_LN2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10, 1.44269504088896338700
_E1, _E2, _E3 = 1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05
_E4, _E5 = -1.65339022054652515390e-06, 4.13813679705723846039e-08
_L1, _L2, _L3, _L4 = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
)
_L5, _L6, _L7 = 1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01
_SQRT_HALF = 0.7071067811865476


@jit
def sincos(angle: float) -> tuple[float, float]:
    """Sine and cosine of `angle` clamped to +-2**20, each within about one unit in the last place."""
    p = min(max(angle, -LARGEST_ANGLE), LARGEST_ANGLE)
    shifted = p * _TWO_OVER_PI + _ROUND
    k = shifted - _ROUND
    # The last bits of `shifted` are those of k: odd exchanges the two functions, 2 and 3 (1 and 2) turn the sign.
    n = np.float64(shifted).view(np.int64)
    odd = n & 1 == 1
    # p - k pi/2 as a sum x + y, |y| far below the last place of x.
    a = p - k * _PIO2_1
    w = k * _PIO2_2
    r = a - w
    low = ((a - r) - w) - k * _PIO2_3
    x = r + low
    y = (r - x) + low
    z = x * x
    v = z * x
    sine = x - ((z * (0.5 * y - v * (_S2 + z * (_S3 + z * (_S4 + z * (_S5 + z * _S6))))) - y) - v * _S1)
    half = 0.5 * z
    head = 1.0 - half
    tail = z * (z * (_C1 + z * (_C2 + z * (_C3 + z * (_C4 + z * (_C5 + z * _C6))))))
    cosine = head + (((1.0 - head) - half) + (tail - x * y))
    s = cosine if odd else sine
    c = sine if odd else cosine
    s = np.int64(np.float64(s).view(np.int64) ^ ((n & 2) << 62)).view(np.float64)
    c = np.int64(np.float64(c).view(np.int64) ^ (((n + 1) & 2) << 62)).view(np.float64)
    return s, c


@jit
def exp(exponent: float) -> float:
    """e to the power of `exponent` clamped to +-708, within about one unit in the last place."""
    p = min(max(exponent, -708.0), 708.0)
    k = (p * _INV_LN2 + _ROUND) - _ROUND
    high = p - k * _LN2_HI
    low = k * _LN2_LO
    x = high - low
    t = x * x
    c = x - t * (_E1 + t * (_E2 + t * (_E3 + t * (_E4 + t * _E5))))
    power = np.int64((np.int64(k) + 1023) << 52).view(np.float64)
    return float((1.0 - ((low - (x * c) / (2.0 - c)) - high)) * power)


@jit
def log(value: float) -> float:
    """Natural logarithm of a positive normal number, within about one unit in the last place."""
    m, e = math.frexp(value)
    small = m < _SQRT_HALF
    f = (2.0 * m if small else m) - 1.0
    k = e - 1.0 if small else e + 0.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    r = w * (_L2 + w * (_L4 + w * _L6)) + z * (_L1 + w * (_L3 + w * (_L5 + w * _L7)))
    half = 0.5 * f * f
    return k * _LN2_HI - ((half - (s * (half + r) + k * _LN2_LO)) - f)
