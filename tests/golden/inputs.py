"""Inputs given by formulas, made with NumPy alone, so that they need neither files nor random numbers.

They are rounded to six decimals: processors differ in the last digit of a sine, and what is pinned must not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def single_label(rows: int = 2000, classes: int = 10) -> tuple[Array, Array]:
    """The logits of `references.golden.single_label` and their labels; accuracy 0.52."""
    i, k = np.arange(1.0, rows + 1)[:, None], np.arange(float(classes))
    logits = 3 * np.sin(0.37 * i * (k + 1)) + 2 * np.cos(0.11 * i + 1.7 * k)
    labels = (logits + 2.5 * np.sin(0.73 * i * (k + 2) + k)).argmax(1)
    return logits.round(6), labels


def softmax(logits: Array) -> Array:
    """Probabilities in float64."""
    powers = np.exp(logits.astype(np.float64) - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def probabilities(rows: int = 2000, classes: int = 10) -> tuple[Array, Array]:
    """The same rows as probabilities of nine decimals."""
    logits, labels = single_label(rows, classes)
    return softmax(logits).round(9), labels


def masked(rows: int = 600, classes: int = 6) -> tuple[Array, Array]:
    """Logits of which about a tenth is -inf, never that of the label."""
    logits, labels = single_label(rows, classes)
    i, k = np.arange(rows)[:, None], np.arange(classes)
    impossible = (np.sin(1.3 * i + 2.1 * k) > 0.95) & (k != labels[:, None])
    return np.where(impossible, -np.inf, logits), labels


def positive_class(rows: int = 1000) -> tuple[Array, Array]:
    """One column of P(y = 1) and labels 0 and 1, overconfident below one half."""
    i = np.arange(1, rows + 1)
    f = np.mod(0.6180339887498949 * i, 1.0).round(6)
    return f, (np.mod(0.7548776662466927 * i, 1.0) < f**1.3).astype(int)


def outcomes(rows: int = 2000) -> tuple[Array, Array]:
    """How sure each prediction is, and whether it is right."""
    probs, labels = probabilities(rows)
    return probs.max(1), probs.argmax(1) == labels


def multi_label(rows: int = 400, labels: int = 4) -> tuple[Array, Array]:
    """Logits (N, L) and labels of 0 and 1."""
    i, k = np.arange(rows)[:, None], np.arange(labels)
    logits = single_label(rows, labels)[0]
    return logits, (logits + 3 * np.sin(1.3 * i * (k + 1) + 2.1 * k) > 0.5).astype(int)


def row_weights(rows: int) -> Array:
    """Weights from 0 to 2, every seventh of them 0."""
    weights = (1 + np.sin(0.59 * np.arange(rows))).round(6)
    weights[::7] = 0.0
    return weights


def posteriors(rows: int = 6, classes: int = 4) -> Array:
    """Posteriors of several sharpnesses, the last with a zero."""
    logits = single_label(rows, classes)[0] * np.linspace(0.1, 1.5, rows)[:, None]
    eta = softmax(logits).round(6)
    eta[-1, eta[-1].argmin()] = 0.0
    return eta / eta.sum(1, keepdims=True)
