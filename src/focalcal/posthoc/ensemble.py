"""Ensemble temperature scaling: a mixture of the scaled, the plain and the uniform prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from focalcal.core.checks import warn
from focalcal.core.chunks import row_chunks
from focalcal.core.numerics import softmax
from focalcal.posthoc.calibrator import CalibrationWarning
from focalcal.posthoc.storage import Decoder, mixture
from focalcal.posthoc.temperature import TemperatureScaling

if TYPE_CHECKING:
    from jaxtyping import Float

    from focalcal.core.arrays import Labels, PerRow, Scores


GAP = 1e-9  # nats by which fitted mixture weights may miss the optimum
_MOST_STEPS = 200  # 7 to 20 were needed on thousands of tables, made ones among them


class EnsembleTemperatureScaling(TemperatureScaling):
    """w_1 softmax(z / T) + w_2 softmax(z) + w_3 / K, the weights w >= 0 summing to one (Zhang et al., 2020).

    T is that of temperature scaling, then w minimises the mean negative log-likelihood, which is convex in w, to a
    duality gap of 1e-9. So it is never worse on the fitted rows than temperature scaling, and never changes the
    predicted class. The uniform part bounds every probability below.

    Attributes: `weights_` (3,); `temperature_`, `at_bound_`, `status_`, `n_iter_` as in `TemperatureScaling`; a
    mixture whose gap stayed above 1e-9 is a `CalibrationWarning`, and `status_` says so.

    Args:
        temperature: as in `TemperatureScaling`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(2000, 3))
    >>> labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    >>> labels[:200] = rng.integers(3, size=200)  # a tenth is noise
    >>> EnsembleTemperatureScaling().fit(3 * logits, labels).weights_.round(2)  # the last is of 1 / K
    array([0.8 , 0.12, 0.08])
    """

    _state: ClassVar[dict[str, Decoder]] = {**TemperatureScaling._state, "weights_": mixture}
    _takes_masked: ClassVar[bool] = False  # the uniform component would make an impossible class possible

    def _fit(self, logits: Scores, labels: Labels, weights: PerRow) -> None:
        super()._fit(logits, labels, weights)
        likelihoods = np.full((len(logits), 3), 1 / logits.shape[1])
        for start, rows in row_chunks(logits):
            part, at = slice(start, start + len(rows)), np.arange(len(rows))
            z = rows.astype(np.float64)
            scaled = TemperatureScaling._map(self, z, temperature=self.temperature_)
            likelihoods[part, 0] = scaled[at, labels[part]]
            likelihoods[part, 1] = softmax(z)[at, labels[part]]
        self.weights_, gap = mixture_weights(likelihoods, weights)
        if gap > GAP:
            self.status_ = f"the mixture's duality gap is {gap:.1e}, not below {GAP:g}"
            warn(f"ensemble weights are not optimal: {self.status_}", CalibrationWarning)

    def _arrays(self) -> dict[str, Any]:
        return super()._arrays() | {"weights": self.weights_}

    def _map(self, logits: Any, **learnt: Any) -> Any:
        weights = learnt["weights"]
        return weights[0] * super()._map(logits, **learnt) + weights[1] * softmax(logits) + weights[2] / logits.shape[1]


def mixture_weights(
    likelihoods: Float[np.ndarray, "n m"], row_weights: PerRow, start: Float[np.ndarray, " m"] | None = None
) -> tuple[Float[np.ndarray, " m"], float]:
    """argmin over the simplex of f(w) = -mean_i log(sum_j w_j l_ij), and its duality gap.

    `likelihoods` (n, m) >= 0, in every row one of them positive; the mean has the weights `row_weights` (n,). At w,
    component j has the pull s_j = mean_i l_ij / sum_m w_m l_im. f is convex and sum_j w_j s_j = 1, so that
    f(w) - min f <= log max_j s_j: the gap max_j s_j - 1 bounds how far w is from the optimum, and stops the search at
    1e-9, however badly scaled the rows are.

    >>> weights, gap = mixture_weights(np.array([[0.9, 0.5], [0.1, 0.5], [0.9, 0.5]]), np.ones(3))
    >>> weights.round(6), gap < 1e-9
    (array([0.416667, 0.583333]), True)
    """
    share = row_weights / row_weights.sum()
    weights = np.full(likelihoods.shape[1], 1 / likelihoods.shape[1])
    if start is not None:
        weights = 0.99 * start + 0.01 * weights  # away from the boundary, which steps approach and never leave
    for _ in range(_MOST_STEPS):
        ratios = likelihoods / (likelihoods @ weights)[:, None]
        pulls = share @ ratios
        target = _newton_target(ratios, pulls, share)
        if (gap := float(pulls.max()) - 1) <= GAP:
            # The full step has exact zeros, where the search only came near to them.
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                exact = target / target.sum()
                its_gap = float((share @ (likelihoods / (likelihoods @ exact)[:, None])).max()) - 1
            return (exact, its_gap) if its_gap <= gap else (weights, gap)
        # Towards the boundary by a factor of ten at most: rows that one component alone explains are flat until there.
        step = np.maximum(target, weights / 10) - weights
        slope = (pulls - 1) @ step
        value = share @ np.log(likelihoods @ weights)
        for fraction in 0.5 ** np.arange(30):
            candidate = weights + fraction * step
            candidate = candidate / candidate.sum()
            if share @ np.log(likelihoods @ candidate) > value + fraction * slope / 4:
                break
        else:
            candidate = weights * pulls  # the step of EM, which never loses
        weights = candidate
    return weights, gap


def _newton_target(
    ratios: Float[np.ndarray, "n m"], pulls: Float[np.ndarray, " m"], share: PerRow
) -> Float[np.ndarray, " m"]:
    """argmin over v >= 0 of the second-order model of f(v) + sum v, which has the minimiser of f on the simplex.

    With the Hessian H at w and H w = s that is v'Hv / 2 - (2 s - 1)'v, as least squares with a root of H.
    """
    # Components differ by orders of magnitude where rows are badly predicted: the model is solved in units of each.
    top = ratios.max(0)
    top[top < 1e-100] = np.inf  # explains no row
    columns = np.sqrt(share)[:, None] * ratios / top
    norms = np.sqrt((columns**2).sum(0)).clip(min=1e-100)
    columns /= norms
    root = np.linalg.cholesky(columns.T @ columns + 1e-11 * np.eye(len(top)))  # two components may be the same
    size = np.where(np.isfinite(top), norms * top, 1)
    target, _ = nnls(root.T, solve_triangular(root, (2 * pulls - 1) / size, lower=True))
    return np.asarray(target / size)
