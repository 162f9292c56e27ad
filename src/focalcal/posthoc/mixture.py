"""A weighted mean of what several calibrators say, with a uniform part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import expit

from focalcal.core.checks import shown
from focalcal.posthoc.calibrator import Calibrator
from focalcal.posthoc.ensemble import mixture_weights
from focalcal.posthoc.estimator import clone
from focalcal.posthoc.storage import Stored, content_of

if TYPE_CHECKING:
    from os import PathLike

    from jaxtyping import Float, Int

_PRIOR = 3.0  # rows of which only the first calibrator says anything: what others gain must be more than chance
_LITTLE = 1e-3  # the likelihood that others give such a row
_ONE_MORE = 0.1  # the weight of a row of which all but the uniform part say nothing
_LEAST = 0.01  # the weight of a calibrator that is kept
_PRICE = 2.0  # nats, of all rows together, from which a mixture has more than half of the weight


class CalibratorMixture(Calibrator):
    """sum_j w_j p_j + w / K, p_j the probabilities of calibrators, w_j >= 0 their weights, and w what is left of 1.

    `calibrate(..., prefer="best")` finds the weights, of largest likelihood on rows that the calibrators were not
    fitted on: a mean of maps that rows cannot tell apart is better than any of them. `fit` fits clones of them.

    Attributes: `calibrators_`, the fitted ones; `classes_`, `n_features_in_`.

    Args:
        calibrators: unfitted ones, of any kinds.
        weights: one per calibrator, >= 0, at most 1 in total.

    >>> import numpy as np
    >>> from focalcal.posthoc import TemperatureScaling
    >>> halves = CalibratorMixture([TemperatureScaling(1.0), TemperatureScaling(2.0)], [0.5, 0.4])
    >>> logits, labels = np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([0, 1])
    >>> halves.fit(logits, labels).predict_proba(logits)[0].round(4)  # 0.5 * 0.8808 + 0.4 * 0.7311 + 0.1 / 2
    array([0.7828, 0.2172])
    """

    calibrators_: list[Calibrator]

    def __init__(self, calibrators: Sequence[Calibrator], weights: Sequence[float]) -> None:
        self.calibrators = calibrators
        self.weights = weights

    def _check_params(self) -> None:
        given = self.calibrators
        mixable = isinstance(given, Sequence) and all(isinstance(each, Calibrator) for each in given)
        if not mixable or not given or any(isinstance(each, CalibratorMixture) for each in given):
            raise TypeError(f"calibrators must be several such as TemperatureScaling(), got {shown(given)}")
        try:
            weights = np.array(self.weights if isinstance(self.weights, Sequence | np.ndarray) else [], np.float64)
        except (TypeError, ValueError, OverflowError):
            weights = np.zeros(0)
        if weights.shape != (len(given),) or not (weights >= 0).all() or not 0 < weights.sum() <= 1 + 1e-9:
            raise ValueError(
                f"weights must be >= 0, one for each of {len(given)} calibrators, with a sum of at most 1, got "
                f"{shown(self.weights)}; what is left of 1 is uniform"
            )
        for each in given:
            each._check_params()

    def _fit(
        self, logits: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
    ) -> None:
        self.calibrators_ = [clone(each) for each in self.calibrators]
        for each in self.calibrators_:
            each._fit(logits, labels, weights)
            each._set_classes(logits.shape[1], None, one_column=False)

    def _arrays(self) -> dict[str, Any]:
        parts = enumerate(self.calibrators_)
        learnt = {f"{name}_{j}": value for j, each in parts for name, value in each._arrays().items()}
        return learnt | {"weights": np.asarray(self.weights, dtype=np.float64)}

    def _map(self, logits: Any, **learnt: Any) -> Any:
        weights = learnt["weights"]
        mixed = (1 - weights.sum()) / logits.shape[1]
        for j, each in enumerate(self.calibrators_):
            own = {name.removesuffix(f"_{j}"): value for name, value in learnt.items() if name.endswith(f"_{j}")}
            mixed = mixed + weights[j] * each._map(logits, **own)
        return mixed

    def _stored(self) -> Stored:
        self._check_params()
        self._check_fitted()
        state = {"calibrators": [content_of(each._stored()) for each in self.calibrators_], "weights": [*self.weights]}
        return Stored(type(self).__name__, {}, self.n_features_in_, state, self._names, self._one_column, self.clip_)

    @classmethod
    def _restore(cls, stored: Stored, path: str | PathLike[str]) -> Self:
        """Of a file's content; the calibrators inside are restored by the table of calibrators."""
        from focalcal.posthoc import restored_calibrator

        if stored.name != cls.__name__:
            return super()._restore(stored, path)  # which refuses it
        contents = stored.state.get("calibrators")
        if set(stored.state) != {"calibrators", "weights"} or stored.params or not isinstance(contents, list):
            raise ValueError(f"{path} is no valid {cls.__name__}: it must hold calibrators and weights alone")
        inner = [restored_calibrator(content, path) for content in contents]
        if any(getattr(each, "n_features_in_", None) != stored.classes for each in inner):
            raise ValueError(f"{path} is no valid {cls.__name__}: its calibrators must be of {stored.classes} classes")
        params = {"calibrators": inner, "weights": stored.state["weights"]}
        restored = super()._restore(replace(stored, params=params, state={}), path)
        restored.calibrators_ = inner
        return restored


def pooled_weights(
    likelihoods: Float[np.ndarray, "n m"], classes: int, row_weights: Float[np.ndarray, " n"] | None = None
) -> Float[np.ndarray, " m"]:
    """Weights of calibrators, from what they give the label of each row that they were not fitted on; the first leads.

    The mode of the posterior: the likelihood of these rows, of three more for which only the first calibrator has
    more than .001, and of a tenth of one for which only the uniform part has any.
    """
    rows, count = likelihoods.shape
    table = np.full((rows + 2, count + 1), 1 / classes)
    table[:rows, :count], table[rows, :], table[rows + 1, :count] = likelihoods, _LITTLE, 0.0
    table[rows, 0] = 1.0
    counts = np.ones(rows) if row_weights is None else row_weights
    weights = mixture_weights(table, np.r_[counts, _PRIOR, _ONE_MORE])[0][:count]
    return np.where(weights < _LEAST, 0.0, weights)


def share_of_evidence(gains: Float[np.ndarray, " 2"]) -> float:
    """The weight of a mixture beside scores as they are, from nats, of all rows together, that calibration gains.

    1 / (1 + exp(2 - gain)), the posterior of the mixture after prior odds of one to seven. Evidence is what the mixture
    gains on rows that neither its calibrators nor its weights were fitted on or, if that is more, what temperature
    scaling gains on its own rows less the nat that its one number gains by chance: that varies less.
    """
    share = float(expit(max(gains[0], gains[1] - 1) - _PRICE))
    return 0.0 if share < _LEAST else 1.0 if share > 1 - _LEAST else share
