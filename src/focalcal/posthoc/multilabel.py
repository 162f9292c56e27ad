"""Calibration of sigmoid outputs: every label of a row by itself, as two classes, no and yes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from focalcal.core.arrays import as_array, like_given
from focalcal.core.checks import shown, yes_or_no
from focalcal.core.extras import required
from focalcal.posthoc.estimator import Estimator, check_fitted, clone
from focalcal.posthoc.storage import ScoreColumns, Stored, calibrators, content_of, write_json
from focalcal.predictions import Predictions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from focalcal.posthoc.calibrator import Calibrator
    from focalcal.posthoc.module import MultilabelModule


class MultilabelCalibration(Estimator):
    """Probabilities of yes (N, L) from logits z of yes (N, L), by a calibrator of the two classes with logits (0, z).

    One calibrator for every label; or one for the entries of all labels, where labels are too rare for their own.
    Logits and labels in {0, 1} are (N, L), or multi-label `Predictions`; `probs=` as elsewhere.

    Attributes: `calibrators_`, one per label, or a single one; `n_features_in_`, the number of labels L.

    Args:
        calibrator: of two classes; a clone of it is fitted for each label.
        shared: True for one for the entries of all labels.

    >>> import numpy as np
    >>> from focalcal.posthoc import TemperatureScaling
    >>> logits, labels = np.array([[2.0], [2.0], [-2.0], [2.0]]), np.array([[1], [1], [0], [0]])
    >>> MultilabelCalibration(TemperatureScaling()).fit(logits, labels).predict_proba(logits).round(2).ravel()
    array([0.75, 0.75, 0.25, 0.75])
    """

    calibrators_: list[Calibrator]
    n_features_in_: int
    columns_: ScoreColumns | None = None  # where the table of an audit had the scores that it is for

    def __init__(self, calibrator: Calibrator, *, shared: bool = False) -> None:
        self.calibrator = calibrator
        self.shared = shared

    def fit(
        self,
        logits: Any = None,
        labels: Any = None,
        sample_weight: Any = None,
        *,
        probs: Any = None,
        clip: float | None = None,
    ) -> Self:
        """Learn the maps; `sample_weight` is (N,), or (N, L) for one per entry, `clip` as elsewhere."""
        yes_or_no("shared", self.shared)
        if not hasattr(self.calibrator, "fit"):
            raise TypeError(f"calibrator must be one such as TemperatureScaling(), got {shown(self.calibrator)}")
        given = logits
        if not isinstance(given, Predictions):
            given = Predictions(logits=logits, probs=probs, labels=labels, split="held out", multilabel=True)
        elif not given.multilabel or labels is not None or probs is not None:
            raise ValueError("logits must be multi-label Predictions alone, or (N, L) logits with labels (N, L)")
        self.n_features_in_, self.columns_ = given.n_classes, None
        columns, answers = self._columns(given.scores), self._columns(given.labels.astype(np.int64))
        weights: Sequence[Any] = [None] * len(columns)
        if sample_weight is not None:
            each = as_array("sample_weight", sample_weight)
            weights = self._columns(np.repeat(each[:, None], given.n_classes, 1) if each.ndim == 1 else each)
        for at, answer in enumerate(answers):
            if (answer == answer[0]).all():
                raise ValueError(
                    f"labels must hold 0 and 1 for every label, got only {int(answer[0])} for label {at}; leave it "
                    "out, or fit one calibrator for all labels with shared=True"
                )
        fresh: Any = self.calibrator
        self.calibrators_ = [
            clone(fresh).fit(labels=answer, sample_weight=weight, clip=clip, **{given.kind: column})
            for column, answer, weight in zip(columns, answers, weights, strict=True)
        ]
        return self

    def predict_proba(self, logits: Any = None, *, probs: Any = None) -> Any:
        """Calibrated probabilities of yes, (N, L); a tensor for a tensor, NumPy for all else."""
        check_fitted(self, "calibrators_")
        if isinstance(logits, Predictions):
            return self.predict_proba(**{logits.kind: logits.scores})
        if (logits is None) == (probs is None):
            raise TypeError("give exactly one of logits and probs=; the name says what the scores are")
        kind, given = ("logits", logits) if probs is None else ("probs", probs)
        scores = as_array(kind, given)
        if scores.ndim != 2 or scores.shape[1] != self.n_features_in_:
            raise ValueError(
                f"{kind} must be (N, {self.n_features_in_}), one column per label as at fit, got {scores.shape}"
            )
        columns = zip(self.calibrators_, self._columns(scores), strict=True)
        calibrated = [calibrator.predict_proba(**{kind: column})[:, 1] for calibrator, column in columns]
        return like_given(given, calibrated[0].reshape(scores.shape) if self.shared else np.stack(calibrated, 1))

    def predict(self, logits: Any = None, *, probs: Any = None) -> Any:
        """1 where yes is at least as probable as no, (N, L)."""
        return (self.predict_proba(logits, probs=probs) >= 0.5) * 1

    def to_module(self) -> MultilabelModule:
        """The fitted map as an `nn.Module` of logits (N, L)."""
        check_fitted(self, "calibrators_")
        required("torch", purpose="to_module()", extra="torch")
        from focalcal.posthoc.module import MultilabelModule

        return MultilabelModule([calibrator.to_module() for calibrator in self.calibrators_]).eval()

    def save(self, path: str | PathLike[str]) -> None:
        """Write a JSON file, which `load_calibrator` reads."""
        write_json(path, self.record())

    def record(self) -> dict[str, Any]:
        """What `save` writes, as plain values for JSON."""
        check_fitted(self, "calibrators_")
        state = {"labels": self.n_features_in_, "calibrators_": self.calibrators_}
        return content_of(Stored(type(self).__name__, {"shared": self.shared}, None, state, columns=self.columns_))

    @classmethod
    def _restore(cls, stored: Stored, path: str | PathLike[str]) -> Self:
        shared, labels = stored.params.get("shared"), stored.state.get("labels")
        try:
            fitted = calibrators("calibrators_", stored.state.get("calibrators_"), 2)
            if type(shared) is not bool or type(labels) is not int or len(fitted) != (1 if shared else labels):
                raise ValueError("it must hold a calibrator of two classes per label")
        except ValueError as error:
            raise ValueError(f"{path} is no valid {cls.__name__}: {error}") from error
        restored = cls(clone(fitted[0]), shared=shared)
        restored.calibrators_, restored.n_features_in_ = fitted, labels
        restored.columns_ = stored.columns
        return restored

    def _columns(self, values: NDArray[Any]) -> Sequence[NDArray[Any]]:
        """What each calibrator sees of (N, L)."""
        return [values.ravel()] if self.shared else list(values.T)
