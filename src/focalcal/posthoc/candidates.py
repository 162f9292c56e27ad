"""Which calibrators make sense for so many rows and classes, from the simplest to the most flexible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from focalcal.core.checks import shown
from focalcal.posthoc.calibrator import Calibrator
from focalcal.posthoc.recovery import PosteriorRecovery

if TYPE_CHECKING:
    from collections.abc import Sequence

# From the fewest numbers fitted to the most: of those that cannot be told apart the first is taken.
SIMPLEST_FIRST = (
    "recovery", "temperature", "focal_temperature", "ensemble", "spline", "vector", "platt", "beta", "quadratic",
    "structured", "dirichlet", "matrix", "histogram", "centred_isotonic", "isotonic", "venn_abers",
)  # fmt: skip
# Maps of one probability, and so of a confidence whose other classes are unknown.
OF_ONE_PROBABILITY = ("platt", "histogram", "isotonic", "beta", "quadratic", "centred_isotonic", "venn_abers")
WITH_ZEROS = ("histogram", "isotonic", "centred_isotonic")  # a mean with them is noisier, and only as far from 0
_QUADRATIC = ("matrix", "dirichlet")
_MOST_CLASSES = 50  # of calibrators with K^2 numbers
_PER_CLASS = ("vector", *OF_ONE_PROBABILITY)
_ROWS_PER_CLASS = 10  # that a map of its own for every class needs


def sensible_candidates(
    names: Sequence[str] | None,
    rows: int,
    classes: int,
    *,
    trained_with: tuple[float, float] | None = None,
    top1: bool = False,
) -> tuple[dict[str, Calibrator], dict[str, str]]:
    """Unfitted calibrators by name, and why others are left out; what is named is tried whatever it costs.

    `trained_with` is (gamma, lam) of the loss, for posterior recovery; with `top1` the event is that a prediction is
    right, which calibrators of all classes cannot take.
    """
    from focalcal.posthoc import CALIBRATORS  # the package that has the table has this module, too

    chosen: dict[str, Calibrator] = {}
    left_out: dict[str, str] = {}
    for name in names or CALIBRATORS:
        if name == "recovery" and trained_with is None:
            left_out[name] = "it needs the gamma and lam that the network was trained with"
        elif names is None and name in _QUADRATIC and classes > _MOST_CLASSES:
            left_out[name] = f"it fits {classes}^2 numbers; name it to try it"
        elif names is None and name == "quadratic" and classes > 2:  # one row far out outweighs what it gains
            left_out[name] = "it is for two classes; name it to try it"
        elif names is None and name in _PER_CLASS and rows < _ROWS_PER_CLASS * classes:
            left_out[name] = f"it has a map of its own for each of {classes} classes, and there are {rows} rows"
        else:
            chosen[name] = (
                PosteriorRecovery(*trained_with) if name == "recovery" and trained_with else CALIBRATORS[name]()
            )
    if top1:
        left_out |= {name: "it needs all classes" for name in CALIBRATORS if name not in OF_ONE_PROBABILITY}
        chosen = {name: chosen[name] for name in chosen if name in OF_ONE_PROBABILITY}
    return chosen, left_out


def named_candidates(candidates: Any, rows: int, classes: int) -> tuple[dict[str, Calibrator], dict[str, str]]:
    """What a caller asked for: None for all that make sense, names of CALIBRATORS, or calibrators by own names."""
    from focalcal.posthoc import CALIBRATORS

    if candidates is None:
        return sensible_candidates(None, rows, classes)
    if isinstance(candidates, Mapping):
        wrong = [name for name, each in candidates.items() if not isinstance(each, Calibrator)]
        if wrong or not candidates:
            raise TypeError(
                f"candidates must be calibrators by name, got {shown(candidates)}; {{'T': TemperatureScaling()}}"
            )
        return dict(candidates), {}
    names = [candidates] if isinstance(candidates, str) else candidates
    if not isinstance(names, Iterable) or not (names := list(names)):
        raise TypeError(f"candidates must be names of calibrators, got {shown(candidates)}; leave it out for all")
    for name in names:
        if not isinstance(name, str) or name not in CALIBRATORS:
            raise ValueError(f"candidates must name calibrators, got {shown(name)}; known: {', '.join(CALIBRATORS)}")
    if "recovery" in names:
        raise ValueError(
            "candidates names recovery, which needs the loss's gamma and lam; pass them in a mapping, "
            "{'recovery': PosteriorRecovery(gamma, lam)}"
        )
    return sensible_candidates(names, rows, classes)
