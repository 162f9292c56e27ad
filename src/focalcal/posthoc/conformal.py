"""Conformal prediction sets: classes that hold the label with a chosen probability, whatever the network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.stats import binomtest
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from focalcal.core.arrays import like_given
from focalcal.core.checks import between_zero_and_one, finite_at_least, whole_number, yes_or_no
from focalcal.core.chunks import row_chunks
from focalcal.core.display import Displayed, text_table
from focalcal.core.numerics import softmax
from focalcal.posthoc.calibrator_inputs import labelled_rows, rows_of

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from numpy.typing import NDArray


@dataclass(frozen=True, repr=False)
class SetCoverage(Displayed):
    """How often the sets of held-out rows hold the label, with Wilson's 95 % interval, and how large they are.

    `by_size` maps the size of a set to (rows, coverage): sets that adapt cover alike at every size.
    """

    coverage: float
    low: float
    high: float
    mean_size: float
    by_size: dict[int, tuple[int, float]]

    def frame(self) -> dict[str, list[Any]]:
        """One row per size of a set."""
        rows, coverage = zip(*self.by_size.values(), strict=True)
        return {"size": list(self.by_size), "rows": list(rows), "coverage": list(coverage)}

    def __str__(self) -> str:
        """Coverage and mean size, and one line per size."""
        found = f"{self.coverage:.4f} [{self.low:.4f}, {self.high:.4f}]"
        return f"coverage {found}, {self.mean_size:.2f} classes per set\n{text_table(self.frame())}"


class ConformalSets(BaseEstimator):  # type: ignore[misc]
    """Adaptive prediction sets (APS), regularised (RAPS) where `penalty` > 0.

    With the classes of a row sorted by falling probability p_(1) >= p_(2) >= ..., the score of the class of rank r is

        s = p_(1) + ... + p_(r-1) + u p_(r) + penalty * max(0, r - free_ranks),      u uniform in [0, 1),

    and the set holds every class of score at most `threshold_`, the ceil((n + 1)(1 - alpha))-th smallest score of the n
    fitted labels. If new rows are exchangeable with the fitted ones, the set holds the label with probability at least
    1 - alpha, and at most 1 - alpha + 1 / (n + 1) while no set had to be filled. Without `randomized` u is 1: the sets
    do not depend on chance and are larger. An empty set is filled with its first class unless `allow_empty`.

    Fit on rows that neither trained the network nor fitted a calibrator: `probs=calibrator.predict_proba(...)` makes
    sets of calibrated probabilities.

    References: Romano, Sesia and Candes (2020), "Classification with valid and adaptive coverage"; Angelopoulos, Bates,
    Malik and Jordan (2021), "Uncertainty sets for image classifiers using conformal prediction".

    >>> import numpy as np
    >>> logits = np.log([[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.4, 0.4, 0.2]])
    >>> sets = ConformalSets(alpha=0.2, randomized=False).fit(logits, [0, 1, 0, 0])
    >>> round(sets.threshold_, 6)
    0.8
    >>> sets.predict(np.log([[0.75, 0.15, 0.1], [0.5, 0.3, 0.2]]))
    array([[ True, False, False],
           [ True,  True, False]])
    """

    threshold_: float
    n_features_in_: int
    _one_column = False  # whether scores were those of the positive class alone

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        penalty: float = 0.0,
        free_ranks: int = 1,
        randomized: bool = True,
        allow_empty: bool = False,
        seed: int = 0,
    ) -> None:
        self.alpha = alpha
        self.penalty = penalty
        self.free_ranks = free_ranks
        self.randomized = randomized
        self.allow_empty = allow_empty
        self.seed = seed

    def fit(self, logits: Any = None, labels: Any = None, *, probs: Any = None) -> Self:
        """Find the threshold from held-out logits (or probs) (N, K) and labels (N,), or from `Predictions`."""
        self._check_params()
        rows = labelled_rows(logits, labels, probs=probs, least_classes=1)
        scores, index = rows.logits, rows.labels
        assert index is not None
        rank = math.ceil((len(scores) + 1) * (1 - self.alpha) - 1e-9)  # 20 * 0.95 is 19, not 19.000000000000004
        if rank > len(scores):
            raise ValueError(
                f"alpha must be at least 1 / (N + 1) = {1 / (len(scores) + 1):.3g} for {len(scores)} rows, got "
                f"{self.alpha!r}; fit on at least {math.ceil(1 / self.alpha) - 1} rows, or ask for less coverage"
            )
        conformity = self._conformity(scores, self._uniform(len(scores), stream=0))
        label_scores = conformity[np.arange(len(index)), index]
        self.threshold_ = float(np.partition(label_scores, rank - 1)[rank - 1])
        self.n_features_in_ = scores.shape[1]
        self._one_column = rows.one_column
        return self

    def predict(self, logits: Any = None, *, probs: Any = None, u: Any = None) -> Any:
        """The sets, a boolean (N, K); `u` (N,) replaces the uniform numbers that `seed` gives the rows in order."""
        check_is_fitted(self, "threshold_")
        scores = rows_of(logits, probs, one_column=self._one_column).logits
        if scores.shape[1] != self.n_features_in_:
            raise ValueError(
                f"the scores must have {self.n_features_in_} columns (classes) as at fit, got {scores.shape[1]}; "
                "fit other sets for this network"
            )
        uniform = self._uniform(len(scores), stream=1) if u is None else np.asarray(u, dtype=np.float64)
        if uniform.shape != (len(scores),) or not ((uniform >= 0) & (uniform <= 1)).all():
            raise ValueError(f"u must hold one number in [0, 1] per row, {len(scores)} in all, got {u!r}")
        return like_given(logits if probs is None else probs, self._sets(scores, uniform))

    def evaluate(self, logits: Any = None, labels: Any = None, *, probs: Any = None) -> SetCoverage:
        """Coverage and size of the sets of other held-out rows."""
        rows = labelled_rows(logits, labels, probs=probs, least_classes=1)
        assert rows.labels is not None
        index = rows.labels
        sets = self.predict(**{rows.kind: rows.scores})
        hit, size = sets[np.arange(len(index)), index], sets.sum(1)
        interval = binomtest(int(hit.sum()), len(hit)).proportion_ci(method="wilson")
        by_size = {int(k): (int((size == k).sum()), float(hit[size == k].mean())) for k in np.unique(size)}
        return SetCoverage(float(hit.mean()), float(interval.low), float(interval.high), float(size.mean()), by_size)

    def _sets(self, logits: Float[np.ndarray, "n k"], uniform: NDArray[np.float64]) -> Bool[np.ndarray, "n k"]:
        sets = self._conformity(logits, uniform) <= self.threshold_
        if not self.allow_empty:
            empty = ~sets.any(1)
            sets[empty, logits[empty].argmax(1)] = True
        return sets

    def _conformity(self, logits: Float[np.ndarray, "n k"], uniform: NDArray[np.float64]) -> Float[np.ndarray, "n k"]:
        """The score of every class, in float64; of equal probabilities the first class comes first."""
        scores = np.empty(logits.shape)
        past = np.maximum(np.arange(1, logits.shape[1] + 1) - self.free_ranks, 0)
        for start, rows in row_chunks(logits):
            u = uniform[start : start + len(rows), None]
            probs = softmax(rows.astype(np.float64))
            order = np.argsort(-probs, axis=1, kind="stable")
            probs = np.take_along_axis(probs, order, 1)
            ranked = probs.cumsum(1) - (1 - u) * probs + self.penalty * past
            np.put_along_axis(scores[start : start + len(rows)], order, ranked, 1)
        return scores

    def _uniform(self, rows: int, *, stream: int) -> NDArray[np.float64]:
        """One number per row; fitting and predicting draw from streams of their own."""
        if not self.randomized:
            return np.ones(rows)
        return np.random.default_rng([int(self.seed), stream]).random(rows)

    def _check_params(self) -> None:
        between_zero_and_one("alpha", self.alpha, remedy="0.1 asks for sets that hold the label in 90 % of rows")
        finite_at_least("penalty", self.penalty, 0.0)
        whole_number(
            "free_ranks", self.free_ranks, least=0, most=10**6, remedy="it is how many classes go without penalty"
        )
        yes_or_no("randomized", self.randomized)
        yes_or_no("allow_empty", self.allow_empty)
        whole_number("seed", self.seed, least=0, remedy="the sets have to be repeatable")
