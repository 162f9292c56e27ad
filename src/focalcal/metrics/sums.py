"""What a pass over an array of scores gives."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from torch import Tensor

from focalcal.core.binning import BinSums

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jaxtyping import Bool, Float


@dataclass(frozen=True, eq=False)
class Scan:
    """Sums over rows and, where asked for, a value for each row."""

    rows: int
    wrong: float
    miss: float  # how far the sum of a row's probabilities is from one, at most
    bins: BinSums  # (bins,): confidence against correctness
    classes: BinSums | None  # (K, bins): each class's probability against whether it is the label
    brier: float | None
    nll: float | None
    confidence: Float[Tensor, " rows"] | None
    correct: Bool[Tensor, " rows"] | None
    row_brier: Float[Tensor, " rows"] | None
    row_nll: Float[Tensor, " rows"] | None


def joined(parts: Iterable[Scan], most_rows: int) -> Scan:
    """The sums over all parts (of `miss` the largest), the rows of all, which are no more than `most_rows`.

    What lasts is allocated with the first part: a little memory kept of each part, between temporaries that come and
    go, would let the heap grow with their number.
    """
    whole: dict[str, Any] = {}
    filled = 0
    for part in parts:
        for field in fields(Scan):
            value = getattr(part, field.name)
            if isinstance(value, Tensor):
                if field.name not in whole:
                    whole[field.name] = value.new_empty(most_rows)
                whole[field.name][filled : filled + len(value)] = value
            elif field.name not in whole:
                whole[field.name] = value
            elif field.name == "miss":
                whole[field.name] = max(whole[field.name], value)
            elif isinstance(value, BinSums):
                whole[field.name].add_(value)
            elif value is not None:
                whole[field.name] += value
        filled += part.rows
    found: dict[str, Any] = {name: v[:filled] if isinstance(v, Tensor) else v for name, v in whole.items()}
    return Scan(**found)
