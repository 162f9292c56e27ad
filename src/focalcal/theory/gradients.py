"""How the losses pull at the true class's logit once an example is easy (the paper, Proposition 4.1).

Everything is a function of eps = 1 - p_t, the probability left to the other classes, and keeps its relative accuracy
however small eps is: log p_t is log1p(-eps), and 1 - p_t is never formed. Every gradient is negative, so that
descent raises p_t. These are statements about one example; what holds for the population is in `calibration`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.checks import whole_number
from focalcal.theory.posteriors import above_zero, at_least_zero, one_number

if TYPE_CHECKING:
    from jaxtyping import Float

PARTS = ("focal", "l2", "l1", "ce")


@dataclass(frozen=True, eq=False)
class TrueLogitGradients:
    """d loss / d z_y, each of the shape that eps and gamma broadcast to (NumPy scalars for numbers).

    Attributes:
        focal: of the focal loss.
        l2: of the Brier anchor |p - e_y|_2^2.
        l1: of the absolute anchor |p - e_y|_1 = 2 (1 - p_t).
        ce: of the cross-entropy.

    >>> float(true_logit_gradients(0.25, gamma=2.0).l1)
    -0.375
    """

    focal: Float[np.ndarray, "*b"]
    l2: Float[np.ndarray, "*b"]
    l1: Float[np.ndarray, "*b"]
    ce: Float[np.ndarray, "*b"]


@dataclass(frozen=True)
class ScalingExponents:
    """The a in |d loss / d z_y| ~ eps^a.

    Attributes:
        focal: of the focal loss.
        l2: of the Brier anchor.
        l1: of the absolute anchor.
        ce: of the cross-entropy.

    >>> round(scaling_exponents(gamma=1.5).focal, 4)
    2.5
    """

    focal: float
    l2: float
    l1: float
    ce: float


def true_logit_gradients(eps: Any, *, gamma: Any, classes: int = 10) -> TrueLogitGradients:
    """The gradients in z_y at p_t = 1 - eps, 0 < eps < 1, the other classes sharing eps equally.

        focal  -eps^(gamma+1) (1 + gamma p_t r),  r = -log(p_t) / eps, which tends to 1
        l2     -2 p_t (eps^2 + sum of the other p_k^2) = -2 p_t eps^2 classes / (classes - 1)
        l1     -2 p_t eps
        ce     -eps

    Only l2 depends on how eps is shared: see `l2_gradient_range`.

    Args:
        eps: 1 - p_t, in (0, 1), a number or an array.
        gamma: >= 0, broadcast with eps.
        classes: K, at least 2.

    Returns:
        The four, each of the common shape.

    >>> found = true_logit_gradients([0.1, 0.01], gamma=2.0)  # focal's vanishes faster than the anchor's
    >>> found.focal.round(6), found.l2.round(6)
    (array([-2.896e-03, -3.000e-06]), array([-0.02   , -0.00022]))
    """
    eps, gamma = np.broadcast_arrays(_left_over("eps", eps), at_least_zero("gamma", gamma))
    with np.errstate(under="ignore"):
        focal = -np.power(eps, gamma + 1) * _focal_factor(eps, gamma)
        l2 = -2 * (1 - eps) * eps**2 * _share_factor(classes)
    return TrueLogitGradients(focal[()], l2[()], (-2 * (1 - eps) * eps)[()], (-eps)[()])


def l2_gradient_range(eps: Any, *, classes: int = 10) -> tuple[Float[np.ndarray, "*b"], Float[np.ndarray, "*b"]]:
    """The l2 anchor's weakest and strongest gradient over all ways to share eps, both negative.

    The others' squares sum to between eps^2 / (classes - 1), shared equally, and eps^2, all on one class; so the
    gradient lies between -2 p_t eps^2 classes / (classes - 1) and -4 p_t eps^2: eps^2 in every case.

    Args:
        eps: 1 - p_t, in (0, 1), a number or an array.
        classes: K, at least 2.

    Returns:
        The weakest and the strongest, each of the shape of eps.

    >>> [float(end.round(4)) for end in l2_gradient_range(0.1, classes=10)]
    [-0.02, -0.036]
    """
    eps = _left_over("eps", eps)
    with np.errstate(under="ignore"):
        unit = -2 * (1 - eps) * eps**2
    return (unit * _share_factor(classes))[()], (2 * unit)[()]


def scaling_exponents(
    *, gamma: float, classes: int = 10, smallest: float = 1e-12, largest: float = 1e-6
) -> ScalingExponents:
    """Slopes of log |gradient| in log eps, by least squares over 25 values of eps evenly spread in the logarithm.

    As `largest` goes to 0 they approach gamma + 1 (focal), 2 (l2), 1 (l1) and 1 (cross-entropy).

    Args:
        gamma: >= 0.
        classes: K, at least 2.
        smallest: the range's lower end, > 0.
        largest: its upper end, < 1.

    Returns:
        The four slopes.

    >>> found = scaling_exponents(gamma=2.0)
    >>> round(found.focal, 4), round(found.l2, 4), round(found.ce, 4)
    (3.0, 2.0, 1.0)
    """
    low = one_number("smallest", _left_over("smallest", smallest))
    high = one_number("largest", _left_over("largest", largest))
    if not low < high:
        raise ValueError(f"smallest must be below largest, got {low:g} and {high:g}; a slope needs a range")
    eps = np.geomspace(low, high, 25)
    gradients = true_logit_gradients(eps, gamma=one_number("gamma", at_least_zero("gamma", gamma)), classes=classes)
    least = -max(gradients.focal[0], gradients.l2[0])
    if least < np.finfo(np.float64).tiny:
        raise ValueError(
            f"smallest must leave gradients that float64 can hold, got {low:g}, where one is {least:g}; raise it"
        )
    centred = np.log(eps) - np.log(eps).mean()

    def slope(gradient: np.ndarray) -> float:
        return float(centred @ np.log(-gradient) / (centred @ centred))

    return ScalingExponents(**{name: slope(getattr(gradients, name)) for name in PARTS})


def anchor_share(eps: Any, *, gamma: Any, lam: Any, classes: int = 10) -> Float[np.ndarray, "*b"]:
    """lam l2 / (focal + lam l2): the anchor's share of FCL's true-logit gradient, the others sharing eps equally.

    As eps -> 0 it tends to 1 for gamma > 1 and to 0 for gamma < 1 (if lam > 0); at gamma = 1 the two are of one order
    and it tends to lam c / (1 + lam c), c = classes / (classes - 1). A share of two vanishing gradients: neither is
    large. Computed from the logarithm of their ratio, which neither underflows with them nor overflows.

    Args:
        eps: 1 - p_t, in (0, 1), a number or an array.
        gamma: >= 0, broadcast with eps.
        lam: >= 0, likewise.
        classes: K, at least 2.

    Returns:
        The share, in [0, 1], of the common shape.

    >>> anchor_share([0.5, 0.1, 0.001], gamma=2.0, lam=1.0).round(3)
    array([0.482, 0.873, 0.999])
    """
    eps, gamma, lam = np.broadcast_arrays(
        _left_over("eps", eps), at_least_zero("gamma", gamma), at_least_zero("lam", lam)
    )
    with np.errstate(all="ignore"):  # log 0 is meant for lam = 0, and infinite ratios have limits
        log_focal = (gamma - 1) * np.log(eps) + np.log(_focal_factor(eps, gamma))
        log_anchor = np.log(2 * (1 - eps) * _share_factor(classes)) + np.log(lam)
        return np.where(lam > 0, 1 / (1 + np.exp(log_focal - log_anchor)), 0.0)[()]


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


def _focal_factor(eps: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """1 + gamma p_t r, between 1 (eps -> 1) and 1 + gamma (eps -> 0)."""
    return 1 + gamma * (1 - eps) * (-np.log1p(-eps) / eps)


def _share_factor(classes: int) -> float:
    """1 + 1 / (classes - 1): eps^2 of the true class and as much again from the others, divided among them."""
    count = whole_number("classes", classes, least=2, remedy="eps needs another class to go to")
    return count / (count - 1)


def _left_over(name: str, values: Any) -> Float[np.ndarray, "*b"]:
    array = above_zero(name, values)
    if (array >= 1).any():
        raise ValueError(f"{name} must be below 1, got {array[array >= 1][0]:g}; it is 1 - p_t, p_t in (0, 1)")
    return array
