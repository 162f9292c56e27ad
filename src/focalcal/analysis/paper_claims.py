"""The claims of the paper's abstract and discussion that stored runs can bear out or not, each with its own test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from focalcal.analysis.metric_names import in_sentence
from focalcal.analysis.paper_numbers import CIFAR10, SURFACE_LAMS, TEN_SEED_SETTINGS, TRANSFORMERS, VISION, Protocol
from focalcal.analysis.paper_queries import (
    Answer,
    Query,
    best_lam,
    mean_of,
    shift_wins,
    times_best,
    times_lower,
    verdicts,
)
from focalcal.analysis.paper_runs import PaperRuns

_C10R50, _C100R50, _C100R110 = TEN_SEED_SETTINGS
_FOCAL_FAMILY = ("focal", "flsd53", "dual_focal")
_SCRATCH_LAMS = (0.25, 0.5, 1.0, 2.0, 3.0)
_CALLED = {"fcl": "FCL", "adafocal": "AdaFocal", "focal": "focal"}

Rule = Callable[[float], bool]
Count = tuple[str, Query]  # what is counted


@dataclass(frozen=True)
class Judgement:
    """Whether a claim holds in these runs, and the numbers that say so, each with what it is of."""

    holds: bool
    numbers: tuple[tuple[str, Answer], ...]


@dataclass(frozen=True)
class Claim:
    """What the paper says, where, which study has the runs, and what judges it: None if they are not there."""

    says: str
    section: str
    study: str
    judge: Callable[[PaperRuns], Judgement | None]


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its verdict in the runs at hand."""

    claim: Claim
    judgement: Judgement | None

    @property
    def verdict(self) -> Literal["holds", "does not hold", "not run"]:
        """In a word."""
        if self.judgement is None:
            return "not run"
        return "holds" if self.judgement.holds else "does not hold"


def judged_claims(runs: PaperRuns) -> list[JudgedClaim]:
    """All of them, in the paper's order."""
    return [JudgedClaim(claim, claim.judge(runs)) for claim in CLAIMS]


def _shares(rule: Rule, *counts: Count) -> Callable[[PaperRuns], Judgement | None]:
    """Holds if the share of every count satisfies the rule; None unless all were answered."""

    def judge(runs: PaperRuns) -> Judgement | None:
        answers = [(what, query(runs)) for what, query in counts]
        known = tuple((what, answer) for what, answer in answers if answer is not None)
        if len(known) < len(answers):
            return None
        return Judgement(all(answer.of and rule(answer.value / answer.of) for _, answer in known), known)

    return judge


def _lowest_ece(objective: str, settings: Sequence[str], protocol: Protocol = "main") -> Count:
    query = partial(times_best, [objective], "ece", settings, protocol=protocol)
    return f"{_CALLED[objective]} has the lowest ECE", query


def _lower(winner: str, loser: str, metric: str, settings: Sequence[str] = TEN_SEED_SETTINGS) -> Count:
    query = partial(times_lower, winner, loser, metric, settings, protocol="common split")
    return f"{_CALLED[winner]} has the lower {in_sentence(metric)}", query


def _all(share: float) -> bool:
    return share == 1


def _lowest_lam(setting: str, rule: Rule, runs: PaperRuns) -> Judgement | None:
    """Holds if the lam of the lowest ECE satisfies the rule; needs the whole sweep."""
    lowest = best_lam(setting, "fcl", "ece", SURFACE_LAMS, runs, gamma=3.0)
    if lowest is None:
        return None
    return Judgement(rule(lowest.value), ((f"lam of the lowest ECE on {setting}", lowest),))


def _rising_from_scratch(runs: PaperRuns) -> Judgement | None:
    """Holds if ECE rises with lam on every transformer that has three lams at least."""
    sweeps = []
    for setting in TRANSFORMERS:
        means = [mean_of(setting, "fcl", "ece", runs, protocol="from scratch", lam=lam) for lam in _SCRATCH_LAMS]
        sweeps.append([answer.value for answer in means if answer is not None])
    outcomes = [values == sorted(values) for values in sweeps if len(values) >= 3]
    if not outcomes:
        return None
    count = Answer(sum(outcomes), len(outcomes))
    return Judgement(all(outcomes), (("transformers on which ECE rises with lam", count),))


def _unfavourable(runs: PaperRuns) -> Judgement | None:
    """Holds if significantly worse comparisons are all on CIFAR-100/ResNet-110 and against the focal family."""
    worse = verdicts("worse", TEN_SEED_SETTINGS, runs)
    there = [verdicts("worse", [_C100R110], runs, baseline=baseline) for baseline in _FOCAL_FAMILY]
    known = [answer.value for answer in there if answer is not None]
    if worse is None or not known:
        return None
    numbers = (("significantly worse", worse), ("of these there, against the focal family", Answer(sum(known))))
    return Judgement(0 < worse.value == sum(known), numbers)


CLAIMS = (
    Claim(
        "FCL is competitive rather than dominant: it has the lowest ECE in some vision settings, not in all (5 of 9).",
        "abstract",
        "vision",
        _shares(lambda share: 0 < share < 1, _lowest_ece("fcl", VISION)),
    ),
    Claim(
        "Under a common split AdaFocal attains a lower binned ECE than FCL in all three settings.",
        "abstract, discussion",
        "adafocal",
        _shares(_all, _lower("adafocal", "fcl", "ece")),
    ),
    Claim(
        "Under a common split FCL attains lower NLL, Brier score and error than AdaFocal in two of three settings.",
        "abstract, discussion",
        "adafocal",
        _shares(lambda share: share >= 2 / 3, *(_lower("fcl", "adafocal", name) for name in ("nll", "brier", "error"))),
    ),
    Claim(
        "On CIFAR-100/ResNet-110 AdaFocal is better on ECE, NLL and Brier score, while FCL has the lower error.",
        "discussion",
        "adafocal",
        _shares(
            _all,
            *(_lower("adafocal", "fcl", metric, [_C100R110]) for metric in ("ece", "nll", "brier")),
            _lower("fcl", "adafocal", "error", [_C100R110]),
        ),
    ),
    Claim(
        "On transformers FCL's calibration advantage is absent: fine-tuned, it never has the lowest ECE.",
        "abstract",
        "transformer-finetune",
        _shares(lambda share: share == 0, _lowest_ece("fcl", TRANSFORMERS, "fine-tuned")),
    ),
    Claim(
        "From scratch plain focal loss has the lowest ECE on all three transformers: pretraining does not explain it.",
        "abstract, discussion",
        "transformer-scratch",
        _shares(_all, _lowest_ece("focal", TRANSFORMERS, "from scratch")),
    ),
    Claim(
        "From scratch ECE rises with lam on all three transformers.",
        "discussion",
        "transformer-scratch",
        _rising_from_scratch,
    ),
    Claim(
        "On CIFAR-10/ResNet-50 a moderate positive lam improves ECE: the minimum over lam is in the interior.",
        "discussion",
        "surface",
        partial(_lowest_lam, _C10R50, lambda lam: SURFACE_LAMS[0] < lam < SURFACE_LAMS[-1]),
    ),
    Claim(
        "On CIFAR-100/ResNet-110 the minimum is at a small lam of about 0.1, after which larger lam degrade ECE.",
        "discussion",
        "surface",
        partial(_lowest_lam, _C100R110, lambda lam: 0 < lam <= 0.25),
    ),
    Claim(
        "Over ten seeds FCL is significantly better in 28 and 27 of 28 comparisons in the two favourable settings.",
        "discussion",
        "tenseed",
        _shares(
            lambda share: share >= 27 / 28,
            *(
                (f"significantly better on {setting}", partial(verdicts, "better", [setting]))
                for setting in (_C10R50, _C100R50)
            ),
        ),
    ),
    Claim(
        "Significantly unfavourable comparisons are all on CIFAR-100/ResNet-110 and all against the focal family (11).",
        "discussion",
        "tenseed",
        _unfavourable,
    ),
    Claim(
        "Shift-detection AUROC shows no consistent advantage of FCL.",
        "discussion",
        "shift",
        _shares(
            lambda share: share < 1,
            ("FCL has the highest AUROC", partial(shift_wins, "fcl", ("svhn", "cifar10c"), CIFAR10)),
        ),
    ),
)
