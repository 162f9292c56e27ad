"""What two `Predictions` must have in common to be equal, or parts of one whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from focalcal.predictions.record import Predictions

OPTIONAL = ("ids", "groups", "clusters", "weights", "times", "posterior")
PER_ROW = ("scores", "labels", *OPTIONAL)
ALIKE = ("kind", "multilabel", "top1", "classes", "group_names", "split", "_provenance", "n_classes", *PER_ROW)
_WIDTHS = {"float16", "float32", "float64"}


def check_alike(first: Predictions, part: Predictions, number: int, stated: Mapping[str, Any]) -> None:
    """Refuse parts that differ in anything but their rows and what is stated for the whole."""
    for name in ALIKE:
        of_first, of_part = comparable(getattr(first, name)), comparable(getattr(part, name))
        widths = isinstance(getattr(first, name), np.ndarray) and {str(of_first), str(of_part)} <= _WIDTHS
        if of_first != of_part and name not in stated and not widths:  # of two widths the whole has the larger
            what = name.removeprefix("_")
            remedy = f"pass {what}=" if what in ("split", "provenance") else "make them alike first"
            raise ValueError(f"parts must agree in {what}, got {of_part} in part {number} after {of_first}; {remedy}")


def comparable(value: Any) -> Any:
    """What must be alike in two parts: of arrays the type."""
    if not isinstance(value, np.ndarray):
        return value
    return str(value.dtype) if value.dtype.kind in "fb" else "integers" if value.dtype.kind == "i" else "strings"
