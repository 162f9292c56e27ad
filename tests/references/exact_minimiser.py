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

        rest = mpmath.fsum(e for k, e in enumerate(eta) if k != top)  # 1 - eta_top, which 50 digits may not hold

        def excess(k, x):
            """q_k - eta_k where log(q_k / (1 - q_k)) = x."""
            return rest - 1 / (1 + mpmath.exp(x)) if k == top else 1 / (1 + mpmath.exp(-x)) - eta[k]

        solved = [[] for _ in eta]

        def odds(k, log_s):
            """The root x of eta_k w(q_k) - 2 lam (q_k - eta_k) = s, both sides positive and in logarithms."""
            s = mpmath.exp(log_s)

            def imbalance(x):
                q, c = 1 / (1 + mpmath.exp(-x)), 1 / (1 + mpmath.exp(x))
                w = c**gamma * (gamma * mpmath.log1p(mpmath.exp(-x)) / c + 1 / q)
                pull = 2 * lam * excess(k, x)
                return mpmath.log(eta[k] * w + max(-pull, 0)) - mpmath.log(s + max(pull, 0))

            # x falls as s rises: the roots for other s are bounds, moved by more than their own error
            low = max((x for at, x in solved[k] if at > log_s), default=-20000) - mpmath.mpf(10) ** -30
            high = min((x for at, x in solved[k] if at < log_s), default=20000) + mpmath.mpf(10) ** -30
            solved[k].append((log_s, _root(imbalance, low, high)))
            return solved[k][-1][1]

        def surplus(log_s):
            """log of the sum of the other q_k over 1 - q_top."""
            x = [odds(k, log_s) for k in range(len(eta))]
            others = mpmath.fsum(1 / (1 + mpmath.exp(-x[k])) for k in range(len(eta)) if k != top)
            return mpmath.log(others) + mpmath.log1p(mpmath.exp(x[top]))

        log_s = _root(surplus, -1500, 10)
        return [excess(k, odds(k, log_s)) for k in range(len(eta))], -mpmath.exp(log_s)


def _root(decreasing, low: float, high: float):
    """Bisection while the function may be anything but smooth, then Ridders' method."""
    low, high = mpmath.mpf(low), mpmath.mpf(high)
    while high - low > 8:
        middle = (low + high) / 2
        low, high = (middle, high) if decreasing(middle) > 0 else (low, middle)
    f_low, f_high = decreasing(low), decreasing(high)
    if f_high == 0:
        return high
    for _ in range(400):  # halves at least, and doubles the digits where the function is smooth
        middle = (low + high) / 2
        f_middle = decreasing(middle)
        if high - low < mpmath.mpf(10) ** (12 - mpmath.mp.dps) or f_middle == 0:
            return middle
        new = middle + (middle - low) * f_middle / mpmath.sqrt(f_middle**2 - f_low * f_high)
        f_new = decreasing(new)
        if f_new == 0:
            return new
        points = sorted([(low, f_low), (middle, f_middle), (new, f_new), (high, f_high)])
        low, f_low = [point for point in points if point[1] > 0][-1]
        high, f_high = next(point for point in points if point[1] < 0)
    raise ArithmeticError("the root was not found")
