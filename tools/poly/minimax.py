# SPDX-License-Identifier: Apache-2.0
"""Weighted minimax polynomials with coefficients that are floats of 24 or 53 bits.

remez() is the exchange algorithm on a grid of Chebyshev points: solve for the polynomial whose
weighted error alternates between n + 1 grid points, move the points to the extrema of that error,
repeat until the error is level. fit() then rounds one coefficient after the other and fits the rest
again with the rounded ones held fixed, so that later coefficients make up for what earlier ones
lost: lowest power first, since it weighs most, but highest first where 0 lies inside the interval
(without the low powers there is no alternating error on both sides of 0).
"""
from mpmath import mp, mpf

mp.prec = 200


def grid(lo, hi, count):
    """Chebyshev extrema of [lo, hi]: dense where errors of polynomials have their extrema."""
    mid, half = (mpf(lo) + hi) / 2, (mpf(hi) - lo) / 2
    return [mid - half * mp.cos(mp.pi * i / (count - 1)) for i in range(count)]


def remez(xs, target, weight, powers):
    """Coefficients for `powers` with the least maximum of |weight * (polynomial - target)|."""
    n = len(powers)
    table = [[x**p for p in powers] for x in xs]
    points = [round(i * (len(xs) - 1) / n) for i in range(n + 1)]
    best = None
    for _ in range(60):
        a = mp.matrix(n + 1, n + 1)
        b = mp.matrix(n + 1, 1)
        for row, i in enumerate(points):
            for j in range(n):
                a[row, j] = weight[i] * table[i][j]
            a[row, n] = (-1) ** row
            b[row] = weight[i] * target[i]
        solved = mp.lu_solve(a, b)
        c, level = [solved[j] for j in range(n)], abs(solved[n])
        error = [w * (mp.fdot(c, t) - g) for w, t, g in zip(weight, table, target)]
        worst = max(abs(e) for e in error)
        if best is None or worst < best[1]:
            best = (c, worst)
        if worst <= level * mpf(1.0005):
            break
        # One extremum for each run of errors of one sign; drop small ones at the ends.
        runs = []
        for i, e in enumerate(error):
            if runs and (error[runs[-1]] > 0) == (e > 0):
                if abs(e) > abs(error[runs[-1]]):
                    runs[-1] = i
            else:
                runs.append(i)
        while len(runs) > n + 1:
            runs.pop(0 if abs(error[runs[0]]) < abs(error[runs[-1]]) else -1)
        if len(runs) < n + 1 or runs == points:
            break
        points = runs
    return best


def round_to(x, bits):
    """x as the nearest float of `bits` bits."""
    if x == 0:
        return mpf(0)
    mantissa, exponent = mp.frexp(x)
    return mp.ldexp(mp.nint(mp.ldexp(mantissa, bits)), exponent - bits)


def fit(target, weight, lo, hi, powers, bits, count=400):
    """Rounded coefficients, and the largest weighted error of the polynomial they make."""
    xs = grid(lo, hi, count)
    goal = [target(x) for x in xs]
    w = [weight(x) for x in xs]
    rest, left, out = list(powers), list(goal), []
    at = -1 if lo < 0 < hi else 0
    while rest:
        c = round_to(remez(xs, left, w, rest)[0][at], bits)
        power = rest.pop(at)
        left = [g - c * x**power for x, g in zip(xs, left)]
        out.insert(0 if at == -1 else len(out), c)
    return out, max(abs(a * b) for a, b in zip(left, w))
