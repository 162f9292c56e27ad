"""Numbers of an event's calibration computed by others' code, or by definition row after row.

Logistic recalibration, its covariances and the flexible curve: statsmodels' GEE and GLM, the curve on patsy's natural
cubic splines (`cr`), which span the functions of a restricted cubic spline with the same knots. AUROC's variance: the
sum over all pairs of DeLong, DeLong and Clarke-Pearson (1988), equations 4 to 6. ICI, E50, E90 and Emax: Austin and
Steyerberg (2019), section 2.2. Spiegelhalter's z: Spiegelhalter (1986), as `rms::val.prob` has it.
"""

import numpy as np
import patsy
import statsmodels.api as sm

BINOMIAL = sm.families.Binomial()


def recalibration(log_odds, outcome, weights=None, clusters=None):
    """(intercept, slope) and their standard errors, robust, as G / (G - 1) times the sum of squares."""
    design = sm.add_constant(log_odds)
    groups = np.arange(len(outcome)) if clusters is None else clusters
    own = {} if weights is None else {"weights": weights}
    model = sm.GEE(outcome, design, groups, family=BINOMIAL, cov_struct=sm.cov_struct.Independence(), **own)
    fit = model.fit(ctol=1e-12)
    units = len(np.unique(groups))
    return fit.params, fit.bse * np.sqrt(units / (units - 1))


def in_the_large(log_odds, outcome):
    """The intercept with the slope fixed at 1."""
    return sm.GLM(outcome, np.ones(len(outcome)), family=BINOMIAL, offset=log_odds).fit(tol=1e-12).params[0]


def flexible_curve(log_odds, outcome, knots):
    """The curve at each row, knots and boundary knots given."""
    design = patsy.dmatrix(
        "cr(x, knots=inner, lower_bound=low, upper_bound=high) - 1",
        {"x": log_odds, "inner": knots[1:-1], "low": knots[0], "high": knots[-1]},
    )
    return sm.GLM(outcome, np.asarray(design), family=BINOMIAL).fit(tol=1e-12).fittedvalues


def distances(p, curve):
    """ICI, E50, E90, Emax; quantiles are the least value that has enough rows at or below it."""
    error = np.sort(np.abs(p - curve))
    n = len(error)
    return error.mean(), error[int(np.ceil(0.5 * n)) - 1], error[int(np.ceil(0.9 * n)) - 1], error[-1]


def delong(scores, positive):
    """AUROC and its standard error."""
    x, y = scores[positive], scores[~positive]
    kernel = (x[:, None] > y) + 0.5 * (x[:, None] == y)
    return kernel.mean(), np.sqrt(kernel.mean(1).var(ddof=1) / len(x) + kernel.mean(0).var(ddof=1) / len(y))


def spiegelhalter(p, outcome):
    """z = (Brier - E Brier) / sd(Brier) for a calibrated model."""
    n = len(p)
    brier, expected = np.mean((outcome - p) ** 2), np.mean(p * (1 - p))
    return (brier - expected) / np.sqrt(np.sum((1 - 2 * p) ** 2 * p * (1 - p)) / n**2)


# Net benefit of `dca(cancer ~ age)` on the 750 patients of `df_binary`, as R's package dcurves computes it: threshold,
# true and false positives, net benefit, and that of treating all. From r_simple_binary_dca_result_df.csv in
# tests/benchmark_data of github.com/MSKCC-Epi-Bio/dcurves at ee419d7, which stores the rates (counts / 750).
DCURVES = [
    (0.05, 98, 454, 0.09880701754385966, 0.09473684210526317),
    (0.1, 84, 289, 0.0691851851851852, 0.04444444444444445),
    (0.2, 59, 110, 0.04200000000000001, -0.07499999999999998),
    (0.3, 35, 46, 0.02038095238095238, -0.2285714285714286),
    (0.5, 14, 7, 0.009333333333333336, -0.72),
]
