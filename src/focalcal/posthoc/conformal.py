"""Conformal prediction sets: classes that hold the label with a chosen probability, whatever the network."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from focalcal.core.arrays import like_given
from focalcal.core.checks import between_zero_and_one, finite_at_least, one_of, warn, whole_number, yes_or_no
from focalcal.core.chunks import row_chunks
from focalcal.core.display import Displayed, text_table
from focalcal.core.numerics import softmax
from focalcal.metrics.reliability import wilson
from focalcal.posthoc.calibrator import CalibrationWarning
from focalcal.posthoc.calibrator_inputs import labelled_rows, rows_of
from focalcal.posthoc.estimator import Estimator, check_fitted
from focalcal.posthoc.group_names import one_group_column

if TYPE_CHECKING:
    from jaxtyping import Bool
    from numpy.typing import NDArray

    from focalcal.core.arrays import Labels, Scores


class PartCoverage(NamedTuple):
    """Coverage of some rows with Wilson's 95 % interval, and the mean size of their sets."""

    rows: int
    coverage: float
    low: float
    high: float
    mean_size: float


@dataclass(frozen=True, repr=False)
class SetCoverage(Displayed):
    """How often the sets of held-out rows hold the label, with Wilson's 95 % interval, and how large they are.

    Attributes:
        coverage: the share of rows whose set holds the label.
        low: the lower end of its interval.
        high: the upper one.
        mean_size: of the sets, in classes.
        by_size: (rows, coverage) of each size: sets that adapt cover alike at every one.
        by_class: the `PartCoverage` of the rows with each label.
        by_group: likewise of each group, if groups were given.

    >>> from focalcal.posthoc import ConformalSets
    >>> probs, labels = [[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.4, 0.4, 0.2]], [0, 1, 0, 0]
    >>> sets = ConformalSets(alpha=0.2, randomized=False).fit(probs=probs, labels=labels)
    >>> found = sets.evaluate(probs=probs, labels=labels)
    >>> found.coverage, found.mean_size
    (1.0, 1.25)
    """

    coverage: float
    low: float
    high: float
    mean_size: float
    by_size: dict[int, tuple[int, float]]
    by_class: dict[Any, PartCoverage] = field(default_factory=dict)
    by_group: dict[Any, PartCoverage] = field(default_factory=dict)

    def frame(self) -> dict[str, list[Any]]:
        """One row per size of a set."""
        rows, coverage = zip(*self.by_size.values(), strict=True)
        return {"size": list(self.by_size), "rows": list(rows), "coverage": list(coverage)}

    def parts(self) -> dict[str, list[Any]]:
        """One row per class and per group."""
        each = [("class", *item) for item in self.by_class.items()] + [
            ("group", *item) for item in self.by_group.items()
        ]
        columns: dict[str, list[Any]] = {"part": [part for part, _, _ in each], "name": [name for _, name, _ in each]}
        return columns | {name: [getattr(found, name) for _, _, found in each] for name in PartCoverage._fields}

    def __str__(self) -> str:
        """Coverage and mean size, the worst class and group, and one line per size."""
        found = [
            f"coverage {self.coverage:.4f} [{self.low:.4f}, {self.high:.4f}], {self.mean_size:.2f} classes per set"
        ]
        for kind, parts in (("class", self.by_class), ("group", self.by_group)):
            if parts:
                name, part = min(parts.items(), key=lambda item: item[1].coverage)
                found.append(
                    f"least in {kind} {name}: {part.coverage:.4f} [{part.low:.4f}, {part.high:.4f}], "
                    f"{part.mean_size:.2f} classes per set"
                )
        return "\n".join([*found, text_table(self.frame())])


def set_coverage(
    sets: Bool[np.ndarray, "n k"], labels: Labels, groups: Any, names: tuple[Any, ...] | None
) -> SetCoverage:
    """Of sets and labels, with the names of the classes and one group per row if there are any."""
    hit, size = sets[np.arange(len(labels)), labels], sets.sum(1)
    whole = _part(hit, size)
    by_size = {int(k): (int((size == k).sum()), float(hit[size == k].mean())) for k in np.unique(size)}
    by_class = {
        int(k) if names is None else names[k]: _part(hit[labels == k], size[labels == k]) for k in np.unique(labels)
    }
    by_group = {}
    if groups is not None:
        each, member = np.unique(groups, return_inverse=True)
        by_group = {name: _part(hit[member == at], size[member == at]) for at, name in enumerate(each.tolist())}
    return SetCoverage(whole.coverage, whole.low, whole.high, whole.mean_size, by_size, by_class, by_group)


def _part(hit: Bool[np.ndarray, " n"], size: Labels) -> PartCoverage:
    low, high = wilson(hit.sum(), np.array(len(hit)))
    return PartCoverage(len(hit), float(hit.mean()), float(low), float(high), float(size.mean()))


class ConformalSets(Estimator):
    """Prediction sets: adaptive (APS), regularised (RAPS) where `penalty` > 0, or the smallest ones (LAC).

    With the classes of a row sorted by falling probability p_(1) >= p_(2) >= ..., the score of the class of rank r is

        s = p_(1) + ... + p_(r-1) + u p_(r) + penalty * max(0, r - free_ranks),      u uniform in [0, 1),

    and the set holds every class of score at most `threshold_`, the ceil((n + 1)(1 - alpha))-th smallest score of the n
    fitted labels. If new rows are exchangeable with the fitted ones, the set holds the label with probability at least
    1 - alpha, and at most 1 - alpha + 1 / (n + 1) while no set had to be filled. Without `randomized` u is 1: the sets
    do not depend on chance and are larger. An empty set is filled with its first class unless `allow_empty`.
    With `score="lac"` the score of class k is 1 - p_k: the smallest sets on average, which cover hard rows less often.

    The promise is for all rows together. `mondrian="class"` has a threshold for every class, fitted on the rows with
    that label, and promises 1 - alpha for the rows of each class; `mondrian="group"` has one for every group of
    `groups=` and promises it for each group. What has fewer than 1 / alpha - 1 rows gets an infinite threshold (its
    class is in every set, its rows' sets hold all classes), with a `CalibrationWarning`. A group that is seen at
    prediction only is given the threshold of all rows, which promises nothing for it; one warning says so.

    Attributes: `threshold_`, of all rows; `class_thresholds_` (K,) or `group_thresholds_`, a dict, where asked for.

    Fit on rows that neither trained the network nor fitted a calibrator: `probs=calibrator.predict_proba(...)` makes
    sets of calibrated probabilities.

    References: Romano, Sesia and Candes (2020), "Classification with valid and adaptive coverage"; Angelopoulos, Bates,
    Malik and Jordan (2021), "Uncertainty sets for image classifiers using conformal prediction"; Sadinle, Lei and
    Wasserman (2019), "Least ambiguous set-valued classifiers with bounded error levels"; Vovk (2012), "Conditional
    validity of inductive conformal predictors".

    Args:
        alpha: the share of rows whose set may miss the label.
        score: "aps", or "lac".
        mondrian: "class" or "group" for a threshold for each, None for one for all.
        penalty: of every rank beyond `free_ranks`, for RAPS.
        free_ranks: how many ranks have none.
        randomized: False for sets without chance.
        allow_empty: True leaves an empty set as it is.
        seed: of u.

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
    class_thresholds_: NDArray[np.float64]
    group_thresholds_: dict[Any, float]
    n_features_in_: int
    _one_column = False  # whether scores were those of the positive class alone
    _said: frozenset[Any] = frozenset()  # groups that a warning has named

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        score: Literal["aps", "lac"] = "aps",
        mondrian: Literal["class", "group"] | None = None,
        penalty: float = 0.0,
        free_ranks: int = 1,
        randomized: bool = True,
        allow_empty: bool = False,
        seed: int = 0,
    ) -> None:
        self.alpha = alpha
        self.score = score
        self.mondrian = mondrian
        self.penalty = penalty
        self.free_ranks = free_ranks
        self.randomized = randomized
        self.allow_empty = allow_empty
        self.seed = seed

    def fit(self, logits: Any = None, labels: Any = None, *, probs: Any = None, groups: Any = None) -> Self:
        """Find the thresholds from held-out logits (or probs) (N, K) and labels (N,), or from `Predictions`.

        `groups` (N,) are the names of the rows' groups, for `mondrian="group"`.
        """
        self._check_params()
        rows = labelled_rows(logits, labels, probs=probs, least_classes=1)
        scores, index = rows.logits, rows.labels
        if self._rank(len(scores)) > len(scores):
            raise ValueError(
                f"alpha must be at least 1 / (N + 1) = {1 / (len(scores) + 1):.3g} for {len(scores)} rows, got "
                f"{self.alpha!r}; fit on at least {math.ceil(1 / self.alpha) - 1} rows, or ask for less coverage"
            )
        conformity = self._conformity(scores, self._uniform(len(scores), stream=0))
        own = conformity[np.arange(len(index)), index]
        self.threshold_ = self._threshold(own)
        self._said = frozenset()
        if self.mondrian == "class":
            each = [self._threshold(own[index == k]) for k in range(scores.shape[1])]
            self.class_thresholds_ = np.array(each)
            self._warn_of_few("class", dict(enumerate(each)))
        elif self.mondrian == "group":
            names, member = np.unique(one_group_column(groups, len(scores)), return_inverse=True)
            self.group_thresholds_ = {
                name: self._threshold(own[member == at]) for at, name in enumerate(names.tolist())
            }
            self._warn_of_few("group", self.group_thresholds_)
        self.n_features_in_ = scores.shape[1]
        self._one_column = rows.one_column
        return self

    def predict(self, logits: Any = None, *, probs: Any = None, groups: Any = None, u: Any = None) -> Any:
        """The sets, a boolean (N, K); `u` (N,) replaces the uniform numbers that `seed` gives the rows in order."""
        check_fitted(self, "threshold_")
        scores = rows_of(logits, probs, one_column=self._one_column).logits
        if scores.shape[1] != self.n_features_in_:
            raise ValueError(
                f"the scores must have {self.n_features_in_} columns (classes) as at fit, got {scores.shape[1]}; "
                "fit other sets for this network"
            )
        uniform = self._uniform(len(scores), stream=1) if u is None else np.asarray(u, dtype=np.float64)
        if uniform.shape != (len(scores),) or not ((uniform >= 0) & (uniform <= 1)).all():
            raise ValueError(f"u must hold one number in [0, 1] per row, {len(scores)} in all, got {u!r}")
        thresholds = self._thresholds(groups, len(scores))
        return like_given(logits if probs is None else probs, self._sets(scores, uniform, thresholds))

    def evaluate(self, logits: Any = None, labels: Any = None, *, probs: Any = None, groups: Any = None) -> SetCoverage:
        """Coverage and size of the sets of other held-out rows: in all, by class, and by group if given `groups`."""
        rows = labelled_rows(logits, labels, probs=probs, least_classes=1)
        sets = self.predict(**{rows.kind: rows.scores}, groups=groups)
        each = None if groups is None else one_group_column(groups, len(rows.labels))
        return set_coverage(sets, rows.labels, each, rows.classes)

    def _rank(self, rows: int) -> int:
        """Which of the scores is the threshold."""
        return math.ceil((rows + 1) * (1 - self.alpha) - 1e-9)  # 20 * 0.95 is 19, not 19.000000000000004

    def _threshold(self, scores: NDArray[np.float64]) -> float:
        """Of some labels' scores; infinite if they are too few to promise anything."""
        rank = self._rank(len(scores))
        return math.inf if rank > len(scores) else float(np.partition(scores, rank - 1)[rank - 1])

    def _warn_of_few(self, kind: str, thresholds: dict[Any, float]) -> None:
        few = [name for name, threshold in thresholds.items() if threshold == math.inf]
        if few:
            effect = "they are in every set" if kind == "class" else "their sets hold all classes"
            warn(
                f"{len(few)} of {len(thresholds)} {kind}(es) have fewer than {math.ceil(1 / self.alpha) - 1} rows, "
                f"{few[0]!r} among them, so that {effect}; fit on more rows of each, or ask for less coverage",
                CalibrationWarning,
            )

    def _thresholds(self, groups: Any, rows: int) -> Any:
        """What the scores are compared with: one number, one per class (K,), or one per row (N, 1)."""
        if self.mondrian == "class":
            return self.class_thresholds_
        if self.mondrian is None:
            return self.threshold_
        names, member = np.unique(one_group_column(groups, rows), return_inverse=True)
        new = frozenset(names.tolist()) - self.group_thresholds_.keys()
        if new - self._said:
            self._said |= new
            warn(
                f"groups must be those of the fit for a promise, got {sorted(map(str, new))[0]!r} ({len(new)} such), "
                "which is given the threshold of all rows; fit on rows of it",
                CalibrationWarning,
            )
        each = np.array([self.group_thresholds_.get(name, self.threshold_) for name in names.tolist()])
        return each[member][:, None]

    def _sets(self, logits: Scores, uniform: NDArray[np.float64], thresholds: Any) -> Bool[np.ndarray, "n k"]:
        sets: Bool[np.ndarray, "n k"] = self._conformity(logits, uniform) <= thresholds
        if not self.allow_empty:
            empty = ~sets.any(1)
            sets[empty, logits[empty].argmax(1)] = True
        return sets

    def _conformity(self, logits: Scores, uniform: NDArray[np.float64]) -> Scores:
        """The score of every class, in float64; of equal probabilities the first class comes first."""
        scores = np.empty(logits.shape)
        past = np.maximum(np.arange(1, logits.shape[1] + 1) - self.free_ranks, 0)
        for start, rows in row_chunks(logits):
            u = uniform[start : start + len(rows), None]
            probs = softmax(rows.astype(np.float64))
            if self.score == "lac":
                scores[start : start + len(rows)] = 1 - probs
                continue
            order = np.argsort(-probs, axis=1, kind="stable")
            probs = np.take_along_axis(probs, order, 1)
            ranked = probs.cumsum(1) - (1 - u) * probs + float(self.penalty) * past
            np.put_along_axis(scores[start : start + len(rows)], order, ranked, 1)
        return scores

    def _uniform(self, rows: int, *, stream: int) -> NDArray[np.float64]:
        """One number per row; fitting and predicting draw from streams of their own."""
        if not self.randomized:
            return np.ones(rows)
        return np.random.default_rng([int(self.seed), stream]).random(rows)

    def _check_params(self) -> None:
        between_zero_and_one("alpha", self.alpha, remedy="0.1 asks for sets that hold the label in 90 % of rows")
        one_of("score", self.score, ("aps", "lac"))
        one_of("mondrian", self.mondrian, (None, "class", "group"))
        if finite_at_least("penalty", self.penalty, 0.0) > 0 and self.score == "lac":
            raise ValueError(f"penalty is for score='aps', got {self.penalty!r} with 'lac'; leave one of them out")
        whole_number(
            "free_ranks", self.free_ranks, least=0, most=10**6, remedy="it is how many classes go without penalty"
        )
        yes_or_no("randomized", self.randomized)
        yes_or_no("allow_empty", self.allow_empty)
        whole_number("seed", self.seed, least=0, remedy="the sets have to be repeatable")
