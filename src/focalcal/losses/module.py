"""What every loss module shares: class weights, ignored labels, the reduction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from focalcal.core.arrays import REDUCTIONS, class_weight, one_of
from focalcal.losses.engines import Engine, focal_family
from focalcal.losses.formula import Terms

if TYPE_CHECKING:
    from collections.abc import Callable


class ClassificationLoss(nn.Module):
    """A loss called as loss(logits, target), with the shapes and keywords of `nn.CrossEntropyLoss`.

    logits (N, K) or (N, K, d1, ...); target class indices (N, d1, ...) or class probabilities
    (N, K, d1, ...), which mean the expectation over the target: sum_k t_k w_k loss(., k).

    Args:
        weight: one number a class; scales the loss of its examples and never enters their probabilities.
        ignore_index: examples with this label add nothing, neither to the loss nor to the mean.
        reduction: "mean" (over the weights of the labels, as `CrossEntropyLoss`), "sum" or "none".

    """

    weight: Tensor | None

    def __init__(self, *, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__()
        one_of("reduction", reduction, REDUCTIONS)
        self.register_buffer("weight", class_weight(weight))
        self.ignore_index = int(ignore_index)
        self.reduction = reduction

    def extra_repr(self) -> str:
        """The shared keywords that differ from their defaults."""
        shown = []
        if self.weight is not None:
            shown.append(f"weight=({len(self.weight)},)")
        if self.ignore_index != -100:
            shown.append(f"ignore_index={self.ignore_index}")
        if self.reduction != "mean":
            shown.append(f"reduction={self.reduction!r}")
        return ", ".join(shown)


class Checked:
    """A hyper-parameter that is checked when it is assigned, so that no call has to."""

    def __init__(self, check: Callable[[float], float]) -> None:
        self.check = check

    def __set_name__(self, owner: type, name: str) -> None:
        """Where the instance keeps it."""
        self.name = f"_{name}"

    def __get__(self, loss: nn.Module | None, owner: type | None = None) -> Any:
        """Its present value; on the class, the descriptor."""
        return self if loss is None else loss.__dict__[self.name]

    def __set__(self, loss: nn.Module, value: float) -> None:
        """Check and keep it."""
        loss.__dict__[self.name] = self.check(value)


class CheckedTerm:
    """A hyper-parameter that lives in `_terms`; assigning checks it."""

    def __init__(self, name: str, check: Callable[[float], float]) -> None:
        self.name, self.check = name, check

    def __get__(self, loss: Any, owner: type | None = None) -> Any:
        """Its present value; on the class, the descriptor."""
        return self if loss is None else getattr(loss._terms, self.name)

    def __set__(self, loss: Any, value: float) -> None:
        """Check and keep it."""
        loss._terms = loss._terms._replace(**{self.name: self.check(value)})


class FocalFamilyLoss(ClassificationLoss):
    """A loss with a value per example that the one kernel serves: see `Terms` for what it can be made of.

    Subclasses say which in `_terms`. Setting `engine` to "native", "torch" or "formula" forces one of the
    three implementations (see `focalcal.losses.engines`); "auto" picks the fastest that can serve the call.
    """

    engine: Engine = "auto"
    _terms = Terms()

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


def shown(*parts: str) -> str:
    """The non-empty parts of a repr, joined."""
    return ", ".join(part for part in parts if part)
