"""The claims of the paper's abstract and discussion that stored runs can bear out or not, each with its own test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from focalcal.analysis.paper_numbers import CIFAR10, TEN_SEED_SETTINGS, TRANSFORMERS, VISION, Protocol
from focalcal.analysis.paper_queries import Answer, mean_of, shift_wins, times_best, times_lower, verdicts
from focalcal.analysis.paper_runs import PaperRuns

_C10R50, _C100R50, _C100R110 = TEN_SEED_SETTINGS
_FOCAL_FAMILY = ("focal", "flsd53", "dual_focal")
_LAMS = (0.0, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0)  # of the surfaces
_SCRATCH_LAMS = (0.25, 0.5, 1.0, 2.0, 3.0)

Verdict = Literal["holds", "does not hold", "not run"]


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
    def verdict(self) -> Verdict:
        """In a word."""
        if self.judgement is None:
            return "not run"
        return "holds" if self.judgement.holds else "does not hold"


def judged_claims(runs: PaperRuns) -> list[JudgedClaim]:
    """All of them, in the paper's order."""
    return [JudgedClaim(claim, claim.judge(runs)) for claim in CLAIMS]


def _counted(
    rule: Callable[[float], bool],
    questions: Sequence[tuple[str, Callable[[PaperRuns], Answer | None]]],
    runs: PaperRuns,
) -> Judgement | None:
    """Holds if the share of every count satisfies the rule; None unless all were answered."""
    answers = [(what, question(runs)) for what, question in questions]
    known = tuple((what, answer) for what, answer in answers if answer is not None)
    if len(known) < len(answers):
        return None
    return Judgement(all(answer.of and rule(answer.value / answer.of) for _, answer in known), known)


def _some(share: float) -> bool:
    return 0 < share < 1


def _most(share: float) -> bool:
    return share >= 2 / 3


def _all(share: float) -> bool:
    return share == 1


def _none(share: float) -> bool:
    return share == 0


def _by_lam(
    setting: str,
    lams: Sequence[float],
    runs: PaperRuns,
    *,
    protocol: Protocol = "main",
    gamma: float | None = None,
    seed: int | None = None,
) -> dict[float, float]:
    """FCL's ECE at those lams that were run."""
    found = {
        lam: mean_of(setting, "fcl", "ece", runs, protocol=protocol, gamma=gamma, lam=lam, seed=seed) for lam in lams
    }
    return {lam: answer.value for lam, answer in found.items() if answer is not None}


def _lowest_lam(setting: str, rule: Callable[[float], bool], runs: PaperRuns) -> Judgement | None:
    """Holds if the lam of the lowest ECE satisfies the rule; needs the whole sweep."""
    values = _by_lam(setting, _LAMS, runs, gamma=3.0, seed=0)
    if len(values) < len(_LAMS):
        return None
    lowest = min(values, key=values.__getitem__)
    return Judgement(rule(lowest), ((f"lam of the lowest ECE on {setting}", Answer(lowest)),))


def _rising_from_scratch(runs: PaperRuns) -> Judgement | None:
    """Holds if ECE rises with lam on every transformer that has three lams at least."""
    sweeps = {setting: _by_lam(setting, _SCRATCH_LAMS, runs, protocol="from scratch") for setting in TRANSFORMERS}
    whole = [list(values.values()) for values in sweeps.values() if len(values) >= 3]
    if not whole:
        return None
    rising = sum(values == sorted(values) for values in whole)
    return Judgement(rising == len(whole), (("transformers on which ECE rises with lam", Answer(rising, len(whole))),))


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
        partial(_counted, _some, [("FCL has the lowest ECE", partial(times_best, ["fcl"], "ece", VISION))]),
    ),
    Claim(
        "Under a common split AdaFocal attains a lower binned ECE than FCL in all three settings.",
        "abstract, discussion",
        "adafocal",
        partial(
            _counted,
            _all,
            [
                (
                    "AdaFocal has the lower ECE",
                    partial(times_lower, "adafocal", "fcl", "ece", TEN_SEED_SETTINGS, protocol="common split"),
                )
            ],
        ),
    ),
    Claim(
        "Under a common split FCL attains lower NLL, Brier score and error than AdaFocal in two of three settings.",
        "abstract, discussion",
        "adafocal",
        partial(
            _counted,
            _most,
            [
                (
                    f"FCL has the lower {metric}",
                    partial(times_lower, "fcl", "adafocal", metric, TEN_SEED_SETTINGS, protocol="common split"),
                )
                for metric in ("nll", "brier", "error")
            ],
        ),
    ),
    Claim(
        "On CIFAR-100/ResNet-110 AdaFocal is better on ECE, NLL and Brier score, while FCL has the lower error.",
        "discussion",
        "adafocal",
        partial(
            _counted,
            _all,
            [
                (
                    f"{winner} has the lower {metric}",
                    partial(times_lower, winner, loser, metric, [_C100R110], protocol="common split"),
                )
                for winner, loser, metric in (
                    ("adafocal", "fcl", "ece"),
                    ("adafocal", "fcl", "nll"),
                    ("adafocal", "fcl", "brier"),
                    ("fcl", "adafocal", "error"),
                )
            ],
        ),
    ),
    Claim(
        "On transformers FCL's calibration advantage is absent: fine-tuned, it never has the lowest ECE.",
        "abstract",
        "transformer-finetune",
        partial(
            _counted,
            _none,
            [
                (
                    "FCL has the lowest ECE",
                    partial(times_best, ["fcl"], "ece", TRANSFORMERS, protocol="fine-tuned"),
                )
            ],
        ),
    ),
    Claim(
        "From scratch plain focal loss has the lowest ECE on all three transformers: pretraining does not explain it.",
        "abstract, discussion",
        "transformer-scratch",
        partial(
            _counted,
            _all,
            [
                (
                    "focal has the lowest ECE",
                    partial(times_best, ["focal"], "ece", TRANSFORMERS, protocol="from scratch"),
                )
            ],
        ),
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
        partial(_lowest_lam, _C10R50, lambda lam: _LAMS[0] < lam < _LAMS[-1]),
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
        partial(
            _counted,
            lambda share: share >= 27 / 28,
            [
                (f"significantly better on {setting}", partial(verdicts, "better", [setting]))
                for setting in (_C10R50, _C100R50)
            ],
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
        partial(
            _counted,
            lambda share: share < 1,
            [("FCL has the highest AUROC", partial(shift_wins, "fcl", ("svhn", "cifar10c"), CIFAR10))],
        ),
    ),
)
