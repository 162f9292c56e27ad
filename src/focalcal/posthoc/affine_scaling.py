"""Vector, matrix and Dirichlet scaling: affine maps of which each part has a penalty of its own."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from focalcal.core.checks import finite_at_least, warn, whole_number
from focalcal.core.chunks import row_chunks
from focalcal.core.numerics import log_softmax, namespace
from focalcal.posthoc.affine import (
    AffineFit,
    AffineProblem,
    Curvature,
    affine_probs,
    blas_threads,
    centred,
    unit_scaled,
    unit_temperature,
)
from focalcal.posthoc.calibrator import CalibrationWarning, Calibrator
from focalcal.posthoc.storage import Decoder, count, flag, matrix, vector
from focalcal.posthoc.temperature import TemperatureStatus

if TYPE_CHECKING:
    from jaxtyping import Float

    from focalcal.core.arrays import Labels, PerRow, Scores

_LARGEST = 1e307  # weights of the smallest logits
_LOWEST = -1e300  # a log-probability that products with weights leave finite


class AffineScaling(Calibrator):
    """softmax(W z + c), z the centred logits, or log p for Dirichlet calibration; W = a 1 + D + O, a without penalty.

    A part with an infinite strength is zero; without O the diagonal of W alone is searched, and kept.
    """

    _penalty: ClassVar[str]  # the argument that is the strength of the penalty on a part of W
    _rotated: ClassVar[bool] = False  # whether the search has the coordinates of the curvature, or those of W
    bias_l2: float
    max_iter: int
    tol: float

    @abstractmethod
    def _strengths(self, classes: int) -> tuple[float, float, float]:
        """Of the penalties on squares that are summed: of D, of O and of c."""

    def _inputs(self, logits: Scores, weights: PerRow) -> tuple[Scores, float]:
        """What the penalised W is multiplied with, and by what it was divided."""
        return unit_scaled(logits, weights)

    def _check_params(self) -> None:
        for name in (self._penalty, "bias_l2", "tol"):
            value = getattr(self, name)
            if not (isinstance(value, float) and value == math.inf):
                finite_at_least(name, value, 0.0)
        whole_number("max_iter", self.max_iter, least=1, remedy="1000 is plenty")

    def _fit(self, logits: Scores, labels: Labels, weights: PerRow) -> None:
        x, unit = self._inputs(logits, weights)
        classes = x.shape[1]
        on_diagonal, off_diagonal, on_bias = map(float, self._strengths(classes))
        diagonal = off_diagonal == math.inf
        optimum, scale = unit_temperature(x, labels, weights)
        fit = AffineFit(optimum.inverse_temperature / scale, np.zeros((classes, 2 if diagonal else classes + 1)))
        if optimum.status is TemperatureStatus.SEPARABLE:  # larger weights are always better
            _warn(
                f"the weights have no finite optimum: {optimum.status}; fit on rows that the network was not trained on"
            )
            self.n_iter_, self.converged_ = 0, False
        else:
            strengths = np.full(fit.part.shape, off_diagonal * scale**2)  # for weights of inputs times the scale
            strengths[np.arange(classes), 0 if diagonal else np.arange(classes)] = on_diagonal * scale**2
            strengths[:, -1] = on_bias
            with blas_threads(classes):
                fit = self._searched(x * scale, labels, weights, strengths, fit)
        weight = fit.scale + fit.part[:, 0] if diagonal else fit.scale * np.eye(classes) + fit.part[:, :-1]
        self.weight_ = np.clip(weight * (scale / unit), -_LARGEST, _LARGEST)
        self.bias_ = fit.part[:, -1] - fit.part[:, -1].mean()

    def _searched(
        self, inputs: Scores, labels: Labels, weights: PerRow, strengths: Float[np.ndarray, "k m"], start: AffineFit
    ) -> AffineFit:
        """The optimum, never worse than temperature scaling; or a warning, and `converged_` is False."""
        diagonal = strengths.shape[1] == 2 < inputs.shape[1] + 1
        problem = AffineProblem(
            inputs,
            labels,
            weights,
            Curvature(inputs, weights, inputs.shape[1], diagonal=diagonal, rotated=self._rotated),
        )
        fit = problem.fit(strengths, start, tol=self.tol, max_iter=self.max_iter)
        finite = np.where(np.isfinite(strengths), strengths, 0.0)
        values = [problem.value_and_gradient(each.scale, each.part, finite)[0] for each in (fit, start)]
        self.n_iter_, self.converged_ = fit.iterations, fit.gradient <= 100 * self.tol
        if not self.converged_:
            _warn(
                f"the fit stopped after {fit.iterations} iterations with a gradient of {fit.gradient:.2g}; raise "
                "max_iter, or a penalty: classes that are absent or perfectly separated have no finite optimum"
            )
        if not values[0] <= values[1]:
            fit, self.converged_ = start, False
        part = np.where(finite == 0, fit.part, 0.0)  # what no penalty holds back
        weight = fit.scale + part[:, 0] if diagonal else fit.scale * np.eye(len(part)) + part[:, :-1]
        reason = _without_optimum(weight, part[:, -1] if finite[0, -1] == 0 else None, inputs, labels)
        if reason:
            _warn(f"the fit has no finite optimum: {reason}")
            self.converged_ = False
        return fit

    def _arrays(self) -> dict[str, Any]:
        return {"weight": self.weight_, "bias": self.bias_}

    def _map(self, logits: Any, **learnt: Any) -> Any:
        return affine_probs(learnt["weight"], learnt["bias"], centred(logits))


class VectorScaling(AffineScaling):
    """softmax(w * z + c), w and c of K numbers each, minimising the mean negative log-likelihood (Guo et al., 2017).

    z are the logits less their row's mean, so that only what softmax sees of them counts. To the mean loss is added
    spread_l2 * sum_k (u_k - mean u)^2 + bias_l2 * sum_k c_k^2, with u the weights of logits scaled so that the
    median of their rows' root mean squares is one: strengths mean the same whatever the logits' scale. Infinite
    strengths are allowed: spread_l2 = bias_l2 = inf is temperature scaling, where its T is inside its bounds.

    Convex; L-BFGS starts at temperature scaling and is never worse on the fitted rows. Where there is no finite
    optimum (a class that no label names and bias_l2 = 0; labels that the map predicts perfectly) `converged_` is
    False, with a `CalibrationWarning`.

    Attributes: `weight_` (K,), `bias_` (K,) summing to zero, `n_iter_`, `converged_`, `classes_`, `n_features_in_`.

    Args:
        spread_l2: strength of the penalty on differences of the weights.
        bias_l2: strength of that on the bias.
        max_iter: of the search.
        tol: the gradient's size at which it stops.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(2000, 3))
    >>> labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    >>> VectorScaling().fit(2 * logits + [1.0, 0.0, -1.0], labels).bias_.round(1)  # sure of class 0, twice too sure
    array([-0.5,  0. ,  0.5])
    """

    _state: ClassVar[dict[str, Decoder]] = {"weight_": vector, "bias_": vector, "n_iter_": count, "converged_": flag}
    _penalty = "spread_l2"

    def __init__(
        self, spread_l2: float = 0.0, bias_l2: float = 0.0, *, max_iter: int = 1000, tol: float = 1e-8
    ) -> None:
        self.spread_l2 = spread_l2
        self.bias_l2 = bias_l2
        self.max_iter = max_iter
        self.tol = tol

    def _strengths(self, classes: int) -> tuple[float, float, float]:
        return self.spread_l2, math.inf, self.bias_l2  # the scale is free, so that the mean of the diagonal is


class MatrixScaling(AffineScaling):
    """softmax(W z + c), W of K x K numbers, minimising the mean negative log-likelihood (Guo et al., 2017).

    z are the logits less their row's mean. To the mean loss is added
    off_diagonal_l2 * sum_{i != j} U_ij^2 + bias_l2 * sum_k c_k^2, with U the matrix for logits scaled so that the
    median of their rows' root mean squares is one. It is the ODIR penalty of Kull et al. (2019) with sums in place of
    means, at unit scale: a strength means the same for every number of classes and every network. K^2 numbers overfit
    without it. Infinite strengths are allowed: off_diagonal_l2 = inf is vector scaling.

    Convex; L-BFGS starts at temperature scaling and is never worse on the fitted rows. Where there is no finite
    optimum (a class that no label names and bias_l2 = 0; labels that the map predicts perfectly) `converged_` is
    False, with a `CalibrationWarning`.

    Attributes: `weight_` (K, K), `bias_` (K,) summing to zero, `n_iter_`, `converged_`, `classes_`,
    `n_features_in_`.

    Args:
        off_diagonal_l2: strength of the penalty on the off-diagonal numbers.
        bias_l2: strength of that on the bias.
        max_iter: of the search.
        tol: the gradient's size at which it stops.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(2000, 3))
    >>> labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    >>> weight = MatrixScaling().fit(2 * logits, labels).weight_  # twice too confident
    >>> round(float(weight[0, 0] - weight[1, 0]), 1)
    0.5
    """

    _state: ClassVar[dict[str, Decoder]] = {"weight_": matrix, "bias_": vector, "n_iter_": count, "converged_": flag}
    _penalty = "off_diagonal_l2"

    def __init__(
        self, off_diagonal_l2: float = 0.1, bias_l2: float = 0.0, *, max_iter: int = 1000, tol: float = 1e-8
    ) -> None:
        self.off_diagonal_l2 = off_diagonal_l2
        self.bias_l2 = bias_l2
        self.max_iter = max_iter
        self.tol = tol

    def _fit(self, logits: Scores, labels: Labels, weights: PerRow) -> None:
        super()._fit(logits, labels, weights)
        if self.off_diagonal_l2 == math.inf:
            self.weight_ = np.diag(self.weight_)

    def _strengths(self, classes: int) -> tuple[float, float, float]:
        return 0.0, self.off_diagonal_l2, self.bias_l2


class DirichletCalibration(MatrixScaling):
    """softmax(W log p + c), p = softmax(logits), minimising the mean negative log-likelihood (Kull et al., 2019).

    Equivalent to class-conditional Dirichlet densities of p. To the mean loss is added the ODIR penalty as published,
    off_diagonal_l2 / (K (K - 1)) sum_{i != j} W_ij^2 + bias_l2 / K sum_k c_k^2. The authors choose both by
    cross-validation, from 0.01 to 10^7. Unlike matrix scaling it sees log p and not the centred logits: columns of W
    need not have equal sums, so a class can gain from the certainty of the whole row. W = 1, c = 0 is the identity.

    The search, `converged_` and infinite strengths are as in `MatrixScaling`. Attributes: `weight_` (K, K), `bias_`
    (K,) summing to zero, `n_iter_`, `converged_`, `classes_`, `n_features_in_`.

    Args:
        off_diagonal_l2: strength of the penalty on the off-diagonal numbers.
        bias_l2: strength of that on the bias.
        max_iter: of the search.
        tol: the gradient's size at which it stops.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(2000, 3))
    >>> labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    >>> weight = DirichletCalibration().fit(2 * logits, labels).weight_  # twice too confident
    >>> round(float(weight[0, 0] - weight[1, 0]), 1)
    0.5
    """

    _rotated = True  # log-probabilities vary together, and the penalty is weak

    def __init__(
        self, off_diagonal_l2: float = 1.0, bias_l2: float = 1.0, *, max_iter: int = 1000, tol: float = 1e-8
    ) -> None:
        super().__init__(off_diagonal_l2, bias_l2, max_iter=max_iter, tol=tol)

    def _inputs(self, logits: Scores, weights: PerRow) -> tuple[Scores, float]:
        return _log_probs(logits.astype(np.float64)), 1.0

    def _strengths(self, classes: int) -> tuple[float, float, float]:
        return 0.0, self.off_diagonal_l2 / (classes * (classes - 1)), self.bias_l2 / classes

    def _map(self, logits: Any, **learnt: Any) -> Any:
        return affine_probs(learnt["weight"], learnt["bias"], _log_probs(logits))


def _log_probs(logits: Any) -> Any:
    return namespace(logits).clip(log_softmax(logits), _LOWEST, None)


def _without_optimum(
    weight: Float[np.ndarray, "*k k"], bias: Float[np.ndarray, " k"] | None, inputs: Scores, labels: Labels
) -> str:
    """Why some parameters without a penalty are always better when larger, or nothing."""
    absent = np.flatnonzero(np.bincount(labels, minlength=inputs.shape[1]) == 0)
    if len(absent) and bias is not None:
        return f"no label names class {absent[0]} ({len(absent)} such classes); set bias_l2 > 0, or fit on more rows"
    for start, x in row_chunks(inputs):
        at, own = np.arange(len(x)), labels[start : start + len(x)]
        scores = (x * weight if weight.ndim == 1 else x @ weight.T) + (0.0 if bias is None else bias)
        largest = scores[at, own]
        scores[at, own] = -np.inf
        if not (largest > scores.max(1)).all():
            return ""
    return (
        "the fitted map predicts every label, so larger weights are always better; raise a penalty, or fit on more rows"
    )


def _warn(message: str) -> None:
    warn(message, CalibrationWarning)
