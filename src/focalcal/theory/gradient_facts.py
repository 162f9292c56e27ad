"""How FCL's parts pull at the true class's logit of easy examples, gathered: the paper's Proposition 4.1 in numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.theory.gradients import (
    ScalingExponents,
    TrueLogitGradients,
    anchor_share,
    scaling_exponents,
    true_logit_gradients,
)

if TYPE_CHECKING:
    from jaxtyping import Float


PARTS = ("focal", "l2", "l1", "ce")


@dataclass(frozen=True)
class GradientFacts:
    """For each eps = 1 - p_t the gradients in z_y and the anchor's share of FCL's; their exponents in eps.

    `fitted` is the range of eps over which the exponents are: they approach their limits as it goes to 0.
    """

    gamma: float
    lam: float
    classes: int
    eps: Float[np.ndarray, " n"]
    gradients: TrueLogitGradients
    share: Float[np.ndarray, " n"]
    exponents: ScalingExponents
    fitted: tuple[float, float]

    def record(self) -> dict[str, Any]:
        """For JSON."""
        columns = {"eps": self.eps, **{name: getattr(self.gradients, name) for name in PARTS}}
        rows = [dict(zip(columns, row, strict=True)) for row in np.stack([*columns.values()], 1).tolist()]
        return {
            "gamma": self.gamma,
            "lam": self.lam,
            "classes": self.classes,
            "gradients": [row | {"anchor_share": share} for row, share in zip(rows, self.share.tolist(), strict=True)],
            "exponents": asdict(self.exponents),
            "fitted": list(self.fitted),
        }


def gradient_facts(eps: Any, *, gamma: float, lam: float, classes: int = 10) -> GradientFacts:
    """The facts at eps (N,), the other classes sharing eps equally.

    The exponents are fitted over eps from 1e-12 to 1e-6, or where these gradients are still above float64's smallest.
    """
    at = np.atleast_1d(np.asarray(eps, dtype=np.float64))
    gradients = true_logit_gradients(at, gamma=gamma, classes=classes)
    smallest = max(1e-12, 10.0 ** (-300 / (gamma + 1)))
    largest = max(1e-6, smallest**0.5)
    return GradientFacts(
        gamma=float(gamma),
        lam=float(lam),
        classes=classes,
        eps=at,
        gradients=gradients,
        share=anchor_share(at, gamma=gamma, lam=lam, classes=classes),
        exponents=scaling_exponents(gamma=gamma, classes=classes, smallest=smallest, largest=largest),
        fitted=(smallest, largest),
    )
