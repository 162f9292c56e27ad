"""T_pop over lam for several gamma, around an operating point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focalcal.theory.temperature import effective_temperature

if TYPE_CHECKING:
    from jaxtyping import Float

    from focalcal.posthoc.operating_point import OperatingPoint

LAMS = (0.0, *(2.0 ** np.arange(-5, 8)).tolist())
_ELEMENTS = 1 << 16  # a curve is no finer than its line


@dataclass(frozen=True, eq=False)
class TemperatureCurves:
    """temperatures[g, l] = T_pop(gammas[g], lams[l]) over the posteriors of `point`; lams begin with 0."""

    point: OperatingPoint
    gammas: Float[np.ndarray, " g"]
    lams: Float[np.ndarray, " l"]
    temperatures: Float[np.ndarray, "g l"]


def temperature_curves(
    point: OperatingPoint, *, gammas: Sequence[float] | None = None, lams: Sequence[float] = LAMS
) -> TemperatureCurves:
    """Curves for the gammas of the point's `matches`, or for those given, over evenly many of its posteriors."""
    stride = -(-point.posteriors.size // _ELEMENTS)
    focus = np.array([match.gamma for match in point.matches] if gammas is None else gammas, dtype=np.float64)
    anchor = np.array(lams, dtype=np.float64)
    temperatures = effective_temperature(point.posteriors[::stride], gamma=focus[:, None], lam=anchor)
    return TemperatureCurves(point, focus, anchor, temperatures)
