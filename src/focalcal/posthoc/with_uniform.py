"""Any calibrator with a uniform part, so that no wrong row costs an infinite likelihood."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from focalcal.core.checks import shown
from focalcal.core.chunks import row_chunks
from focalcal.posthoc.calibrator import CalibrationWarning, Calibrator
from focalcal.posthoc.cross_fit import FOLDS, stratified_folds
from focalcal.posthoc.ensemble import mixture_weights
from focalcal.posthoc.estimator import clone
from focalcal.posthoc.storage import Stored, content_of, share

if TYPE_CHECKING:
    from os import PathLike

    from jaxtyping import Float, Int

_ONE_MORE = 0.1  # the weight of a row of which p says nothing: none was seen, which is no proof that none will come


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
    _state: ClassVar[dict[str, Any]] = {"uniform_": share}

    def __init__(self, calibrator: Calibrator) -> None:
        self.calibrator = calibrator

    def _check_params(self) -> None:
        if not isinstance(self.calibrator, Calibrator) or isinstance(self.calibrator, WithUniform):
            raise TypeError(f"calibrator must be one such as IsotonicCalibration(), got {shown(self.calibrator)}")
        self.calibrator._check_params()

    def _fit(
        self, logits: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
    ) -> None:
        self.calibrator_ = clone(self.calibrator)
        self.calibrator_._fit(logits, labels, weights)
        self.calibrator_._set_classes(logits.shape[1], None, one_column=False)
        self.uniform_ = cross_fitted_uniform_part(self.calibrator, logits, labels, weights)

    def _arrays(self) -> dict[str, Any]:
        return self.calibrator_._arrays() | {"uniform_part": np.float64(self.uniform_)}

    def _map(self, logits: Any, **learnt: Any) -> Any:
        uniform = learnt.pop("uniform_part")
        return (1 - uniform) * self.calibrator_._map(logits, **learnt) + uniform / logits.shape[1]

    def _stored(self) -> Stored:
        self._check_params()
        self._check_fitted()
        state = {"calibrator_": content_of(self.calibrator_._stored()), "uniform_": self.uniform_}
        return Stored(type(self).__name__, {}, self.n_features_in_, state, self._names, self._one_column, self.clip_)

    @classmethod
    def _restore(cls, stored: Stored, path: str | PathLike[str]) -> Self:
        """Of a file's content; the calibrator inside is restored by the table of calibrators."""
        from focalcal.posthoc import restored_calibrator

        if stored.name != cls.__name__:
            return super()._restore(stored, path)  # which refuses it
        content = stored.state.get("calibrator_")
        if set(stored.state) != {"calibrator_", "uniform_"} or stored.params:
            raise ValueError(f"{path} is no valid {cls.__name__}: it must hold calibrator_ and uniform_ alone")
        inner = restored_calibrator(content, path)
        if getattr(inner, "n_features_in_", None) != stored.classes or isinstance(inner, cls):
            raise ValueError(
                f"{path} is no valid {cls.__name__}: its calibrator must be one of {stored.classes} classes"
            )
        params, state = {"calibrator": clone(inner)}, {"uniform_": stored.state["uniform_"]}
        restored = super()._restore(replace(stored, params=params, state=state), path)
        restored.calibrator_ = inner
        return restored


def uniform_part(own: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"], classes: int) -> float:
    """w > 0 with the largest likelihood of rows whose label has probability `own` (n,), and of a tenth of a row more.

    That row has p_y = 0, so that w is at least .1 / (n + .1).

    >>> round(uniform_part(np.array([0.9, 0.8, 0.9, 0.0]), np.ones(4), 2), 3)
    0.635
    """
    likelihoods = np.full((len(own) + 1, 2), 1 / classes)
    likelihoods[:, 0] = np.append(own, 0.0)
    return float(mixture_weights(likelihoods, np.append(weights, _ONE_MORE))[0][1])


def cross_fitted_uniform_part(
    calibrator: Calibrator,
    logits: Float[np.ndarray, "n k"],
    labels: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
) -> float:
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
