"""What all calibrators share: the scikit-learn protocol around checked logits, and files."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, overload

import numpy as np

from focalcal.core.arrays import like_given
from focalcal.core.checks import ROUNDING, SUM_TOLERANCE
from focalcal.core.chunks import row_chunks
from focalcal.core.extras import required
from focalcal.posthoc.calibrator_inputs import CheckedRows, checked_clip, labelled_rows, map_rows, rows_of
from focalcal.posthoc.estimator import Estimator, check_feature_names, classifier_tags, not_fitted
from focalcal.posthoc.sql import sql_expression
from focalcal.posthoc.storage import Decoder, ScoreColumns, Stored, content_of, read, write_json
from focalcal.predictions.inputs import read_inputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray
    from torch import Tensor

    from focalcal.core.arrays import Labels, PerRow, Scores
    from focalcal.posthoc.choice import CalibratorChoice
    from focalcal.posthoc.module import CalibratorModule


class CalibrationWarning(UserWarning):
    """A calibrator was fitted, but to data that leave its best parameters at a bound or unreached."""


class Calibrator(Estimator):
    """A map from logits (N, K) to probabilities (N, K), fitted on held-out logits and labels 0 .. K - 1.

    Logits may be dense, (N, K, d1, ...) with labels (N, d1, ...), as of segmentation: every position is a row.

    Logits and labels come in any form of `focalcal.predictions.read_inputs`: `Predictions`, tables, names of classes
    (`classes_`, which `predict` gives), one column of two classes. `probs=` in place of logits takes probabilities:
    their logarithm is used, of entries clipped to [c / (K - 1), 1 - c]. c is read off the rows of the fit, half of
    their last printed digit or 1 / (2 n), and never above their smallest entry but 0; `clip=` overrides it, and
    `clip_` keeps it for predictions and files. (Fitted on logits there is none: then zeros count as the smallest
    positive number of their dtype.) Logits that all are rows of probabilities are refused.
    A subclass gives `_fit`, `_arrays`, `_map` and `_state`, the fitted attributes that a file holds. All of them see
    logits only through softmax: a constant added to a row changes nothing. `_map` is written once, in functions of the
    Python array API, and NumPy, torch, `torch.export` and ONNX run it.

    >>> from focalcal.posthoc import TemperatureScaling
    >>> halved = TemperatureScaling(2.0)
    >>> isinstance(halved, Calibrator), halved.predict_proba([[4.0, 0.0]]).round(3), halved.predict([[4.0, 0.0]])
    (True, array([[0.881, 0.119]]), array([0]))
    """

    _state: ClassVar[dict[str, Decoder]] = {}
    _takes_masked: ClassVar[bool] = False  # whether a logit may be -inf, that of an impossible class
    _of_the_search: ClassVar[tuple[str, ...]] = ("max_iter", "tol")  # arguments that what is fitted does not depend on
    classes_: NDArray[Any]
    n_features_in_: int
    clip_: float | None = None  # what probabilities are clipped at; None if it was fitted on logits
    choice_: CalibratorChoice | None = None  # why it was chosen, if `calibrate` chose it; files do not keep it
    columns_: ScoreColumns | None = None  # where the table of an audit had the scores that it is for
    _names: tuple[Any, ...] | None = None  # of the classes, if labels were names
    _one_column = False  # whether scores were those of the positive class alone

    @abstractmethod
    def _fit(self, logits: Scores, labels: Labels, weights: PerRow) -> None:
        """Set the fitted attributes from checked logits, in any floating dtype, labels and float64 weights > 0."""

    def _arrays(self) -> dict[str, Any]:
        """What was learnt, as float64 arrays: what a module of this map holds. By default all that a file holds."""
        return {name.removesuffix("_"): getattr(self, name) for name in self._state}

    @abstractmethod
    def _map(self, logits: Any, **learnt: Any) -> Any:
        """Calibrated probabilities of some rows (n, K), float64 in and out, arrays of any library with these arrays."""

    def _probs(self, logits: Scores) -> Scores:
        with np.errstate(all="ignore"):  # what overflows, or is the logarithm of 0, has the right limit
            return self._map(logits, **self._arrays())

    def _check_params(self) -> None:
        """Refuse constructor arguments that make no sense."""

    def _check_state(self) -> None:
        """Refuse fitted attributes, read from a file, that do not fit each other."""

    def _needs_fit(self) -> bool:
        return True

    def fit(
        self,
        logits: Any = None,
        labels: Any = None,
        sample_weight: Any = None,
        *,
        probs: Any = None,
        confidence: Any = None,
        correct: Any = None,
        classes: Sequence[Any] | None = None,
        positive: Any = None,
        ignore_index: int | None = None,
        clip: float | None = None,
    ) -> Self:
        """Learn the map from logits (or probs) (N, K, ...) and labels (N, ...), or from `Predictions`.

        Where no more is known than how sure each prediction is and whether it is right, `confidence` (N,) and `correct`
        (N,) take their place: the two classes are wrong and right.

        A row of `sample_weight` w, of the labels' shape, counts as w copies of it; those of weight 0, and those with
        the label `ignore_index`, are left out. `clip` in (0, 0.5) is what `probs` of 0 count as, and 1 less it those of
        1; by default the rows show it.
        """
        self._check_params()
        if confidence is not None or correct is not None:
            others = (logits, labels, probs, classes, positive, ignore_index)
            probs, labels = _outcomes(confidence, correct, others)
        about = {"classes": classes, "positive": positive, "ignore_index": ignore_index}
        about["clip"] = "data" if clip is None else checked_clip(clip)
        rows = labelled_rows(
            logits, labels, probs=probs, masked=self._takes_masked, dense=True, sample_weight=sample_weight, **about
        )
        if clip is not None and rows.kind == "logits":
            raise ValueError(f"clip is for probs, got {clip!r} with logits; leave it out")
        with np.errstate(all="ignore"):
            self._fit(rows.logits, rows.labels, rows.weights)
        self.clip_, self.columns_ = rows.clip, None
        check_feature_names(self, logits if probs is None else probs, reset=True)
        self._set_classes(rows.logits.shape[1], rows.classes, one_column=rows.one_column)
        return self

    @overload
    def predict_proba(self, logits: Tensor) -> Tensor: ...
    @overload
    def predict_proba(self, *, probs: Tensor) -> Tensor: ...
    @overload
    def predict_proba(self, logits: Any = None, *, probs: Any = None, confidence: Any = None) -> NDArray[Any]: ...
    def predict_proba(self, logits: Any = None, *, probs: Any = None, confidence: Any = None) -> Any:
        """Calibrated probabilities (N, K, ...), rows summing to one; a tensor for a tensor, NumPy for all else.

        Of two classes `probs` may be one column, that of the second class. `confidence` (N,) gives (N, 2), the
        probabilities of being wrong and of being right.
        float32 and float64 keep their dtype, half precision gives float32; computed in float64 throughout.
        """
        if probs is confidence is None and self._is_one_row(logits):
            return self._probs(logits)
        self._check_params()
        probs = _alone(confidence, logits, probs)
        rows = self._checked(logits, probs)
        dtype = np.promote_types(rows.scores.dtype, np.float32)
        calibrated = map_rows(rows.logits, self._probs, dtype)
        return like_given(logits if probs is None else probs, rows.spread(calibrated))

    @overload
    def predict(self, logits: Tensor) -> Tensor: ...
    @overload
    def predict(self, *, probs: Tensor) -> Tensor: ...
    @overload
    def predict(self, logits: Any = None, *, probs: Any = None, confidence: Any = None) -> NDArray[Any]: ...
    def predict(self, logits: Any = None, *, probs: Any = None, confidence: Any = None) -> Any:
        """The class of largest calibrated probability, (N, ...); the first of several that tie.

        Compared in float64: classes that float32 probabilities cannot tell apart are told apart. Of names it is the
        name, in a NumPy array; of `confidence` 1 says that right is more probable than wrong.
        """
        probs = _alone(confidence, logits, probs)
        if probs is None and self._is_one_row(logits):
            index = self._probs(logits).argmax(1)
        else:
            self._check_params()
            rows = self._checked(logits, probs)
            index = rows.spread(self._predicted(rows.logits))
        if self._names is not None:
            return self.classes_[index]
        return like_given(logits if probs is None else probs, index)

    def score(
        self,
        logits: Any = None,
        labels: Any = None,
        sample_weight: Any = None,
        *,
        probs: Any = None,
        ignore_index: int | None = None,
    ) -> float:
        """Accuracy of `predict`."""
        self._check_params()
        rows = self._checked(logits, probs, labels, sample_weight=sample_weight, ignore_index=ignore_index)
        if rows.labels is None or rows.weights is None:
            raise ValueError("labels must be given to score against, got None; pass the classes of the rows")
        right = self._predicted(rows.logits) == rows.labels
        return float(rows.weights[right].sum() / rows.weights.sum())

    def to_module(self) -> CalibratorModule:
        """The fitted map as an `nn.Module` of logits, to put behind a network, to export or to compile."""
        self._check_params()
        if self._needs_fit():
            self._check_fitted()
        required("torch", purpose="to_module()", extra="torch")
        from focalcal.posthoc.module import CalibratorModule

        return CalibratorModule(copy.deepcopy(self)).eval()  # exporters warn of modules that are in training

    def to_sql(self, column: str, *, kind: Literal["logits", "probs"] | None = None) -> str:
        """The calibrated probability of the positive class as an SQL expression of its one score.

        For a temperature, Platt or beta map of two classes. `column` stands in the expression as it is given: its name
        (in quotes, if it needs them). `kind` is what it holds, by default what the audited table had, else
        probabilities, which are clipped as at the fit. The functions are those of every database: LN, EXP, LEAST,
        GREATEST (and ABS for a beta map of logits).

        >>> from focalcal import TemperatureScaling
        >>> TemperatureScaling(temperature=2.0).to_sql("z", kind="logits")
        '1 / (1 + EXP(LEAST(GREATEST(-(z / 2.0e0), (-700.0e0)), 700.0e0)))'
        """
        self._check_params()
        if self._needs_fit():
            self._check_fitted()
        return sql_expression(self, column, kind)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a JSON file that holds the class, its arguments and what was learnt; no pickle."""
        write_json(path, self.record())

    def record(self) -> dict[str, Any]:
        """What `save` writes, as plain values for JSON."""
        self._check_params()
        if self._needs_fit():
            self._check_fitted()
        fitted = hasattr(self, "n_features_in_")
        if fitted:
            self._check_state()  # what is written can be read
        params, state = self._to_file()
        classes, state, clip = (self.n_features_in_, state, self.clip_) if fitted else (None, {}, None)
        about = (self._names, self._one_column, clip, self.columns_)
        return content_of(Stored(type(self).__name__, params, classes, state, *about))

    def _to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arguments that a file holds, and the fitted attributes, called as in `_state`."""
        return self.get_params(), {name: getattr(self, name, None) for name in self._state}

    @classmethod
    def _from_file(cls, params: Mapping[str, Any], state: Mapping[str, Any]) -> Self:
        """What `_to_file` was called of; with an empty state one that is not fitted."""
        made = cls(**params)
        for name, value in state.items():
            setattr(made, name, value)
        return made

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """The calibrator that `save` wrote; any other file raises ValueError."""
        return cls._restore(read(path), path)

    @classmethod
    def _restore(cls, stored: Stored, path: str | PathLike[str]) -> Self:
        if stored.name != cls.__name__:
            raise ValueError(
                f"{path} holds a {stored.name}, not a {cls.__name__}; use {stored.name}.load or load_calibrator"
            )
        if not set(stored.params) <= set(cls._get_param_names()):  # an older file has fewer
            raise ValueError(f"{path} has other arguments than {cls.__name__} takes: {sorted(stored.params)}")
        try:
            state = {} if stored.classes is None else stored.decoded(cls._state)
            calibrator = cls._from_file(stored.params, state)
            calibrator._check_params()
            if stored.classes is None and calibrator._needs_fit():
                stored.decoded(cls._state)  # which says what is missing
            elif stored.classes is not None:
                calibrator._set_classes(stored.classes, stored.names, one_column=stored.one_column)
                calibrator.clip_ = None if stored.clip is None else checked_clip(stored.clip)
                calibrator._check_state()
            calibrator.columns_ = stored.columns
        except (KeyError, TypeError, ValueError, OverflowError, MemoryError) as error:
            raise ValueError(f"{path} is no valid {cls.__name__}: {error}") from error
        return calibrator

    def _predicted(self, logits: Scores) -> Labels:
        return np.concatenate([self._probs(rows.astype(np.float64)).argmax(1) for _, rows in row_chunks(logits)])

    def _set_classes(self, classes: int | None, names: Sequence[Any] | None, *, one_column: bool) -> None:
        assert classes is not None
        self.n_features_in_ = classes
        self.classes_ = np.arange(classes) if names is None else np.array(names)
        self._names = None if names is None else tuple(names)
        self._one_column = one_column
        self._fitted_with = self.get_params(deep=False)

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_features_in_"):
            raise not_fitted(
                f"This {type(self).__name__} is not fitted yet; call fit(logits, labels) on held-out data first, or "
                "load a saved one"
            )
        for name, then in getattr(self, "_fitted_with", {}).items():
            now = getattr(self, name)
            if name not in self._of_the_search and now != then:
                raise not_fitted(
                    f"This {type(self).__name__} is fitted for {name}={then!r}, and {name} is now {now!r}; "
                    "call fit(logits, labels) again, or set it back"
                )

    def _is_one_row(self, logits: Any) -> bool:
        """Whether there is one row (1, K) of float64 logits and nothing to say about it: where microseconds count."""
        if type(logits) is not np.ndarray or logits.dtype != np.float64 or len(logits.shape) != 2:
            return False
        needs_fit = self._needs_fit()
        columns = getattr(self, "n_features_in_", 0 if needs_fit else max(2, logits.shape[1]))
        if logits.shape != (1, columns) or hasattr(self, "feature_names_in_"):
            return False
        self._check_params()
        if needs_fit:
            self._check_fitted()
        with np.errstate(all="ignore"):
            total = float(np.add.reduce(logits, None))  # not finite if an entry is not
        return math.isfinite(total) and (abs(total - 1) > SUM_TOLERANCE or logits.min() < -ROUNDING)

    def _checked(self, logits: Any, probs: Any, labels: Any = None, **about: Any) -> CheckedRows:
        """The rows to predict, or to score against labels."""
        if self._needs_fit():
            self._check_fitted()
        check_feature_names(self, logits if probs is None else probs, reset=False)
        single = self._one_column or (probs is not None and getattr(self, "n_features_in_", 2) == 2)
        about |= {"masked": self._takes_masked, "one_column": single, "classes": self._names}
        about["clip"] = self.clip_
        rows = rows_of(logits, probs, labels=labels, dense=True, **about)
        if rows.classes is not None and self._names not in (None, rows.classes):
            raise ValueError(
                f"classes must be those of the fit, {str(self._names)[:200]}, got {str(rows.classes)[:200]}"
            )
        columns = rows.logits.shape[1]
        if hasattr(self, "n_features_in_") and columns != self.n_features_in_:
            raise ValueError(
                f"{rows.kind} must have as many columns (classes) as at fit: X has {columns} features, but "
                f"{type(self).__name__} is expecting {self.n_features_in_} features as input; "
                "fit another calibrator for this network"
            )
        return rows

    def __str__(self) -> str:
        """Its arguments, and what `calibrate` found if it chose this calibrator."""
        return repr(self) if self.choice_ is None else f"{self!r}\n{self.choice_}"

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `predict_proba` can be called."""
        return not self._needs_fit() or hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        """Numbers in K columns with labels 0 .. K - 1: scikit-learn's generic data score poorly."""
        return classifier_tags(requires_fit=self._needs_fit(), poor_score=True)


def _outcomes(confidence: Any, correct: Any, others: tuple[Any, ...]) -> tuple[Any, Any]:
    """Checked confidences, the probabilities of the class 1, and whether each prediction is right, as 0 and 1."""
    if any(other is not None for other in others):
        raise TypeError("confidence and correct take the place of scores and labels; give one or the other")
    given = read_inputs(confidence=confidence, correct=correct)
    return given.scores, given.labels.astype(np.int64)


def _alone(confidence: Any, logits: Any, probs: Any) -> Any:
    """The probabilities that are given, be they called confidences."""
    if confidence is None:
        return probs
    if logits is not None or probs is not None:
        raise TypeError("confidence takes the place of logits and probs; give one or the other")
    return confidence
