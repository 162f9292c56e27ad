"""What all calibrators share: the scikit-learn protocol around checked logits, and files."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _check_feature_names, check_is_fitted
from torch import Tensor, nn

from focalcal.core.chunks import row_chunks
from focalcal.core.scores import as_tensor, scores_and_labels
from focalcal.posthoc.calibrator_inputs import class_columns, in_kind_of, logits_and_labels, logits_of, map_rows
from focalcal.posthoc.storage import Decoder, Stored, read, write

if TYPE_CHECKING:
    from os import PathLike

    from jaxtyping import Float, Int
    from numpy.typing import NDArray


class CalibrationWarning(UserWarning):
    """A calibrator was fitted, but to data that leave its best parameters at a bound or unreached."""


class Calibrator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A map from logits (N, K) to probabilities (N, K), fitted on held-out logits and labels 0 .. K - 1.

    `probs=` in place of logits takes probabilities: their logarithm is used, in which zeros count as the smallest
    positive number of their dtype. Logits that all are rows of probabilities are refused.
    A subclass gives `_fit`, `_tensors`, `_map` and `_state`, the fitted attributes that a file holds. All of them see
    logits only through softmax: a constant added to a row changes nothing.
    """

    _state: ClassVar[dict[str, Decoder]] = {}
    _of_the_search: ClassVar[tuple[str, ...]] = ("max_iter", "tol")  # arguments that what is fitted does not depend on
    classes_: NDArray[np.int64]
    n_features_in_: int

    @abstractmethod
    def _fit(self, logits: Float[Tensor, "n k"], labels: Int[Tensor, " n"]) -> None:
        """Set the fitted attributes from checked logits, in any floating dtype, and labels."""

    @abstractmethod
    def _tensors(self) -> dict[str, Tensor]:
        """What was learnt, as float64 tensors: what a module of this map holds."""

    @abstractmethod
    def _map(self, logits: Float[Tensor, "n k"], **tensors: Tensor) -> Float[Tensor, "n k"]:
        """Calibrated probabilities of some rows, float64 in and out, by torch operations on these tensors alone."""

    def _probs(self, logits: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
        return self._map(logits, **{name: tensor.to(logits) for name, tensor in self._tensors().items()})

    def _check_params(self) -> None:
        """Refuse constructor arguments that make no sense."""

    def _check_state(self) -> None:
        """Refuse fitted attributes, read from a file, that do not fit each other."""

    def _needs_fit(self) -> bool:
        return True

    def fit(self, logits: Any = None, labels: Any = None, *, probs: Any = None) -> Self:
        """Learn the map from logits (or probs) (N, K) and labels (N,): NumPy arrays, tensors or nested lists."""
        self._check_params()
        scores, index = logits_and_labels(logits, labels, probs=probs)
        self._fit(scores, index)
        _check_feature_names(self, logits if probs is None else probs, reset=True)
        self._set_classes(scores.shape[1])
        return self

    @overload
    def predict_proba(self, logits: Tensor) -> Tensor: ...
    @overload
    def predict_proba(self, *, probs: Tensor) -> Tensor: ...
    @overload
    def predict_proba(self, logits: Any = None, *, probs: Any = None) -> NDArray[Any]: ...
    def predict_proba(self, logits: Any = None, *, probs: Any = None) -> Any:
        """Calibrated probabilities (N, K), rows summing to one; a tensor for a tensor, NumPy for all else.

        float32 and float64 keep their dtype, half precision gives float32; computed in float64 throughout.
        """
        self._check_params()
        given, scores = self._checked(logits, probs)
        return in_kind_of(given, map_rows(scores, self._probs, like=as_tensor("scores", given)))

    @overload
    def predict(self, logits: Tensor) -> Tensor: ...
    @overload
    def predict(self, *, probs: Tensor) -> Tensor: ...
    @overload
    def predict(self, logits: Any = None, *, probs: Any = None) -> NDArray[Any]: ...
    def predict(self, logits: Any = None, *, probs: Any = None) -> Any:
        """The class of largest calibrated probability, (N,); the first of several that tie.

        Compared in float64: classes that float32 probabilities cannot tell apart are told apart.
        """
        self._check_params()
        given, scores = self._checked(logits, probs)
        return in_kind_of(given, self._predicted(scores))

    def score(self, logits: Any = None, labels: Any = None, sample_weight: Any = None, *, probs: Any = None) -> float:
        """Accuracy of `predict`."""
        self._check_params()
        scores, index = scores_and_labels(
            "logits" if probs is None else "probs", self._checked(logits, probs)[1], labels
        )
        right = (self._predicted(scores) == index).cpu().numpy()
        return float(np.average(right, weights=sample_weight))

    def to_module(self) -> CalibratorModule:
        """The fitted map as an `nn.Module` of logits, to put behind a network, to export or to compile."""
        self._check_params()
        if self._needs_fit():
            self._check_fitted()
        return CalibratorModule(copy.deepcopy(self))

    def save(self, path: str | PathLike[str]) -> None:
        """Write a JSON file that holds the class, its arguments and what was learnt; no pickle."""
        self._check_params()
        if self._needs_fit():
            self._check_fitted()
        fitted = hasattr(self, "n_features_in_")
        state = {name: getattr(self, name) for name in self._state} if fitted else {}
        classes = self.n_features_in_ if fitted else None
        if fitted:
            self._check_state()  # what is written can be read
        write(path, Stored(type(self).__name__, self.get_params(), classes, state))

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
        if set(stored.params) != set(cls._get_param_names()):
            raise ValueError(f"{path} has other arguments than {cls.__name__} takes: {sorted(stored.params)}")
        try:
            calibrator = cls(**stored.params)
            calibrator._check_params()
            if stored.classes is not None or calibrator._needs_fit():
                for name, value in stored.decoded(cls._state).items():
                    setattr(calibrator, name, value)
                calibrator._set_classes(stored.classes)
                calibrator._check_state()
        except (TypeError, ValueError, OverflowError, MemoryError, RecursionError) as error:
            raise ValueError(f"{path} is no valid {cls.__name__}: {error}") from error
        return calibrator

    def _predicted(self, logits: Float[Tensor, "n k"]) -> Int[Tensor, " n"]:
        return torch.cat([self._probs(rows.double()).argmax(1) for _, rows in row_chunks(logits)])

    def _set_classes(self, classes: int | None) -> None:
        assert classes is not None
        self.n_features_in_ = classes
        self.classes_ = np.arange(classes)
        self._fitted_with = self.get_params()

    def _check_fitted(self) -> None:
        message = (
            "This %(name)s is not fitted yet; call fit(logits, labels) on held-out data first, or load a saved one"
        )
        check_is_fitted(self, "n_features_in_", msg=message)
        for name, now in self.get_params().items():
            then = self._fitted_with[name]
            if name not in self._of_the_search and now != then:
                raise NotFittedError(
                    f"This {type(self).__name__} is fitted for {name}={then!r}, and {name} is now {now!r}; "
                    "call fit(logits, labels) again, or set it back"
                )

    def _checked(self, logits: Any, probs: Any) -> tuple[Any, Float[Tensor, "n k"]]:
        """What was given, and its logits."""
        if self._needs_fit():
            self._check_fitted()
        name, given = ("logits", logits) if probs is None else ("probs", probs)
        _check_feature_names(self, given, reset=False)
        columns = class_columns(name, given).shape[1]
        if hasattr(self, "n_features_in_") and columns != self.n_features_in_:
            raise ValueError(
                f"{name} must have as many columns (classes) as at fit: X has {columns} features, but "
                f"{type(self).__name__} is expecting {self.n_features_in_} features as input; "
                "fit another calibrator for this network"
            )
        return given, logits_of(logits, probs)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `predict_proba` can be called."""
        return not self._needs_fit() or hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        """Numbers in K columns with labels 0 .. K - 1: scikit-learn's generic data score poorly."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = self._needs_fit()
        tags.classifier_tags.poor_score = True
        return tags


class CalibratorModule(nn.Module):
    """A fitted calibrator's map from logits (N, K) to probabilities (N, K), what it learnt in float64 buffers.

    Computed in float64; the result has the logits' dtype, float32 at least. It can be exported by `torch.export` and to
    ONNX. `state_dict` holds what was learnt; the calibrator's arguments are part of the module. Nothing is checked:
    check once, with `predict_proba`.
    """

    def __init__(self, calibrator: Calibrator) -> None:
        super().__init__()
        self._calibrator = calibrator
        for name, tensor in calibrator._tensors().items():
            self.register_buffer(name, tensor.double().clone())

    def forward(self, logits: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
        """Calibrated probabilities."""
        learnt = {name: buffer.double() for name, buffer in self.named_buffers(recurse=False)}
        probs = self._calibrator._map(logits.double(), **learnt)
        return probs.to(torch.promote_types(logits.dtype, torch.float32))

    def extra_repr(self) -> str:
        """The calibrator."""
        return repr(self._calibrator)
