# SPDX-License-Identifier: Apache-2.0
"""Writes src/kernel/math_coefficients.h: every polynomial of the kernel language's functions.

    pip install mpmath
    python tools/poly/coefficients.py | clang-format > src/kernel/math_coefficients.h

Each row states the function that the polynomial stands for, the interval, and the weight that turns
its error into the relative error of the function's result; minimax.py does the rest. The comment
beside each array is the largest weighted error as a power of two.
"""
from mpmath import mp, mpf

from minimax import fit

TINY = mpf(2) ** -40  # keeps 0 / 0 out of even and odd functions written in z = x * x


def of_root(f):
    return lambda z: f(mp.sqrt(z))


def mills(s):
    """(t + 4) / 8 exp(t^2 / 2) Phi(-t), t = 4 (1 + s) / (1 - s); Phi is the normal distribution.

    Mills' ratio falls like 1 / t; with the factor t + 4 it is nearly level, so that Horner's rule
    does not cancel. The kernel multiplies it by 8 t / (t + 4), which is normal where x / 2 is."""
    t = 4 * (1 + s) / (1 - s)
    return (t + 4) / 8 * mp.exp(t * t / 2) * mp.erfc(t / mp.sqrt(2)) / 2


LN2 = mp.log(2)
HALF_LN2 = LN2 / 2 * mpf("1.0001")
QUARTER_PI2 = (mp.pi / 4) ** 2 * mpf("1.0001")
ROOT = mp.sqrt(mpf(2))
ERF_SPLIT = mpf(15) / 16


def zero_at_0(f, value):
    return lambda x: value if x == 0 else f(x)


# name, terms for f32 and f64, what it is, function, weight, interval (per type where it differs)
ROWS = [
    ("Exp", (5, 11), "(e^r - 1 - r) / r^2 in r, |r| <= ln(2) / 2",
     zero_at_0(lambda r: (mp.expm1(r) - r) / r**2, mpf(1) / 2),
     zero_at_0(lambda r: abs(r**2 / mp.expm1(r)), mpf(0)), (-HALF_LN2, HALF_LN2)),
    ("Log", (8, 0), "(ln(1 + f) - f) / f^2 in f, 1 + f from sqrt(1/2) to sqrt(2)",
     lambda f: (mp.log1p(f) - f) / f**2, lambda f: abs(f**2 / mp.log1p(f)),
     (1 / ROOT - 1, ROOT - 1)),
    ("Atanh", (3, 8), "(2 atanh(s) - 2 s) / s^3 in s^2, |s| <= (sqrt(2) - 1) / (sqrt(2) + 1)",
     of_root(lambda s: 2 * (mp.atanh(s) - s) / s**3), of_root(lambda s: s**3 / mp.atanh(s) / 2),
     (TINY, ((ROOT - 1) / (ROOT + 1)) ** 2)),
    ("Sin", (3, 6), "(sin(r) - r) / r^3 in r^2, |r| <= pi / 4",
     of_root(lambda r: (mp.sin(r) - r) / r**3), of_root(lambda r: r**3 / mp.sin(r)),
     (TINY, QUARTER_PI2)),
    ("Cos", (3, 6), "(cos(r) - 1 + r^2 / 2) / r^4 in r^2, |r| <= pi / 4",
     of_root(lambda r: (mp.cos(r) - 1 + r * r / 2) / r**4), of_root(lambda r: r**4 / mp.cos(r)),
     (TINY, QUARTER_PI2)),
    ("Asin", (5, 13), "(asin(x) - x) / x^3 in x^2, |x| <= 1/2",
     of_root(lambda x: (mp.asin(x) - x) / x**3), of_root(lambda x: x**3 / mp.asin(x)),
     (TINY, mpf(1) / 4)),
    ("Atan", (9, 21), "(atan(x) - x) / x^3 in x^2, |x| <= 1",
     of_root(lambda x: (mp.atan(x) - x) / x**3), of_root(lambda x: x**3 / mp.atan(x)),
     (TINY, mpf(1))),
    ("Sinh", (4, 8), "(sinh(x) - x) / x^3 in x^2, |x| <= 1",
     of_root(lambda x: (mp.sinh(x) - x) / x**3), of_root(lambda x: x**3 / mp.sinh(x)),
     (TINY, mpf(1))),
    ("Erf", (6, 13), "erf(x) / x - 1 in x^2, |x| <= 15/16",
     of_root(lambda x: mp.erf(x) / x - 1), of_root(lambda x: x / mp.erf(x)),
     (TINY, ERF_SPLIT**2)),
    ("Erfc", (7, 20), "log2(1 - erf(t)) in t, 15/16 <= t <= 4 (f64: 6)",
     lambda t: mp.log(mp.erfc(t), 2), lambda t: mp.erfc(t) / mp.erf(t) * LN2,
     ((ERF_SPLIT, mpf(4)), (ERF_SPLIT, mpf(6)))),
    ("Mills", (10, 24),
     "(t + 4) / 8 exp(t^2 / 2) Phi(-t) in s = (t - 4) / (t + 4), t up to 13.25 (f64: 37.75)",
     mills, lambda s: 1 / mills(s),
     ((mpf(-1), mpf("9.25") / mpf("17.25")), (mpf(-1), mpf("33.75") / mpf("41.75")))),
]

print("""// SPDX-License-Identifier: Apache-2.0
// Polynomials of the functions in math.h, lowest power first. Written by tools/poly/coefficients.py;
// see there for intervals and weights.
#pragma once

namespace pumice::kernel {
""")
for name, terms, text, function, weight, interval in ROWS:
    for which, bits in ((0, 24), (1, 53)):
        n = terms[which]
        if n == 0:
            continue
        lo, hi = interval[which] if isinstance(interval[0], tuple) else interval
        c, error = fit(function, weight, lo, hi, range(n), bits, 40 * n if n > 10 else 400)
        print(f"// {text}; 2^{mp.nstr(mp.log(error, 2), 4)}")
        rows = [float(v).hex() for v in c]
        print(f"inline constexpr double k{name}F{32 if bits == 24 else 64}[] = {{")
        for v in rows:
            print(f"    {v},")
        print("};")
    print()
print("}  // namespace pumice::kernel")
