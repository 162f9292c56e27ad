"""FCL's population minimiser to many digits by nested bracketing with mpmath: slow, and nothing like Newton's method.

For a multiplier s each class has one q_k(s), the root of a decreasing function; s is where they sum to one.
"""

import mpmath


def exact_minimiser(eta, gamma: float, lam: float, digits: int = 50) -> tuple[list, object]:
    """(displacements q* - eta, multiplier nu) as mpmath numbers, for eta with every eta_k > 0, normalised exactly."""
    with mpmath.workdps(digits):
        weights = [mpmath.mpf(float(e)) for e in eta]
        total = mpmath.fsum(weights)
        eta = [w / total for w in weights]
        gamma, lam = mpmath.mpf(float(gamma)), mpmath.mpf(float(lam))
        top = max(range(len(eta)), key=lambda k: eta[k])

        def odds(e, s):
            """log(q / (1 - q)) at the root of eta w(q) + 2 lam eta = s + 2 lam q."""

            def imbalance(x):
                q, c = 1 / (1 + mpmath.exp(-x)), 1 / (1 + mpmath.exp(x))
                log_q = -mpmath.log1p(mpmath.exp(-x))
                w = c**gamma * (-gamma * log_q / c + 1 / q)
                return mpmath.log(e * w + 2 * lam * e) - mpmath.log(s + 2 * lam * q)

            return _root(imbalance, -2000, 2000)

        def surplus(log_s):
            s = mpmath.exp(log_s)
            x = [odds(e, s) for e in eta]
            others = mpmath.fsum(1 / (1 + mpmath.exp(-x[k])) for k in range(len(eta)) if k != top)
            return mpmath.log(others) + mpmath.log1p(mpmath.exp(x[top]))  # of the sum of the others over 1 - q_top

        s = mpmath.exp(_root(surplus, -1500, 10))
        x = [odds(e, s) for e in eta]
        return [1 / (1 + mpmath.exp(-v)) - e for v, e in zip(x, eta, strict=True)], -s


def _root(decreasing, low: float, high: float):
    """Bisection while the function may be anything but smooth, then Ridders' method."""
    low, high = mpmath.mpf(low), mpmath.mpf(high)
    while high - low > 8:
        middle = (low + high) / 2
        low, high = (middle, high) if decreasing(middle) > 0 else (low, middle)
    f_low, f_high = decreasing(low), decreasing(high)
    while high - low > mpmath.mpf(10) ** (5 - mpmath.mp.dps):
        middle = (low + high) / 2
        f_middle = decreasing(middle)
        new = middle + (middle - low) * f_middle / mpmath.sqrt(f_middle**2 - f_low * f_high)
        f_new = decreasing(new)
        points = sorted([(low, f_low), (middle, f_middle), (new, f_new), (high, f_high)])
        if any(f == 0 for _, f in points):
            return next(x for x, f in points if f == 0)
        low, f_low = [point for point in points if point[1] > 0][-1]
        high, f_high = next(point for point in points if point[1] < 0)
    return (low + high) / 2
