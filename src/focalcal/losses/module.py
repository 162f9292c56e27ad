"""What every loss module shares: its settings, class weights, ignored labels, the reduction."""

from __future__ import annotations

from inspect import signature
from typing import Any, ClassVar, TypedDict, get_args

from torch import Tensor, nn

from focalcal.losses.checks import REDUCTIONS, class_weight
from focalcal.losses.engines import Engine, focal_family
from focalcal.losses.formula import Terms
from focalcal.losses.scale import terms_of
from focalcal.losses.settings import Setting, choice, label, naming_options, settings_of

_OF_TERMS = ("gamma", "lam", "scale", "label_smoothing")


class CommonOptions(TypedDict, total=False):
    """The keywords that every loss has, those of `nn.CrossEntropyLoss`."""

    weight: Tensor | None
    ignore_index: int
    reduction: str


class ClassificationLoss(nn.Module):
    """A loss called as loss(logits, target), with the shapes and keywords of `nn.CrossEntropyLoss`.

    logits (N, K) or (N, K, d1, ...); target class indices (N, d1, ...) or class probabilities
    (N, K, d1, ...), which mean the expectation over the target: sum_k t_k w_k loss(., k).

    Every hyper-parameter is a `Setting`, checked when it is assigned: a schedule may change it, and no call has to look
    at it again.

    Args:
        weight: one number per class; scales the loss of its examples and never enters their probabilities.
        ignore_index: examples with this label add nothing, neither to the loss nor to the mean.
        reduction: "mean" (over the weights of the labels, as `CrossEntropyLoss`), "sum" or "none".

    """

    ignore_index = Setting[int](label, default=-100)
    reduction = Setting[str](choice(*REDUCTIONS), default="mean")
    weight: Tensor | None
    _settings: ClassVar[dict[str, Setting[Any]]]

    def __init__(
        self, *, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean", **settings: Any
    ) -> None:
        super().__init__()
        self.register_buffer("weight", class_weight(weight))
        defaults = {name: setting.default for name, setting in self._settings.items() if setting.default is not None}
        for name, value in {**defaults, "ignore_index": ignore_index, "reduction": reduction, **settings}.items():
            setattr(self, name, value)

    def __init_subclass__(cls) -> None:
        """Collect what the class declares."""
        super().__init_subclass__()
        cls._settings = settings_of(cls)
        if "__init__" in vars(cls):
            common = list(signature(ClassificationLoss.__init__).parameters.values())[1:4]
            cls.__init__ = naming_options(cls.__init__, common)  # type: ignore[method-assign]

    def __setattr__(self, name: str, value: Any) -> None:
        """Check a setting before it is kept."""
        setting = self._settings.get(name)
        super().__setattr__(name, value if setting is None else setting.check(name, value))

    def extra_repr(self) -> str:
        """The settings, then whether there is a weight; what is at its default is left out."""
        by_default = sorted(self._settings.items(), key=lambda item: item[1].default is not None)
        values = {name: getattr(self, name) for name, setting in by_default if getattr(self, name) != setting.default}
        parts = [
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value!r}" for name, value in values.items()
        ]
        return ", ".join(parts if self.weight is None else [*parts, f"weight=({len(self.weight)},)"])


class TermsLoss(ClassificationLoss):
    """A loss that is made of `Terms`, which follow the settings; subclasses may say otherwise in `_make_terms`."""

    _terms: Terms

    def __init__(
        self, *, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean", **settings: Any
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction, **settings)
        self._terms = self._make_terms()

    def __setattr__(self, name: str, value: Any) -> None:
        """Keep the terms in step with the settings."""
        super().__setattr__(name, value)
        if name in self._settings and "_terms" in self.__dict__:
            self._terms = self._make_terms()

    def _make_terms(self) -> Terms:
        return terms_of(**{name: getattr(self, name) for name in self._settings if name in _OF_TERMS})


class FocalFamilyLoss(TermsLoss):
    """A loss with a value per example that the one kernel serves: see `Terms` for what it can be made of.

    Setting `engine` to "native", "triton", "torch" or "formula" forces one of the four implementations (see
    `focalcal.losses.engines`); "auto" picks the first that can serve the call.
    """

    engine = Setting[Engine](choice(*get_args(Engine)), default="auto")

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The reduced loss."""
        return focal_family(
            logits,
            target,
            self._terms,
            self._buffers["weight"],
            self.ignore_index,
            self.reduction,
            self.engine,
        )
