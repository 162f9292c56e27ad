"""A trained classifier and a calibrator behind it, as one classifier."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from focalcal.core.checks import one_of
from focalcal.posthoc.estimator import Estimator, check_fitted, classifier_tags, clone
from focalcal.posthoc.storage import read_json, write_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from focalcal.posthoc.calibrator import Calibrator

FORMAT = "focalcal calibrated model"
METHODS = ("decision_function", "predict_proba", "predict_log_proba")  # the order in which "auto" looks for them


class CalibratedModel(Estimator):
    """A trained classifier whose outputs a calibrator turns into probabilities; `fit` fits the calibrator alone.

    Clones share the trained classifier, so that `cross_val_predict` and `GridSearchCV` leave it as it is.
    Attributes: `calibrator_`; `method_`, what was taken; `classes_`; `n_features_in_` if the classifier has it.

    Args:
        classifier: a fitted scikit-learn classifier, or an `nn.Module` from X to logits, used in evaluation mode.
        calibrator: unfitted; a clone of it is fitted on the classifier's outputs for the held-out rows of `fit`.
        method: of a scikit-learn classifier: "decision_function" (taken for logits, one column for two classes),
            "predict_proba" or "predict_log_proba"; "auto" is the first that it has, as in `CalibratedClassifierCV`.
        classes: of a module: the name of each of its columns, in order.

    >>> from sklearn.linear_model import LogisticRegression
    >>> from focalcal.posthoc import TemperatureScaling
    >>> trained = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
    >>> model = CalibratedModel(trained, TemperatureScaling())
    >>> model.fit([[0.5], [1.0], [2.0], [2.5]], ["no", "yes", "no", "yes"]).predict_proba([[2.5]]).round(2)  # was 0.72
    array([[0.3, 0.7]])
    """

    calibrator_: Calibrator
    method_: str
    classes_: NDArray[Any]

    def __init__(
        self, classifier: Any, calibrator: Calibrator, *, method: str = "auto", classes: Sequence[Any] | None = None
    ) -> None:
        self.classifier = classifier
        self.calibrator = calibrator
        self.method = method
        self.classes = classes

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the calibrator on held-out rows: not those that the classifier was trained on."""
        method = self._method()
        known = getattr(self.classifier, "classes_", self.classes)
        classes = None if known is None else np.asarray(known).tolist()
        kind, scores = _outputs(self.classifier, method, X)
        fitted = clone(self.calibrator)
        self.calibrator_ = fitted.fit(labels=y, sample_weight=sample_weight, classes=classes, **{kind: scores})
        self.method_ = method
        self.classes_ = fitted.classes_ if known is None else np.asarray(known)
        if hasattr(self.classifier, "n_features_in_"):
            self.n_features_in_ = self.classifier.n_features_in_
        return self

    def predict_proba(self, X: Any) -> Any:
        """Calibrated probabilities (N, K); a tensor if a module was given one."""
        check_fitted(self, "calibrator_")
        kind, scores = _outputs(self.classifier, self.method_, X)
        return self.calibrator_.predict_proba(**{kind: scores})

    def predict(self, X: Any) -> Any:
        """The class of largest calibrated probability, (N,)."""
        check_fitted(self, "calibrator_")
        kind, scores = _outputs(self.classifier, self.method_, X)
        return self.calibrator_.predict(**{kind: scores})

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of `predict`."""
        return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted calibrator and how it is applied as JSON; the classifier is kept by its own library."""
        check_fitted(self, "calibrator_")
        calibrator = self.calibrator_.record()
        content = {"format": FORMAT, "version": 1, "method": self.method_, "calibrator": calibrator}
        write_json(path, content | {"classes": self.classes_.tolist()})

    @classmethod
    def load(cls, path: str | PathLike[str], classifier: Any) -> Self:
        """What `save` wrote, before the trained classifier that it was fitted for."""
        content = read_json(path)
        if not isinstance(content, dict) or content.get("format") != FORMAT or content.get("version") != 1:
            raise ValueError(f"{path} is no saved CalibratedModel; pass a file that its save() wrote")
        from focalcal.posthoc import restored_calibrator  # the table of calibrators, which is above this file

        calibrator = restored_calibrator(content.get("calibrator"), path)
        classes, method = content.get("classes"), str(content.get("method"))
        model = cls(classifier, clone(calibrator), method="auto" if method == "forward" else method, classes=classes)
        known = getattr(classifier, "classes_", None)
        if not isinstance(classes, list) or (known is not None and np.asarray(known).tolist() != classes):
            found = None if known is None else np.asarray(known).tolist()
            raise ValueError(
                f"classifier must have the classes of the saved model, {classes}, got {found}; pass the classifier "
                "that the calibrator was fitted for"
            )
        if model._method() != method:
            raise ValueError(
                f"classifier must have {method}, as that of the saved model, got {type(classifier).__name__}; pass the "
                "classifier that the calibrator was fitted for"
            )
        model.calibrator_, model.method_, model.classes_ = calibrator, method, np.asarray(classes)
        if hasattr(classifier, "n_features_in_"):
            model.n_features_in_ = classifier.n_features_in_
        return model

    def _method(self) -> str:
        one_of("method", self.method, ("auto", *METHODS))
        if _is_network(self.classifier):
            return "forward"
        wanted = METHODS if self.method == "auto" else (self.method,)
        available = [name for name in wanted if hasattr(self.classifier, name)]
        if isinstance(self.classifier, type) or not available:
            raise TypeError(
                f"classifier must be a trained nn.Module, or have {' or '.join(wanted)}, got {self.classifier!r}; "
                "train it before"
            )
        if available[0] == "decision_function" and getattr(self.classifier, "decision_function_shape", None) == "ovo":
            raise ValueError(
                "classifier must give one score per class, got decision_function_shape='ovo', one per pair; use 'ovr'"
            )
        return available[0]

    def __sklearn_tags__(self) -> Any:
        """Those of a classifier."""
        return classifier_tags()

    def __sklearn_clone__(self) -> Self:
        """The same trained classifier and a new calibrator: a clone of the classifier would not be trained."""
        return type(self)(self.classifier, clone(self.calibrator), method=self.method, classes=self.classes)


def _outputs(classifier: Any, method: str, X: Any) -> tuple[str, Any]:
    """Their kind, logits or probs, and values."""
    if method == "forward":
        from focalcal.posthoc.module import network_logits  # a module is here, so torch is

        return "logits", network_logits(classifier, X)
    from sklearn.utils.validation import check_is_fitted  # the classifier is scikit-learn's, or like one

    check_is_fitted(classifier)
    return "probs" if method == "predict_proba" else "logits", getattr(classifier, method)(X)


def _is_network(classifier: Any) -> bool:
    """True for an `nn.Module`, whoever has one having imported torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(classifier, torch.nn.Module)
