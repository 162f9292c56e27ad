"""The least confidence to answer at, so that the error among answers is bounded with a stated probability."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, betaincinv

from focalcal.core.checks import between_zero_and_one, whole_number
from focalcal.core.display import Displayed
from focalcal.predictions.inputs import read_inputs


@dataclass(frozen=True, repr=False)
class SelectiveThreshold(Displayed):
    """Where to answer and where to abstain, and what was shown of the answers.

    Attributes:
        risk: the largest error among answers that was asked for.
        delta: the probability that the promise fails.
        threshold: answer where the confidence is above it: -inf answers all, None means that none could be shown.
        coverage: the share of the rows that are answered.
        answered: how many these are.
        errors: how many of these are wrong.
        bound: of the error among answers, which holds with probability 1 - delta, over the rows that were drawn.
        rows: of which it was found.

    >>> import numpy as np
    >>> found = selective_threshold(np.linspace(0, 1, 1000), np.linspace(0, 1, 1000) > 0.3)
    >>> found.accepts([0.1, 0.9]), bool(found.bound <= found.risk)
    (array([False,  True]), True)
    """

    risk: float
    delta: float
    threshold: float | None
    coverage: float
    answered: int
    errors: int
    bound: float
    rows: int

    def accepts(self, confidence: Any) -> NDArray[np.bool_]:
        """Whether to answer, for confidences of any shape."""
        values = np.asarray(confidence)
        return np.zeros(values.shape, bool) if self.threshold is None else np.asarray(values > self.threshold)

    @property
    def sentence(self) -> str:
        """What to do, and what is promised."""
        promise = f"with probability {100 * (1 - self.delta):g} %"
        if self.threshold is None:
            return (
                f"No threshold on the confidence can be shown to keep the error of answers at {100 * self.risk:g} % or "
                f"less {promise}: too many of the {self.rows:,} rows are wrong at any confidence, or they are too few."
            )
        rule = "Answer always" if self.threshold == -math.inf else f"Answer above a confidence of {self.threshold:.4g}"
        return (
            f"{rule}: {100 * self.coverage:.1f} % of rows are answered, {self.errors:,} of {self.answered:,} wrongly, "
            f"and of new rows at most {100 * self.risk:g} % of the answers are wrong, {promise} over the draw of these "
            f"{self.rows:,}."
        )


def selective_threshold(
    confidence: Any, correct: Any, *, risk: float = 0.05, delta: float = 0.1, candidates: int = 16
) -> SelectiveThreshold:
    """The threshold t that answers most, such that P(wrong | confidence > t) <= risk with probability >= 1 - delta.

    The guarantee is exact for any number of rows, any model and ties. Let m_1 < ... < m_J be ranks that are fixed
    before the rows are looked at, t_j the m_j-th largest confidence (t_J = -inf), k_j the number of rows above t_j and
    e_j that of the wrong ones among them. The event that t_j = t and k_j = k says only how many rows are above, at and
    below t: given it, the k rows above are independent draws from the population above t, so that e_j is binomial
    (k, R(t)), R(t) = P(wrong | confidence > t). With p_j = P(Bin(k_j, risk) <= e_j) therefore
    P(p_j <= delta / J and R(t_j) > risk) <= delta / J, and by the union bound the probability that any t_j with
    p_j <= delta / J has R(t_j) > risk is at most delta. The loosest of these is returned.

    Ranks, not thresholds, are fixed: an order in which tests stop at the first failure would be no valid sequence here.
    Nothing is promised for a subgroup, nor for rows of another distribution.

    Args:
        confidence: (n,) of held-out rows that are independent of each other and were not fitted on: one row per
            question.
        correct: (n,) whether each prediction is right.
        risk: the largest error among the answered rows.
        delta: the probability, over the held-out rows, that the promise fails.
        candidates: how many coverages are tried, evenly spaced from the fewest rows that can prove anything to all
            rows.

    Returns:
        The threshold, what it answers, and the bound that was proved.

    >>> found = selective_threshold(np.linspace(0, 1, 1000), np.linspace(0, 1, 1000) > 0.3, risk=0.05)
    >>> 0.2 < found.threshold < 0.4, found.errors / found.answered < 0.05
    (True, True)
    """
    given = read_inputs(confidence=confidence, correct=correct)
    between_zero_and_one("risk", risk, remedy="0.05 lets one answer in twenty be wrong")
    between_zero_and_one("delta", delta, remedy="0.1 lets the promise fail for one set of held-out rows in ten")
    whole_number("candidates", candidates, least=1, most=10_000, remedy="it is how many coverages are tried")
    order = np.argsort(-given.scores, kind="stable")
    values, wrong = given.scores[order].astype(np.float64), ~given.labels[order]
    n, level = len(values), delta / candidates
    fewest = math.ceil(math.log(level) / math.log1p(-risk))  # of which none is wrong: fewer rows prove nothing
    for rank in np.unique(np.linspace(n, min(fewest, n), candidates).round().astype(int))[::-1].tolist():
        threshold = -math.inf if rank == n else float(values[rank])
        answered = n if rank == n else int(np.searchsorted(-values, -threshold))
        errors = int(wrong[:answered].sum())
        if answered and bdtr(errors, answered, risk) <= level:
            bound = float(betaincinv(errors + 1, answered - errors, 1 - level))
            return SelectiveThreshold(risk, delta, threshold, answered / n, answered, errors, bound, n)
    return SelectiveThreshold(risk, delta, None, 0.0, 0, 0, math.nan, n)
