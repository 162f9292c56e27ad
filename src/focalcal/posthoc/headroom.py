"""How much there is to gain: a proper score split into what a map of the scores can repair and what none can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.checks import one_of
from focalcal.core.display import Displayed, text_table
from focalcal.core.numerics import softmax
from focalcal.posthoc.choice import asked, refuse_none
from focalcal.posthoc.comparison import CalibratorCandidate, Rated, Score
from focalcal.stats import PairedInterval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.core.arrays import PerRow
    from focalcal.posthoc.calibrator import Calibrator

NONE = "none"  # the map that leaves scores as they are


@dataclass(frozen=True)
class HeadroomPart:
    """Some rows, and their part of the calibration error: parts of all rows add up to the whole.

    `gain` has the interval of these rows' mean, times their share of all rows; a part of one row has none.
    """

    name: str
    rows: int
    gain: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class Headroom(Displayed):
    """total = refinement + calibration, each a mean over rows of the score that is named.

    Attributes:
        score: "nll" or "brier".
        total: of the scores as they are.
        refinement: what is left after the best cross-fitted map: for the log score nats that only better scores can
            gain.
        calibration: what that map gains, with its 95 % interval, paired over rows (or over groups).
        over, under: the parts of the rows whose confidence the map lowers, and of the others.
        classes: the part of each predicted class that occurs, the largest first.
        maps: in how many of the five folds each calibrator was the best of the other four.
        rows: how many were looked at.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(2000, 3))
    >>> labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    >>> found = headroom(2 * logits, labels, candidates=["temperature"])
    >>> bool(np.isclose(found.total, found.refinement + found.calibration.mean))
    True
    """

    score: Score
    total: float
    refinement: float
    calibration: PairedInterval
    over: HeadroomPart
    under: HeadroomPart
    classes: tuple[HeadroomPart, ...]
    maps: dict[str, int]
    rows: int

    @property
    def sentence(self) -> str:
        """The split in words."""
        change, name = self.calibration, "NLL" if self.score == "nll" else "Brier score"
        unit = " nats" if self.score == "nll" else ""
        share = f", {100 * change.mean / self.total:.1f} % of it" if change.mean > 0 else ""
        finding = "" if change.low > 0 else ": nothing that these rows can show"
        return (
            f"Of the {name} of {self.total:.4f}{unit} a map of the scores gains {change.mean:.4f} "
            f"[{change.low:.4f}, {change.high:.4f}]{share}{finding}; {self.refinement:.4f} is refinement, which only "
            f"better scores can lower ({self.rows:,} rows, judged by maps fitted on others)."
        )

    def frame(self) -> dict[str, list[Any]]:
        """One row per part: all rows, those that are over- and under-confident, and each predicted class."""
        whole = HeadroomPart("all", self.rows, self.calibration.mean, self.calibration.low, self.calibration.high)
        parts = [whole, self.over, self.under, *self.classes]
        columns = {"part": "name", "rows": "rows", "gain": "gain", "low": "low", "high": "high"}
        return {title: [getattr(part, name) for part in parts] for title, name in columns.items()}

    def as_dict(self) -> dict[str, float]:
        """The numbers by name."""
        return {
            "total": self.total,
            "refinement": self.refinement,
            "calibration": self.calibration.mean,
            "calibration_low": self.calibration.low,
            "calibration_high": self.calibration.high,
            "over": self.over.gain,
            "under": self.under.gain,
        }

    def __str__(self) -> str:
        """The sentence and the parts."""
        return f"{self.sentence}\n{text_table(self.frame())}"


def headroom(
    logits: Any = None,
    labels: Any = None,
    *,
    probs: Any = None,
    score: Score = "nll",
    sample_weight: Any = None,
    candidates: Mapping[str, Calibrator] | Sequence[str] | str | None = None,
    groups: Any = None,
    seed: int = 0,
    classes: Sequence[Any] | None = None,
    positive: Any = None,
    ignore_index: int | None = None,
) -> Headroom:
    """The calibration error in nats: how much of the NLL (or Brier score) the best map of the scores would gain.

    For a proper score the largest gain of any map of the scores s is their calibration error, E d(E[Y | s], s), d the
    Kullback-Leibler divergence or the squared distance (Murphy 1973; Broecker 2009); the rest is refinement. It has no
    bins. It is estimated from below: by the best of several calibrators, each row judged by maps that were fitted on
    other folds, and in each fold by the calibrator that was best on the other folds. So fitting noise never looks like
    a gain, and a map that no candidate comes near is missed.

    Args:
        logits, probs: (N, K), one of them, or in any other form that calibrators take.
        labels: (N,) of held-out rows.
        score: "nll" or "brier".
        sample_weight: (N,) how often each row counts.
        candidates: as for `calibrate`.
        groups: (N,) names of rows that belong together.
        seed: of the order of the rows; of more than 20,000 that many are drawn.
        classes, positive, ignore_index: as for `Calibrator.fit`.

    Returns:
        What a map would gain, what is left, and for which rows.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(5000, 3))
    >>> labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    >>> found = headroom(2 * logits, labels, candidates=["temperature", "vector"])  # twice too confident
    >>> sum(found.maps.values())
    5
    >>> found.over.gain > 0.8 * found.calibration.mean > 0.05
    True
    """
    one_of("score", score, ("nll", "brier"))
    about: dict[str, Any] = {"classes": classes, "positive": positive, "ignore_index": ignore_index}
    rated, calibrators, left_out, names = asked(logits, labels, probs, sample_weight, candidates, groups, seed, **about)
    raw = rated.losses[score]
    if infinite := int(np.isinf(raw).sum()):
        raise ValueError(
            f"{rated.kind} must give what happened a probability above 0 in every row, got 0 in {infinite} rows, whose "
            "NLL is infinite; pass score='brier', or clip probs"
        )
    tried, failed = rated.candidates(calibrators, score)
    refuse_none(tried, {**left_out, **failed})
    loss, confidence, maps = _best_of_other_folds(rated, tried, score)
    gain, predicted = raw - loss, rated.scores.argmax(1)
    lowered = confidence < _confidence(rated)
    calibration = rated.change(gain)
    of = names if names is not None and len(names) == rated.scores.shape[1] else range(rated.scores.shape[1])
    each = [_part(rated, gain, predicted == k, str(of[k])) for k in np.unique(predicted).tolist()]
    return Headroom(
        score=score,
        total=rated.raw(score),
        refinement=rated.raw(score) - calibration.mean,
        calibration=calibration,
        over=_part(rated, gain, lowered, "over-confident"),
        under=_part(rated, gain, ~lowered, "under-confident"),
        classes=tuple(sorted(each, key=lambda part: -part.gain)),
        maps=maps,
        rows=rated.rows,
    )


def _best_of_other_folds(
    rated: Rated, tried: Sequence[CalibratorCandidate], score: Score
) -> tuple[NDArray[np.float64], NDArray[np.float64], dict[str, int]]:
    """Loss and confidence of every row under the map of least loss on the rows of the other folds; a map may be none.

    Maps that give some row's label 0 are no candidates: which fold that row is in is chance.
    """
    raw = (NONE, rated.losses[score], _confidence(rated))
    maps = [raw, *((each.name, each.row_losses[score], each.confidence) for each in tried)]
    maps = [each for each in maps if np.isfinite(each[1]).all()]
    loss, confidence, used = np.empty(rated.rows), np.empty(rated.rows), []
    weights = np.ones(rated.rows) if rated.weights is None else rated.weights
    for fold in rated.folds():
        others = weights.copy()
        others[fold] = 0.0
        name, losses, own = min(maps, key=lambda each: float(others @ each[1]))
        loss[fold], confidence[fold] = losses[fold], own[fold]
        used.append(name)
    return loss, confidence, dict(Counter(used).most_common())


def _confidence(rated: Rated) -> PerRow:
    probs = rated.scores if rated.kind == "probs" else softmax(rated.scores)
    return probs.max(1)


def _part(rated: Rated, gain: NDArray[np.float64], at: NDArray[np.bool_], name: str) -> HeadroomPart:
    share = rated.mean(at.astype(np.float64))
    part = rated.part(at)
    if part.rows == 0:
        return HeadroomPart(name, 0, 0.0, 0.0, 0.0)
    if part.rows == 1 or (part.units is not None and (part.units == part.units[0]).all()):
        return HeadroomPart(name, part.rows, share * part.mean(gain[at]), float("nan"), float("nan"))
    change = part.change(gain[at])
    return HeadroomPart(name, part.rows, share * change.mean, share * change.low, share * change.high)
