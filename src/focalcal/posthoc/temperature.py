"""Temperature scaling: one number for all logits."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from focalcal.core.checks import finite_at_least
from focalcal.core.chunks import row_chunks
from focalcal.core.numerics import namespace, softmax
from focalcal.posthoc.calibrator import CalibrationWarning, Calibrator
from focalcal.posthoc.newton_temperature import (
    HIGHEST_TEMPERATURE,
    TemperatureStatus,
    at_bound,
    optimal_inverse_temperature,
)
from focalcal.posthoc.storage import Decoder, count, positive, word

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class TemperatureScaling(Calibrator):
    """softmax(logits / T), T > 0 minimising the mean negative log-likelihood (Guo et al., 2017).

    Never changes the predicted class. The minimum is found exactly (relative error below 1e-9) by Newton-like steps
    on 1/T, in which the loss is convex. T is kept in [1e-3, 1e3]: labels that the logits predict perfectly, or worse
    than chance, have no finite optimum; a bound is taken with a `CalibrationWarning`, and `at_bound_` is True. It is
    used to predict: at 1e-3 rows are nearly one-hot, so that a single wrong one makes the NLL infinite, at 1e3 nearly
    uniform. Such a T belongs in no mean of temperatures, nor the metrics after it in a mean of metrics. A logit of -inf
    is an impossible class, and stays one; no label may be such.

    Attributes: `temperature_`; `at_bound_`; `status_`, "converged", "given" or what stood in the way; `n_iter_`,
    passes over all rows; `classes_`, `n_features_in_`.

    Args:
        temperature: a T that is known already: nothing is learnt, and `predict_proba` needs no `fit`.

    >>> import numpy as np
    >>> logits = np.array([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 0.0]])
    >>> scaling = TemperatureScaling().fit(logits, np.array([0, 0, 1, 1]))  # confidence 0.88, accuracy 0.75
    >>> round(scaling.temperature_, 6)
    1.820478
    >>> scaling.predict_proba(logits)[0].round(6)
    array([0.75, 0.25])
    >>> TemperatureScaling(temperature=2.0).predict_proba(logits)[0].round(6)
    array([0.731059, 0.268941])
    """

    _state: ClassVar[dict[str, Decoder]] = {"temperature_": positive, "status_": word, "n_iter_": count}
    _takes_masked: ClassVar[bool] = True
    temperature_: float
    status_: str
    n_iter_: int

    def __init__(self, temperature: float | None = None) -> None:
        self.temperature = temperature

    def _check_params(self) -> None:
        value = self.temperature
        if value is not None and finite_at_least("temperature", value, 0.0) == 0:
            raise ValueError(f"temperature must be above 0, got {value!r}; leave it out to have it fitted")

    def _needs_fit(self) -> bool:
        return self.temperature is None

    def _fit(
        self, logits: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
    ) -> None:
        if self.temperature is not None:
            self.temperature_, self.status_, self.n_iter_ = float(self.temperature), "given", 0
            return
        optimum = optimal_inverse_temperature(_finite(logits, labels), labels, weights)
        self.temperature_ = 1 / optimum.inverse_temperature
        self.status_ = str(optimum.status)
        self.n_iter_ = optimum.passes
        if optimum.status is not TemperatureStatus.CONVERGED:
            bound = "no finite optimum, since " * self.at_bound_
            warnings.warn(
                f"temperature set to {self.temperature_:g}: {bound}{optimum.status}; "
                "check the labels, and fit on rows that the network was not trained on",
                CalibrationWarning,
                stacklevel=3,
            )

    @property
    def at_bound_(self) -> bool:
        """Whether T is a bound, since the fitted rows have no finite optimum."""
        return self.temperature is None and at_bound(self.temperature_)

    def _arrays(self) -> dict[str, Any]:
        return {"temperature": self.temperature_ if self.temperature is None else float(self.temperature)}

    def _map(self, logits: Any, **learnt: Any) -> Any:
        xp = namespace(logits)
        return softmax((logits - xp.max(logits, axis=1, keepdims=True)) / learnt["temperature"])


def _finite(logits: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n k"]:
    """Impossible classes so far below the others that they weigh exactly 0 in float64 at every temperature."""
    if not any(rows.min() == -np.inf for _, rows in row_chunks(logits)):
        return logits
    impossible = logits == -np.inf
    own = impossible[np.arange(len(labels)), labels]
    if own.any():
        at = int(own.argmax())
        raise ValueError(
            f"labels must be possible, got class {int(labels[at])} in row {at}, whose logit is -inf; "
            "leave the row out, or do not mask its class"
        )
    wide = logits.astype(np.promote_types(logits.dtype, np.float32), copy=False)
    return np.where(impossible, wide.max(1, keepdims=True) - 1000 * HIGHEST_TEMPERATURE, wide)
