"""A weighted mean of what calibrators say, with a uniform part, so that no wrong row costs an infinite likelihood."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from focalcal.core.checks import shown
from focalcal.core.chunks import row_chunks
from focalcal.posthoc.calibrator import CalibrationWarning, Calibrator
from focalcal.posthoc.cross_fit import FOLDS, stratified_folds
from focalcal.posthoc.ensemble import mixture_weights
from focalcal.posthoc.estimator import clone
from focalcal.posthoc.storage import Decoder, share
from focalcal.posthoc.storage import calibrator as stored_calibrator
from focalcal.posthoc.storage import calibrators as stored_calibrators

if TYPE_CHECKING:
    from jaxtyping import Float

    from focalcal.core.arrays import Labels, PerRow, Scores

_PRIOR = 3.0  # rows of which only the first calibrator says anything: what others gain must be more than chance
_LITTLE = 1e-3  # the likelihood that others give such a row
_ONE_MORE = 0.1  # the weight of a row of which all but the uniform part say nothing
_LEAST = 0.01  # the weight of a calibrator that is kept
_PRICE = 2.0  # nats, of all rows together, from which a mixture has more than half of the weight


class WithUniform(Calibrator):
    """(1 - w) p + w / K, p the probabilities of another calibrator, 0 < w <= 1.

    w has the largest likelihood of rows that p was not fitted on (five folds) and of a tenth of a row more, of which p
    says nothing, so that w is at least .1 / (n + .1). The calibrator itself is fitted on all rows; the one that is
    passed is not changed. Maps that can give an exact zero (isotonic, histogram, spline) need it for a finite negative
    log-likelihood. The order of a row's classes stays.

    Attributes: `calibrator_`, the fitted one; `uniform_`, w; `classes_`, `n_features_in_`.

    Args:
        calibrator: unfitted; a clone of it is fitted.

    >>> import numpy as np
    >>> from focalcal.posthoc import HistogramBinning
    >>> rng = np.random.default_rng(0)
    >>> logits = 3 * rng.normal(size=(500, 4))
    >>> labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    >>> bool(HistogramBinning().fit(logits, labels).predict_proba(logits).min() > 0)
    False
    >>> mixed = WithUniform(HistogramBinning()).fit(logits, labels)
    >>> bool(mixed.predict_proba(logits).min() >= mixed.uniform_ / 4 > 0)
    True
    """

    calibrator_: Calibrator
    uniform_: float
    _state: ClassVar[dict[str, Decoder]] = {"calibrator_": stored_calibrator, "uniform_": share}

    def __init__(self, calibrator: Calibrator) -> None:
        self.calibrator = calibrator

    def _check_params(self) -> None:
        if not isinstance(self.calibrator, Calibrator) or isinstance(self.calibrator, WithUniform):
            raise TypeError(f"calibrator must be one such as IsotonicCalibration(), got {shown(self.calibrator)}")
        self.calibrator._check_params()

    def _fit(self, logits: Scores, labels: Labels, weights: PerRow) -> None:
        self.calibrator_ = clone(self.calibrator)
        self.calibrator_._fit(logits, labels, weights)
        self.calibrator_._set_classes(logits.shape[1], None, one_column=False)
        self.uniform_ = cross_fitted_uniform_part(self.calibrator, logits, labels, weights)

    def _arrays(self) -> dict[str, Any]:
        return self.calibrator_._arrays() | {"uniform_part": np.float64(self.uniform_)}

    def _map(self, logits: Any, **learnt: Any) -> Any:
        uniform = learnt.pop("uniform_part")
        return (1 - uniform) * self.calibrator_._map(logits, **learnt) + uniform / logits.shape[1]

    def _to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return {}, {"calibrator_": self.calibrator_, "uniform_": self.uniform_}

    @classmethod
    def _from_file(cls, params: Mapping[str, Any], state: Mapping[str, Any]) -> Self:
        made = cls(clone(state["calibrator_"]))
        made.calibrator_, made.uniform_ = state["calibrator_"], state["uniform_"]
        return made


def uniform_part(own: PerRow, weights: PerRow, classes: int) -> float:
    """w > 0 with the largest likelihood of rows whose label has probability `own` (n,), and of a tenth of a row more.

    That row has p_y = 0, so that w is at least .1 / (n + .1).

    >>> round(uniform_part(np.array([0.9, 0.8, 0.9, 0.0]), np.ones(4), 2), 3)
    0.635
    """
    likelihoods = np.full((len(own) + 1, 2), 1 / classes)
    likelihoods[:, 0] = np.append(own, 0.0)
    return float(mixture_weights(likelihoods, np.append(weights, _ONE_MORE))[0][1])


def cross_fitted_uniform_part(calibrator: Calibrator, logits: Scores, labels: Labels, weights: PerRow) -> float:
    """`uniform_part` of rows that clones of the calibrator were not fitted on; a fold that leaves one class is skipped.

    Without any such fold it is that of one more row alone.
    """
    logits, labels, weights, fold = stratified_folds(logits, labels, weights, FOLDS)
    own, judged = np.ones(len(labels)), weights > 0
    for at in range(fold.max() + 1):
        held = fold == at
        if len(np.unique(labels[~held])) < 2:
            judged[held] = False
            continue
        fresh = clone(calibrator)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            fresh._fit(logits[~held], labels[~held], weights[~held])
        for start, rows in row_chunks(logits[held]):
            places = np.flatnonzero(held)[start : start + len(rows)]
            own[places] = fresh._probs(rows.astype(np.float64))[np.arange(len(rows)), labels[places]]
    return uniform_part(own[judged], weights[judged], logits.shape[1])


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
    _state: ClassVar[dict[str, Decoder]] = {"calibrators": stored_calibrators, "weights": lambda *given: given[1]}

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

    def _fit(self, logits: Scores, labels: Labels, weights: PerRow) -> None:
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

    def _to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return {}, {"calibrators": self.calibrators_, "weights": [*self.weights]}

    @classmethod
    def _from_file(cls, params: Mapping[str, Any], state: Mapping[str, Any]) -> Self:
        made = cls(state["calibrators"], state["weights"])
        made.calibrators_ = state["calibrators"]
        return made


def pooled_weights(
    likelihoods: Float[np.ndarray, "n m"], classes: int, row_weights: PerRow | None = None
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
