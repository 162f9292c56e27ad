"""What scikit-learn asks of an estimator, without importing scikit-learn: half a second that an audit need not wait."""

from __future__ import annotations

import copy
import inspect
import sys
from functools import cache
from typing import Any, Self, TypeVar

Cloned = TypeVar("Cloned")


class Estimator:
    """Arguments by name, as scikit-learn's `BaseEstimator` has them; its other methods once scikit-learn is imported.

    Pipelines, searches, clones and checks of scikit-learn ask what an estimator can do, and not what it inherits from.
    """

    @classmethod
    def _get_param_names(cls) -> list[str]:
        own = () if cls.__init__ is object.__init__ else inspect.signature(cls.__init__).parameters
        return sorted(name for name in own if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor; with `deep` those of estimators among them, as `calibrator__max_iter`."""
        params: dict[str, Any] = {}
        for name in self._get_param_names():
            value = params[name] = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params |= {f"{name}__{inner}": each for inner, each in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change arguments, also those of estimators among them, as `calibrator__max_iter`."""
        from sklearn.base import BaseEstimator

        BaseEstimator.set_params(self, **params)
        return self

    def __repr__(self) -> str:
        """The arguments that differ from their defaults."""
        defaults = {} if not self._get_param_names() else inspect.signature(type(self).__init__).parameters
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if repr(value) != repr(defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __getattr__(self, name: str) -> Any:
        """Metadata routing, HTML and more of `BaseEstimator`, which only who has imported scikit-learn asks for."""
        if "sklearn.base" in sys.modules and (not name.startswith("__") or name.startswith("__sklearn")):
            own: Any = type(self)
            kind = _with_base(own)
            for found in (vars(each)[name] for each in kind.__mro__ if name in vars(each)):
                return found.__get__(self, kind) if hasattr(found, "__get__") else found
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


@cache
def _with_base(kind: Any) -> type:
    from sklearn.base import BaseEstimator

    return type(kind.__name__, (kind, BaseEstimator), {})


def clone(estimator: Cloned) -> Cloned:
    """A new one with the same arguments and not fitted, as scikit-learn's `clone` makes it."""
    if hasattr(estimator, "__sklearn_clone__"):
        return estimator.__sklearn_clone__()
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(f"calibrator must be an estimator such as TemperatureScaling(), got {estimator!r}")
    return type(estimator)(**{name: _copied(value) for name, value in estimator.get_params(deep=False).items()})


def _copied(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)([_copied(each) for each in value])
    return clone(value) if hasattr(value, "get_params") and not isinstance(value, type) else copy.deepcopy(value)


def classifier_tags(*, requires_fit: bool = True, poor_score: bool = False) -> Any:
    """What scikit-learn asks of a classifier, its `__sklearn_tags__`."""
    from sklearn.utils import ClassifierTags, Tags, TargetTags

    return Tags(
        estimator_type="classifier",
        target_tags=TargetTags(required=True),
        classifier_tags=ClassifierTags(poor_score=poor_score),
        requires_fit=requires_fit,
    )


def check_fitted(estimator: Any, attribute: str) -> None:
    """Refuse to go on without an attribute of the fit."""
    if not hasattr(estimator, attribute):
        name = type(estimator).__name__
        raise not_fitted(f"This {name} instance is not fitted yet; call 'fit' with appropriate arguments before")


def not_fitted(message: str) -> Exception:
    """scikit-learn's `NotFittedError`."""
    from sklearn.exceptions import NotFittedError

    return NotFittedError(message)


def check_feature_names(estimator: Any, table: Any, *, reset: bool) -> None:
    """Keep the names of a table's columns at a fit, and compare them later; an array has none."""
    named = hasattr(table, "columns") or hasattr(table, "__dataframe__") or hasattr(estimator, "feature_names_in_")
    if named:
        from sklearn.utils.validation import _check_feature_names

        _check_feature_names(estimator, table, reset=reset)
