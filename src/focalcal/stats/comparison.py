"""One objective against another over seeds: tests, effect sizes and verdicts, corrected within a family of metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from focalcal.core.checks import between_zero_and_one, shown
from focalcal.core.display import Displayed
from focalcal.stats.differences import cohens_dz, holm
from focalcal.stats.paired_bootstrap import PairedInterval, bootstrap_ci
from focalcal.stats.sign_flip import SignFlip, sign_flip_test

PRIMARY = ("ece", "adaptive_ece", "nll", "brier")
"""The metrics whose tests share one correction."""
VERDICTS = ("better", "worse", "indistinguishable")
"""What a comparison can end with."""
Verdict = Literal["better", "worse", "indistinguishable"]


@dataclass(frozen=True, repr=False)
class Comparison(Displayed):
    """Candidate minus baseline on one metric, paired by seed.

    Attributes:
        metric: its name.
        seeds: that were paired.
        test: the sign-flip test of the differences.
        interval: of their mean.
        effect: Cohen's d_z.
        p_adjusted: Holm's within the family.
        floor_adjusted: the least that it could have been, Holm's of the tests' floors.
        reachable: False where that exceeds alpha, so that no outcome at all could have been significant.
        verdict: "better", "worse" or "indistinguishable"; the last says nothing where it is the only one reachable.

    >>> few = {"ece": {0: 0.02, 1: 0.03, 2: 0.02}}, {"ece": {0: 0.05, 1: 0.06, 2: 0.07}}
    >>> print(compare(*few, metrics=["ece"])[0])  # three seeds can decide nothing
    ece -0.0367 [-0.0500, -0.0300] over 3 seeds, p = 0.25: indistinguishable
    """

    metric: str
    seeds: tuple[int, ...]
    test: SignFlip
    interval: PairedInterval
    effect: float
    p_adjusted: float
    floor_adjusted: float
    reachable: bool
    verdict: Verdict

    def frame(self) -> dict[str, list[Any]]:
        """One row."""
        values = {
            "metric": self.metric, "n": self.test.n, "mean": self.interval.mean, "low": self.interval.low,
            "high": self.interval.high, "effect": self.effect, "p_value": self.test.p_value,
            "p_adjusted": self.p_adjusted, "reachable": self.reachable, "verdict": self.verdict,
        }  # fmt: skip
        return {name: [value] for name, value in values.items()}

    def __str__(self) -> str:
        """The mean difference, its interval, Holm's p-value and the verdict, on one line."""
        found = f"{self.interval.mean:+.4f} [{self.interval.low:+.4f}, {self.interval.high:+.4f}]"
        return f"{self.metric} {found} over {self.test.n} seeds, p = {self.p_adjusted:.3g}: {self.verdict}"


def compare(
    candidate: Mapping[str, Mapping[int, float]],
    baseline: Mapping[str, Mapping[int, float]],
    *,
    metrics: Sequence[str] = PRIMARY,
    alpha: float = 0.05,
    level: float = 0.95,
    higher_is_better: Collection[str] = (),
) -> list[Comparison]:
    """A family: one comparison per metric, of values by metric and seed; only seeds that both have are paired.

    Less is better of every metric but those in `higher_is_better`. Sign-flip test on the mean, interval by
    bootstrap (BCa), Cohen's d_z, and Holm's correction over the metrics. Needs two common seeds at least.

    Args:
        candidate: values by metric and seed.
        baseline: likewise.
        metrics: of the family.
        alpha: of the verdicts.
        level: of the intervals.
        higher_is_better: the metrics of which more is better.

    Returns:
        One comparison per metric, in their order.

    >>> candidate = {"ece": {seed: 0.02 + seed / 1000 for seed in range(8)}}
    >>> baseline = {"ece": {seed: 0.05 for seed in range(8)}}
    >>> found = compare(candidate, baseline, metrics=["ece"])[0]
    >>> found.p_adjusted, found.verdict
    (0.0078125, 'better')
    """
    between_zero_and_one("alpha", alpha, remedy="0.05 is usual")
    upward = set(higher_is_better)
    paired = {metric: _differences(metric, candidate, baseline) for metric in metrics}
    tests = {metric: sign_flip_test(list(pairs.values())) for metric, pairs in paired.items()}
    adjusted = dict(zip(tests, holm([test.p_value for test in tests.values()]), strict=True))
    floors = dict(zip(tests, holm([test.floor for test in tests.values()]), strict=True))  # Holm's grows with every p
    comparisons = []
    for metric, pairs in paired.items():
        differences, test = list(pairs.values()), tests[metric]
        p, floor = float(adjusted[metric]), float(floors[metric])
        improved = test.mean > 0 if metric in upward else test.mean < 0
        verdict: Verdict = "indistinguishable" if p > alpha else "better" if improved else "worse"
        comparisons.append(
            Comparison(
                metric=metric,
                seeds=tuple(pairs),
                test=test,
                interval=bootstrap_ci(differences, level=level),
                effect=cohens_dz(differences),
                p_adjusted=p,
                floor_adjusted=floor,
                reachable=floor <= alpha,
                verdict=verdict,
            )
        )
    return comparisons


def verdict_counts(comparisons: Iterable[Comparison]) -> dict[Verdict, int]:
    """How many are better, worse and indistinguishable, the three always there.

    Args:
        comparisons: those that `compare` returns.

    Returns:
        A number for each verdict.

    >>> values = {seed: seed / 10 for seed in range(8)}
    >>> verdict_counts(compare({"nll": values}, {"nll": values}, metrics=["nll"]))
    {'better': 0, 'worse': 0, 'indistinguishable': 1}
    """
    given = list(comparisons)
    if not all(isinstance(comparison, Comparison) for comparison in given):
        raise TypeError(f"comparisons must be those that `compare` returns, got {shown(given)}")
    counted = Counter(comparison.verdict for comparison in given)
    return {"better": counted["better"], "worse": counted["worse"], "indistinguishable": counted["indistinguishable"]}


def _differences(
    metric: str, candidate: Mapping[str, Mapping[int, float]], baseline: Mapping[str, Mapping[int, float]]
) -> dict[int, float]:
    """The differences by seed, in the order of the seeds."""
    for name, values in (("candidate", candidate), ("baseline", baseline)):
        if not isinstance(values, Mapping) or not all(isinstance(by_seed, Mapping) for by_seed in values.values()):
            raise TypeError(f"{name} must map metrics to seeds to numbers, got {shown(values)}")
        if metric not in values:
            raise ValueError(f"{name} must have {metric!r}, got {', '.join(values) or 'nothing'}; measure it too")
    common = sorted(set(candidate[metric]) & set(baseline[metric]))
    if len(common) < 2:
        raise ValueError(
            f"candidate and baseline must share two seeds at least on {metric!r}, got {len(common)}; train more seeds"
        )
    return {seed: candidate[metric][seed] - baseline[metric][seed] for seed in common}
