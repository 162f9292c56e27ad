"""Calibration errors over bins of confidence, as functions of what was summed over the bins or of the rows.

Bins are (lo, hi] with edges k / n_bins in float64, the first closed at 0, so that every confidence has a bin: 0 is in
the first, 1 in the last, k / n_bins in the bin it closes. Functions of sums reduce the last dimension, that of the
bins, and keep the others (classes, resamples).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erf

from focalcal._native import scores as native
from focalcal.core.binning import Array, BinSums, bin_index, bin_sums, equal_mass_edges, per_bin, sums_at
from focalcal.core.checks import one_of
from focalcal.metrics.scan import check_bins


def ece_of(bins: BinSums) -> Array:
    """Expected calibration error, sum_b n_b / N |accuracy_b - confidence_b|; an empty bin counts nothing.

    Naeini et al. (2015), "Obtaining well calibrated probabilities using Bayesian binning"; Guo et al. (2017).
    """
    count, confidence, correct = bins.parts
    return np.abs(confidence - correct).sum(-1) / count.sum(-1)


def mce_of(bins: BinSums) -> Array:
    """Maximum calibration error, max_b |accuracy_b - confidence_b|, however few rows a bin has."""
    return np.abs(bins.gap).max(-1)


def rms_ce_of(bins: BinSums) -> Array:
    """Root-mean-square calibration error, sqrt(sum_b n_b / N (accuracy_b - confidence_b)^2)."""
    return np.sqrt((_weight(bins) * bins.gap**2).sum(-1))


def confidence_gap_of(bins: BinSums) -> Array:
    """Mean confidence minus accuracy: positive is overconfident, negative underconfident. No bins take part."""
    count, confidence, correct = bins.parts
    return (confidence - correct).sum(-1) / count.sum(-1)


def accuracy_of(bins: BinSums) -> Array:
    """The share of rows whose most probable class (the first of equal ones) is the label. No bins take part."""
    count, _, correct = bins.parts
    return correct.sum(-1) / count.sum(-1)


def debiased_ece_of(bins: BinSums, norm: str = "l1") -> Array:
    """The calibration error less most of what chance adds to it, not below 0. A plain ECE is never 0 on finite data.

    "l1": 2 ECE - sum_b n_b / N E|g_b|, where g_b is normal with the observed gap as mean and variance
    acc_b (1 - acc_b) / n_b; the expectation is in closed form (the limit of the resampling in Kumar et al. 2019).
    A bin that is all right or all wrong, as one of a single row is, shows no variance and is not corrected.
    "l2": sqrt(sum_b n_b / N (gap_b^2 - acc_b (1 - acc_b) / (n_b - 1))), bins of one row left out of the correction:
    the debiased estimator of Kumar, Liang & Ma (2019), "Verified uncertainty calibration".
    """
    one_of("norm", norm, ("l1", "l2"))
    count, _, correct = bins.parts
    accuracy = per_bin(correct, count)
    variance = accuracy * (1 - accuracy)
    if norm == "l2":
        chance = np.where(count > 1, variance / np.maximum(count - 1, 1), 0.0)
        square = (_weight(bins) * (bins.gap**2 - chance)).sum(-1)
        return np.sqrt(np.maximum(square, 0))
    expected = folded_normal_mean(bins.gap, np.sqrt(per_bin(variance, count)))
    return np.maximum(2 * ece_of(bins) - (_weight(bins) * expected).sum(-1), 0)


def _weight(bins: BinSums) -> Array:
    """The share of the rows in each bin."""
    count = bins.count
    return count / count.sum(-1, keepdims=True)


def folded_normal_mean(mean: Array, deviation: Array) -> Array:
    """E|X| for X normal: s sqrt(2 / pi) exp(-m^2 / 2 s^2) + m erf(m / (s sqrt 2)), |m| where s = 0."""
    safe = np.where(deviation > 0, deviation, 1.0)
    ratio = mean / safe
    value = safe * math.sqrt(2 / math.pi) * np.exp(-(ratio**2) / 2) + mean * erf(ratio / math.sqrt(2))
    return np.where(deviation > 0, value, np.abs(mean))


def classwise_ece_of(residual: Array, rows: Array) -> Array:
    """The mean over all K classes of the ECE of p_k against 1[label = k] over all rows.

    K is the number of columns, so that a class without a label counts. Kull et al. (2019); Nixon et al. (2019).
    """
    return np.abs(residual).sum((-2, -1)) / (rows * residual.shape[-2])


def binary_adaptive_ece(
    confidence: Array, correct: Array, *, n_bins: int = 15, convention: str = "closed", weights: Array | None = None
) -> float:
    """ECE over bins of equal mass: edges at the sorted confidences, interpolated at ranks 0, N/n_bins, ..., N.

    Equal confidences always share a bin, so with many ties bins differ in mass. "closed" puts the smallest
    confidence into the first bin; "fc" leaves it out of every bin, as the code of Mukhoti et al. (2020) does.
    """
    n_bins = check_bins(n_bins)
    one_of("convention", convention, ("closed", "fc"))
    edges = equal_mass_edges(confidence, n_bins, weights)
    if convention == "closed":
        return float(ece_of(sums_between(confidence, correct, edges, weights)))
    above = confidence > edges[0]
    if not above.any():
        return 0.0
    kept = above.mean() if weights is None else weights[above].sum() / weights.sum()
    own = None if weights is None else weights[above]
    return float(ece_of(sums_between(confidence[above], correct[above], edges, own)) * kept)


def sums_between(confidence: Array, correct: Array, edges: Array, weights: Array | None = None) -> BinSums:
    """Sums over bins with any edges."""
    if weights is not None:
        return sums_at(bin_index(confidence, edges), confidence, correct, len(edges) - 1, weights)
    if native.usable(confidence):
        return BinSums(*native.bin_moments(confidence, correct, edges, even=False)[:3])
    return bin_sums(confidence, correct, edges)
