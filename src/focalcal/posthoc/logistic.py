"""Logistic regression on a few features by Newton's method, for soft targets and to machine precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import expit

_ROUNDING = 1e-14  # of the loss: smaller gains are not seen in it, and Newton's steps need no proof of them
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
    last = math.inf
    for _ in range(200):
        p = expit(x @ w)
        gradient = x.T @ (share * (p - targets)) + _RIDGE * w
        hessian = (x.T * (share * p * (1 - p))) @ x + _RIDGE * np.eye(len(w))
        step = np.linalg.solve(hessian, gradient)
        decrement, length = float(gradient @ step), 1.0
        if decrement < 1e-22:
            break
        if decrement > _ROUNDING * value:  # a gain that values can show
            while (
                trial := _loss(x, targets, share, w - length * step)
            ) > value - 0.1 * length * decrement and length > 1e-10:
                length /= 2
        elif decrement < last:
            trial = _loss(x, targets, share, w - step)
        else:  # what is left is rounding
            break
        w, value, last = w - length * step, trial, decrement
        if length <= 1e-10 or decrement < 1e-18:
            break
    return w / scale, value


def _loss(x: Any, targets: Any, share: Any, w: Any) -> float:
    margin = x @ w
    return float(share @ (np.logaddexp(0, margin) - targets * margin)) + 0.5 * _RIDGE * float(w @ w)
