"""Ensemble temperature scaling: a mixture of the scaled, the plain and the uniform prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from focalcal.posthoc.calibrator_inputs import as_float64, map_rows
from focalcal.posthoc.storage import Decoder, mixture
from focalcal.posthoc.temperature import TemperatureScaling

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class EnsembleTemperatureScaling(TemperatureScaling):
    """w_1 softmax(z / T) + w_2 softmax(z) + w_3 / K, the weights w >= 0 summing to one (Zhang et al., 2020).

    T is that of temperature scaling, then w minimises the mean negative log-likelihood, which is convex in w. So it is
    never worse on the fitted rows than temperature scaling, and never changes the predicted class. The uniform part
    bounds every probability below.

    Attributes: `weights_` (3,); `temperature_`, `at_bound_`, `status_`, `n_iter_` as in `TemperatureScaling`.
    """

    _state: ClassVar[dict[str, Decoder]] = {**TemperatureScaling._state, "weights_": mixture}
    _takes_masked: ClassVar[bool] = False  # the uniform component would make an impossible class possible
    weights_: Any

    def _fit(self, logits: Float[Tensor, "n k"], labels: Int[Tensor, " n"], weights: Float[Tensor, " n"]) -> None:
        super()._fit(logits, labels, weights)
        own, like = labels.unsqueeze(1), logits[:0].double()
        temperature = torch.tensor(self.temperature_, dtype=torch.float64, device=logits.device)
        scaled = map_rows(logits, lambda rows: TemperatureScaling._map(self, rows, temperature=temperature), like=like)
        plain = map_rows(logits, lambda rows: rows.softmax(1), like=like)
        likelihoods = [as_float64(component.gather(1, own)) for component in (scaled, plain)]
        likelihoods.append(np.full((len(logits), 1), 1 / logits.shape[1]))
        self.weights_ = mixture_weights(np.hstack(likelihoods), as_float64(weights))

    def _tensors(self) -> dict[str, Tensor]:
        return super()._tensors() | {"weights": torch.as_tensor(self.weights_)}

    def _map(self, logits: Float[Tensor, "n k"], **tensors: Tensor) -> Float[Tensor, "n k"]:
        scaled, plain, uniform = tensors["weights"].unbind()
        return scaled * super()._map(logits, **tensors) + plain * logits.softmax(1) + uniform / logits.shape[1]


def mixture_weights(
    likelihoods: Float[np.ndarray, "n m"], row_weights: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " m"]:
    """argmin over the simplex of -mean_i log(sum_j w_j l_ij), l (n, m) >= 0; no worse than one component alone."""
    share = row_weights / row_weights.sum()

    def loss(weights: Any) -> tuple[float, Any]:
        mixed = likelihoods @ weights
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(-share @ np.log(mixed)), -share @ (likelihoods / mixed[:, None])

    components = likelihoods.shape[1]
    sums_to_one = {"type": "eq", "fun": lambda weights: weights.sum() - 1, "jac": np.ones_like}
    start = np.full(components, 1 / components)
    options = {"ftol": 1e-14, "maxiter": 200}
    search = minimize(
        loss, start, jac=True, method="SLSQP", bounds=[(0, 1)] * components, constraints=sums_to_one, options=options
    )
    weights = search.x.clip(min=0)
    return min((weights / weights.sum(), *np.eye(components)), key=lambda candidate: loss(candidate)[0])
