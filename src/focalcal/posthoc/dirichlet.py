"""Dirichlet calibration: an affine map of log-probabilities, with off-diagonal and intercept regularisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.numerics import log_softmax, namespace
from focalcal.posthoc.affine import affine_probs
from focalcal.posthoc.matrix import MatrixScaling

if TYPE_CHECKING:
    from jaxtyping import Float

_LOWEST = -1e300  # a log-probability that products with weights leave finite


class DirichletCalibration(MatrixScaling):
    """softmax(W log p + c), p = softmax(logits), minimising the mean negative log-likelihood (Kull et al., 2019).

    Equivalent to class-conditional Dirichlet densities of p. To the mean loss is added the ODIR penalty as published,
    off_diagonal_l2 / (K (K - 1)) sum_{i != j} W_ij^2 + bias_l2 / K sum_k c_k^2. The authors choose both by
    cross-validation, from 0.01 to 10^7. Unlike matrix scaling it sees log p and not the centred logits: columns of W
    need not have equal sums, so a class can gain from the certainty of the whole row. W = 1, c = 0 is the identity.

    The search, `converged_` and infinite strengths are as in `MatrixScaling`. Attributes: `weight_` (K, K), `bias_`
    (K,) summing to zero, `n_iter_`, `converged_`, `classes_`, `n_features_in_`.
    """

    def __init__(
        self, off_diagonal_l2: float = 1.0, bias_l2: float = 1.0, *, max_iter: int = 1000, tol: float = 1e-8
    ) -> None:
        super().__init__(off_diagonal_l2, bias_l2, max_iter=max_iter, tol=tol)

    def _inputs(
        self, logits: Float[np.ndarray, "n k"], weights: Float[np.ndarray, " n"]
    ) -> tuple[Float[np.ndarray, "n k"], float]:
        return _log_probs(logits.astype(np.float64)), 1.0

    def _strengths(self, classes: int) -> tuple[float, float]:
        off_diagonal, bias = super()._strengths(classes)
        return off_diagonal / (classes * (classes - 1)), bias / classes

    def _map(self, logits: Any, **learnt: Any) -> Any:
        return affine_probs(learnt["weight"], learnt["bias"], _log_probs(logits))


def _log_probs(logits: Any) -> Any:
    return namespace(logits).clip(log_softmax(logits), _LOWEST, None)
