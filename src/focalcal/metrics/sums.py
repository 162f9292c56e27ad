"""What a pass over an array of scores gives."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jaxtyping import Bool, Float

    from focalcal.core.binning import BinSums


@dataclass(frozen=True, eq=False)
class Scan:
    """Sums over rows and, where asked for, a value for each row."""

    rows: int
    wrong: float
    bins: BinSums  # (bins,): confidence against correctness
    classes: BinSums | None  # (K, bins): each class's probability against whether it is the label
    brier: float | None
    nll: float | None
    confidence: Float[Tensor, " rows"] | None
    correct: Bool[Tensor, " rows"] | None
    row_brier: Float[Tensor, " rows"] | None
    row_nll: Float[Tensor, " rows"] | None


def joined(parts: Iterable[Scan]) -> Scan:
    """The sums over all parts, the rows of all; of parts already added only their rows are kept."""
    total: dict[str, Any] = {}
    for part in parts:
        for field in fields(Scan):
            value = getattr(part, field.name)
            if isinstance(value, Tensor):
                total.setdefault(field.name, []).append(value)
            elif value is None:
                total[field.name] = None
            else:
                total[field.name] = total[field.name] + value if field.name in total else value
    whole: dict[str, Any] = {name: torch.cat(v) if isinstance(v, list) else v for name, v in total.items()}
    return Scan(**whole)
