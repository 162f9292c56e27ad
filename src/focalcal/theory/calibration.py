"""Calibration of a predictor over a discrete X: expectations over its states, and no sampling.

`probs` (N, K), `eta` (N, K), `weights` (N,), `displacement` (N, K) and `tolerance` are those of `theory.population`,
and so are the confidence S, the predicted class yhat and Z = 1[Y = yhat].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.arrays import as_array
from focalcal.core.binning import bin_index, equal_width_edges
from focalcal.core.checks import shown, whole_number
from focalcal.theory.bounds import interior_constant, simplex_bound, slope_bound
from focalcal.theory.population import SAME_CONFIDENCE, TopLabel, confidence_groups, mean, state_rows, top_label
from focalcal.theory.posteriors import above_zero, as_float64, at_least_zero, distributions, one_number, state_weights
from focalcal.theory.potential import focal_potential

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class CalibrationChain:
    """cal2 <= confidence_error <= posterior_error, up to rounding: all three squared errors, the first Cal2^2.

    Attributes:
        cal2: E[(S - E[Z | S])^2], see `exact_cal2`.
        confidence_error: E(S - eta_yhat)^2.
        posterior_error: E|p - eta|_2^2.
        tight: eta_yhat is a function of S, constant in each group up to the tolerance, so that the first two are equal.

    >>> calibration_chain([[0.75, 0.25]], [[0.5, 0.5]])
    CalibrationChain(cal2=0.0625, confidence_error=0.0625, posterior_error=0.125, tight=True)
    """

    cal2: float
    confidence_error: float
    posterior_error: float
    tight: bool


@dataclass(frozen=True)
class EceChain:
    """ece <= confidence_distance <= posterior_distance, up to rounding: none of them squared.

    Attributes:
        ece: the population's binned error, see `population_ece`.
        confidence_distance: E|eta_yhat - S|.
        posterior_distance: E|p - eta|_2.

    >>> ece_chain([[0.75, 0.25], [0.75, 0.25]], [[0.5, 0.5], [1.0, 0.0]]).confidence_distance
    0.25
    """

    ece: float
    confidence_distance: float
    posterior_distance: float


@dataclass(frozen=True)
class ScoreDecomposition:
    """brier = calibration + refinement: E(Z - S)^2, Cal2^2 and E[E[Z|S] (1 - E[Z|S])].

    Attributes:
        brier: E(Z - S)^2, of the confidence.
        calibration: Cal2^2, what a map of the confidence can remove.
        refinement: E[E[Z|S] (1 - E[Z|S])], what it cannot.

    >>> murphy_population([[0.75, 0.25]], [[0.5, 0.5]])
    ScoreDecomposition(brier=0.3125, calibration=0.0625, refinement=0.25)
    """

    brier: float
    calibration: float
    refinement: float


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """kappa*(s) = E[Z | S = s], a step per group of states of equal confidence.

    Attributes:
        confidence: (G,), the smallest of each group, ascending.
        accuracy: (G,), E[Z | S].
        weight: (G,), P(S).

    >>> best_score_map([[0.75, 0.25], [0.875, 0.125]], [[0.5, 0.5], [0.75, 0.25]])([0.75, 0.875])
    array([0.5 , 0.75])
    """

    confidence: Float[np.ndarray, " groups"]
    accuracy: Float[np.ndarray, " groups"]
    weight: Float[np.ndarray, " groups"]

    def __call__(self, confidence: Any) -> Float[np.ndarray, "*b"]:
        """The map at confidences of any shape; between those that occur, the value of the next lower one."""
        at = as_float64("confidence", confidence)
        if np.isnan(at).any():
            raise ValueError("confidence must be numbers, got nan; find out where it comes from")
        group = np.searchsorted(self.confidence, at, side="right") - 1
        return self.accuracy[np.maximum(group, 0)]


@dataclass(frozen=True)
class CalibrationBounds:
    """Upper bounds of Cal2^2 at the pointwise minimiser of FCL's risk.

    potential <= log_classes of rate 1/lam, slope <= simplex of rate 1/lam^2, and the paper's interior of that rate.

    Attributes:
        potential: E[Phi(eta)] / lam.
        log_classes: log K / lam.
        slope: E|psi_bar - psi(eta)|_2^2 / (4 lam^2).
        simplex: B^2 / (4 lam^2), whatever the posteriors are.
        interior: 4 A^2 K / lam^2, or inf, promising nothing, while lam < interior_from.
        interior_from: 4 log K / eps^2, inf if some eta_k is 0.

    >>> bounds = calibration_bounds([[0.7, 0.2, 0.1]], gamma=2.0, lam=10.0)
    >>> bounds.slope <= bounds.simplex, bounds.interior, round(bounds.interior_from, 1)
    (True, inf, 439.4)
    """

    potential: float
    log_classes: float
    slope: float
    simplex: float
    interior: float
    interior_from: float


def exact_cal2(
    probs: Any, eta: Any, weights: Any = None, *, tolerance: float = SAME_CONFIDENCE, displacement: Any = None
) -> float:
    """Cal2^2 = E[(S - E[Z | S])^2]: squared, and without bins.

    Each group adds its probability times the squared mean of S - eta_yhat, so that no large numbers are subtracted.

    Args:
        probs: (N, K), the predictions in N states.
        eta: (N, K), their posteriors.
        weights: (N,), the states' probabilities, None for equal ones.
        tolerance: states whose confidences are within it are one group.
        displacement: (N, K), probs - eta, where it is known to more digits than the difference has.

    Returns:
        Cal2^2, at least 0.

    >>> exact_cal2([[0.75, 0.25]], [[0.5, 0.5]])
    0.0625
    """
    top = top_label(probs, eta, weights, displacement)
    return _cal2(top, confidence_groups(top, tolerance))


def calibration_chain(
    probs: Any, eta: Any, weights: Any = None, *, tolerance: float = SAME_CONFIDENCE, displacement: Any = None
) -> CalibrationChain:
    """Cal2^2 <= E(S - eta_yhat)^2 <= E|p - eta|_2^2 for any predictor. The paper, Proposition 5.7.

    Args:
        probs: (N, K), the predictions in N states.
        eta: (N, K), their posteriors.
        weights: (N,), the states' probabilities, None for equal ones.
        tolerance: states whose confidences are within it are one group.
        displacement: (N, K), probs - eta, where it is known to more digits than the difference has.

    Returns:
        The three, and whether the first two are equal.

    >>> calibration_chain([[0.75, 0.25], [0.75, 0.25]], [[0.5, 0.5], [1.0, 0.0]])  # errors that cancel within a group
    CalibrationChain(cal2=0.0, confidence_error=0.0625, posterior_error=0.125, tight=False)
    """
    top = top_label(probs, eta, weights, displacement)
    groups = confidence_groups(top, tolerance)
    tight = all(bool(np.ptp(top.accuracy[group]) <= tolerance) for group in groups)
    posterior = mean(top.weight, (top.displacement**2).sum(1))
    return CalibrationChain(_cal2(top, groups), mean(top.weight, top.gap**2), posterior, tight)


def population_ece(
    probs: Any, eta: Any, weights: Any = None, *, n_bins: int = 15, edges: Any = None, displacement: Any = None
) -> float:
    """sum_m P(S in B_m) |E[Z | S in B_m] - E[S | S in B_m]|, which `focalcal.metrics.ece` estimates from a sample.

    The bins are (lo, hi] with edges k / `n_bins`, the first closed; or between `edges`, ascending, where what lies
    outside them goes to the nearest bin.

    Args:
        probs: (N, K), the predictions in N states.
        eta: (N, K), their posteriors.
        weights: (N,), the states' probabilities, None for equal ones.
        n_bins: of equal width.
        edges: (M + 1,), in their place.
        displacement: (N, K), probs - eta, where it is known to more digits than the difference has.

    Returns:
        The ECE, in [0, 1].

    >>> population_ece([[0.75, 0.25], [0.75, 0.25]], [[0.5, 0.5], [1.0, 0.0]])  # one bin, where errors cancel
    0.0
    """
    return ece_chain(probs, eta, weights, n_bins=n_bins, edges=edges, displacement=displacement).ece


def ece_chain(
    probs: Any, eta: Any, weights: Any = None, *, n_bins: int = 15, edges: Any = None, displacement: Any = None
) -> EceChain:
    """ECE_pop <= E|eta_yhat - S| <= E|p - eta|_2 for any bins, as in `population_ece`. The paper, Lemma 5.9.

    Args:
        probs: (N, K), the predictions in N states.
        eta: (N, K), their posteriors.
        weights: (N,), the states' probabilities, None for equal ones.
        n_bins: of equal width.
        edges: (M + 1,), in their place.
        displacement: (N, K), probs - eta, where it is known to more digits than the difference has.

    Returns:
        The three.

    >>> chain = ece_chain([[0.75, 0.25]], [[0.5, 0.5]])
    >>> chain.ece, chain.confidence_distance, round(chain.posterior_distance, 4)
    (0.25, 0.25, 0.3536)
    """
    top = top_label(probs, eta, weights, displacement)
    index = bin_index(top.confidence, _bin_edges(n_bins, edges))
    ece = math.fsum(abs(math.fsum((top.weight * top.gap)[index == m])) for m in np.unique(index))
    posterior = mean(top.weight, np.linalg.norm(top.displacement, axis=1))
    return EceChain(ece, mean(top.weight, np.abs(top.gap)), posterior)


def murphy_population(
    probs: Any, eta: Any, weights: Any = None, *, tolerance: float = SAME_CONFIDENCE, displacement: Any = None
) -> ScoreDecomposition:
    """E(Z - S)^2 = Cal2^2 + E[E[Z|S] (1 - E[Z|S])]. Murphy (1973); DeGroot & Fienberg (1983).

    `focalcal.metrics.murphy` is the same of a sample, over bins.

    Args:
        probs: (N, K), the predictions in N states.
        eta: (N, K), their posteriors.
        weights: (N,), the states' probabilities, None for equal ones.
        tolerance: states whose confidences are within it are one group.
        displacement: (N, K), probs - eta, where it is known to more digits than the difference has.

    Returns:
        The Brier score of the confidence and its two parts.

    >>> murphy_population([[0.75, 0.25]], [[0.75, 0.25]]).calibration  # calibrated: all is refinement
    0.0
    """
    top = top_label(probs, eta, weights, displacement)
    groups = confidence_groups(top, tolerance)
    brier = mean(top.weight, top.accuracy * (1 - top.confidence) ** 2 + (1 - top.accuracy) * top.confidence**2)
    best = _score_map(top, groups)
    return ScoreDecomposition(brier, _cal2(top, groups), mean(best.weight, best.accuracy * (1 - best.accuracy)))


def posthoc_headroom(
    probs: Any, eta: Any, weights: Any = None, *, tolerance: float = SAME_CONFIDENCE, displacement: Any = None
) -> float:
    """E(Z - S)^2 - min over kappa of E(Z - kappa(S))^2, what a map of the score alone can gain: it is Cal2^2.

    The paper, Fact 5.10. Temperature scaling of several classes is no such map: it reads all the logits.

    Args:
        probs: (N, K), the predictions in N states.
        eta: (N, K), their posteriors.
        weights: (N,), the states' probabilities, None for equal ones.
        tolerance: states whose confidences are within it are one group.
        displacement: (N, K), probs - eta, where it is known to more digits than the difference has.

    Returns:
        The gain in the Brier score of the confidence.

    >>> posthoc_headroom([[0.75, 0.25], [1.0, 0.0]], [[0.5, 0.5], [1.0, 0.0]])
    0.03125
    """
    return exact_cal2(probs, eta, weights, tolerance=tolerance, displacement=displacement)


def best_score_map(
    probs: Any, eta: Any, weights: Any = None, *, tolerance: float = SAME_CONFIDENCE, displacement: Any = None
) -> ScoreMap:
    """kappa*(s) = E[Z | S = s], the map of the score that attains the headroom.

    Args:
        probs: (N, K), the predictions in N states.
        eta: (N, K), their posteriors.
        weights: (N,), the states' probabilities, None for equal ones.
        tolerance: states whose confidences are within it are one group.
        displacement: checked, as the other functions of a population do, and not needed.

    Returns:
        The map, to be called with confidences.

    >>> best_score_map([[0.75, 0.25], [0.75, 0.25]], [[0.5, 0.5], [1.0, 0.0]]).accuracy
    array([0.75])
    """
    top = top_label(probs, eta, weights, displacement)
    return _score_map(top, confidence_groups(top, tolerance))


def expected_brier(probs: Any, eta: Any, weights: Any = None, *, displacement: Any = None) -> float:
    """E|p - e_Y|^2 = E|p - eta|^2 + E[1 - |eta|^2], the anchor's population risk: its minimiser is p = eta.

    Args:
        probs: (N, K), the predictions in N states.
        eta: (N, K), their posteriors.
        weights: (N,), the states' probabilities, None for equal ones.
        displacement: (N, K), probs - eta, where it is known to more digits than the difference has.

    Returns:
        The expected score over all classes, in [0, 2].

    >>> expected_brier([[0.75, 0.25]], [[0.5, 0.5]]), expected_brier([[0.5, 0.5]], [[0.5, 0.5]])
    (0.625, 0.5)
    """
    top = top_label(probs, eta, weights, displacement)
    return mean(top.weight, (top.displacement**2 + top.eta * (1 - top.eta)).sum(1))


def calibration_bounds(eta: Any, weights: Any = None, *, gamma: float, lam: float) -> CalibrationBounds:
    """Cal2^2 <= E[Phi(eta)] / lam <= log K / lam, and <= 4 A^2 K / lam^2 for lam >= 4 log K / eps^2.

    For the predictor that attains FCL's conditional risk minimiser in every state; A = 1 + gamma max(1, 2^(1 - gamma))
    and eps is the smallest eta_k of a state that occurs. The paper, Corollary 5.8. Not in the paper, for every lam > 0
    and every posterior (docs/math/sharp_bounds.md): Cal2^2 <= E|psi_bar - psi(eta)|_2^2 / (4 lam^2) <= B^2 / (4 lam^2).

    Args:
        eta: (N, K), the posteriors of N states.
        weights: (N,), the states' probabilities, None for equal ones.
        gamma: >= 0.
        lam: > 0.

    Returns:
        Six numbers, four of them bounds at every lam.

    >>> round(calibration_bounds([[0.7, 0.2, 0.1]], gamma=2.0, lam=10.0).slope, 5)  # Cal2^2 is 0.00068
    0.00151
    """
    strength = one_number("lam", above_zero("lam", lam))
    focusing = one_number("gamma", at_least_zero("gamma", gamma))
    posterior = state_rows("eta", distributions("eta", eta))
    weight = state_weights(weights, len(posterior))
    classes = posterior.shape[1]
    eps = float(posterior[weight > 0].min())
    a = float(interior_constant(focusing))
    start = 4 * math.log(classes) / eps / eps if eps > 0 else math.inf
    with np.errstate(over="ignore"):
        slopes = np.square(slope_bound(posterior, gamma=focusing, lam=strength))
        simplex = float(np.square(simplex_bound(gamma=focusing, lam=strength)))
    return CalibrationBounds(
        potential=mean(weight, focal_potential(posterior, gamma=focusing)) / strength,
        log_classes=math.log(classes) / strength,
        slope=mean(weight, slopes),
        simplex=simplex,
        interior=4 * a * a * classes / strength / strength if strength >= start else math.inf,
        interior_from=start,
    )


def _cal2(top: TopLabel, groups: list[np.ndarray]) -> float:
    def part(group: np.ndarray) -> float:
        share = math.fsum(top.weight[group])
        return share * (mean(top.weight[group], top.gap[group]) / share) ** 2

    return math.fsum(map(part, groups))


def _score_map(top: TopLabel, groups: list[np.ndarray]) -> ScoreMap:
    share = np.array([math.fsum(top.weight[group]) for group in groups])
    right = np.array([mean(top.weight[group], top.accuracy[group]) for group in groups])
    # The weights' rounding can take the mean of ones past one.
    return ScoreMap(top.confidence[[group[0] for group in groups]], np.minimum(right / share, 1.0), share)


def _bin_edges(n_bins: int, edges: Any) -> Float[np.ndarray, " bins+1"]:
    if edges is None:
        return equal_width_edges(whole_number("n_bins", n_bins, least=1, most=1_000_000, remedy="15 is usual"))
    given: np.ndarray = as_array("edges", edges).astype(np.float64)
    if given.ndim != 1 or len(given) < 2 or not (np.diff(given) >= 0).all():
        raise ValueError(f"edges must be two or more ascending numbers, got {shown(given.tolist())}; sort them")
    return given
