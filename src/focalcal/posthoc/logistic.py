"""Logistic regression on a few features by Newton's method, for soft targets and to machine precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

_RIDGE = 1e-10  # on coefficients of features scaled to unit size: separated data, too, have a finite optimum


def logistic_coefficients(features: Any, targets: Any, weights: Any) -> tuple[Any, float]:
    """argmin_w of mean(log(1 + exp(x w)) - t x w) + 1e-10/2 |w|^2 and its value; features (n, d), targets in [0, 1].

    The mean is weighted by `weights` (n,); the penalty is on the coefficients of features divided by their root mean
    square.
    """
    share = weights / weights.sum()
    scale = np.sqrt(share @ features**2)
    scale[scale == 0] = 1.0
    x = features / scale
    w = np.zeros(x.shape[1])
    value = _loss(x, targets, share, w)
    for _ in range(200):
        p = expit(x @ w)
        gradient = x.T @ (share * (p - targets)) + _RIDGE * w
        hessian = (x.T * (share * p * (1 - p))) @ x + _RIDGE * np.eye(len(w))
        step = np.linalg.solve(hessian, gradient)
        decrement = float(gradient @ step)
        if decrement < 1e-22:
            break
        length = 1.0
        while (
            trial := _loss(x, targets, share, w - length * step)
        ) > value - 0.1 * length * decrement and length > 1e-10:
            length /= 2
        w, value = w - length * step, trial
        if length <= 1e-10 or decrement < 1e-18:  # what is left is rounding
            break
    return w / scale, value


def _loss(x: Any, targets: Any, share: Any, w: Any) -> float:
    margin = x @ w
    return float(share @ (np.logaddexp(0, margin) - targets * margin)) + 0.5 * _RIDGE * float(w @ w)
