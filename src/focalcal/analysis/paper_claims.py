"""The claims of the paper about trained networks that stored runs can bear out or not, and what each is judged by.

First those of its abstract and discussion, in short, then what else its sections say, in their words. The numbers that
the paper prints are data beside our queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from focalcal.analysis.metric_names import in_sentence
from focalcal.analysis.paper_numbers import (
    CIFAR10,
    OBJECTIVES,
    SURFACE_LAMS,
    TEN_SEED_SETTINGS,
    TRANSFORMERS,
    VISION,
)
from focalcal.analysis.paper_queries import (
    Answer,
    Query,
    best_lam,
    gamma_of_lowest_bin,
    mean_of,
    shift_wins,
    shifts_below_median,
    sweep,
    times_best,
    times_best_of_sweep,
    times_best_scaled,
    times_high_bins_below,
    times_lower,
    times_rising,
    times_worst,
    verdicts,
)
from focalcal.analysis.paper_runs import PaperRuns
from focalcal.analysis.paper_verdicts import Claim, JudgedClaim, JudgedPart, Part

_C10R50, _C100R50, _C100R110 = TEN_SEED_SETTINGS
_FOCAL_FAMILY = ("focal", "flsd53", "dual_focal")
_TINY, _CHEST, _DEIT, _SWIN = "tiny_imagenet/resnet50_tiny", "chestxray14/chexnet", *TRANSFORMERS[::2]
_SCRATCH_LAMS = (0.5, 1.0, 2.0)  # those of the study; the paper's text names the first two
_DEIT_LAMS, _CHEST_LAMS = (0.0, 0.25, 0.5, 1.0, 2.0, 3.0), (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_NEAR_ONE = 1.5  # of a gamma that settles "near or below 1"
_DRIVEN = 5.0  # least gamma of a bin that was driven up: the paper's least is 6.41
_PLATEAU = 0.05  # relative; the paper prints the same ECE for both ends of its plateau


def _every(what: str, ours: Query, of: int, printed: str = "") -> Part:
    return Part(what, ours, of, of, of, printed or f"{of} of {of}")


def _never(what: str, ours: Query, of: int, printed: str = "") -> Part:
    return Part(what, ours, 0, 0, of, printed or f"0 of {of}")


def _adafocal_lower(metric: str, settings: Sequence[str] = TEN_SEED_SETTINGS) -> Part:
    query = partial(times_lower, "adafocal", "fcl", metric, settings, protocol="common split")
    return _every(f"AdaFocal has the lower {in_sentence(metric)}", query, len(settings))


def _fcl_lower(metric: str, printed: str) -> Part:
    query = partial(times_lower, "fcl", "adafocal", metric, TEN_SEED_SETTINGS, protocol="common split")
    return Part(f"FCL has the lower {in_sentence(metric)}", query, 2, 3, 3, printed)


def _scratch_best(name: str, metric: str, settings: Sequence[str], what: str, among: Sequence[str] = ()) -> Part:
    return _every(what, partial(times_best_of_sweep, name, metric, settings, _SCRATCH_LAMS, among=among), len(settings))


def _lowest_lam(setting: str, least: float, most: float, printed: str) -> Part:
    """At gamma = 4, along which the paper prints both surfaces."""
    query = partial(best_lam, setting, "fcl", "ece", SURFACE_LAMS, gamma=4.0)
    return Part(f"{setting}, gamma = 4: lam of the lowest ECE", query, least, most, printed=printed)


def _elsewhere(runs: PaperRuns) -> Answer | None:
    """Significantly worse comparisons other than on CIFAR-100/ResNet-110 against the focal family."""
    every = verdicts("worse", TEN_SEED_SETTINGS, runs)
    there = verdicts("worse", [_C100R110], runs, baselines=_FOCAL_FAMILY) or Answer(0, 0)
    if every is None or not every.value:
        return None  # where nothing is worse, it is not "all there" either
    return Answer(every.value - there.value, (every.of or 0) - (there.of or 0))


def _plateau(runs: PaperRuns) -> Answer | None:
    """By how much of itself ECE changes from the last lam but one of the chest sweep to the last."""
    values = sweep(_CHEST, "multilabel_fcl", "ece", _CHEST_LAMS[-2:], runs)
    return None if values is None else Answer(abs(values[1] / values[0] - 1))


def _over_bce(runs: PaperRuns) -> Answer | None:
    """At how many lam of the chest sweep ECE is above that of binary cross-entropy, both at seed 0."""
    theirs = mean_of(_CHEST, "multilabel_bce", "ece", runs, seed=0)
    ours = [mean_of(_CHEST, "multilabel_fcl", "ece", runs, lam=lam, seed=0) for lam in _CHEST_LAMS]
    known = [answer.value for answer in ours if answer is not None]
    return Answer(sum(value > theirs.value for value in known), len(known)) if theirs and known else None


CLAIMS = (
    Claim(
        "FCL is competitive rather than dominant: it has the lowest ECE in some vision settings, not in all (5 of 9).",
        "abstract",
        "vision",
        (
            Part(
                "FCL has the lowest ECE",
                partial(times_best, ["fcl"], "ece", VISION, among=OBJECTIVES),
                *(1, 8, 9, "5 of 9"),
            ),
        ),
    ),
    Claim(
        "Under a common split AdaFocal attains a lower binned ECE than FCL in all three settings.",
        "abstract, discussion",
        "adafocal",
        (_adafocal_lower("ece"),),
    ),
    Claim(
        "Under a common split FCL attains lower NLL, Brier score and error than AdaFocal in two of three settings.",
        "abstract, discussion",
        "adafocal",
        (_fcl_lower("nll", "2 of 3"), _fcl_lower("brier", "2 of 3"), _fcl_lower("error", "3 of 3")),
    ),
    Claim(
        "On CIFAR-100/ResNet-110 AdaFocal is better on ECE, NLL and Brier score, while FCL has the lower error.",
        "discussion",
        "adafocal",
        (
            *(_adafocal_lower(metric, [_C100R110]) for metric in ("ece", "nll", "brier")),
            _every(
                "FCL has the lower error",
                partial(times_lower, "fcl", "adafocal", "error", [_C100R110], protocol="common split"),
                1,
            ),
        ),
    ),
    Claim(
        "On transformers FCL's calibration advantage is absent: fine-tuned, it never has the lowest ECE.",
        "abstract",
        "transformer-finetune",
        (
            _never(
                "FCL has the lowest ECE",
                partial(times_best, ["fcl"], "ece", TRANSFORMERS, protocol="fine-tuned", among=OBJECTIVES),
                3,
            ),
        ),
    ),
    Claim(
        "From scratch plain focal loss has the lowest ECE on all three transformers: pretraining does not explain it.",
        "abstract, discussion",
        "transformer-scratch",
        (
            _scratch_best(
                "focal", "ece", TRANSFORMERS, "focal has the lowest ECE, of cross-entropy and FCL at every lam"
            ),
        ),
    ),
    Claim(
        "From scratch ECE rises with lam on all three transformers.",
        "discussion",
        "transformer-scratch",
        (
            _every(
                "ECE rises from lam to lam",
                partial(times_rising, TRANSFORMERS, "fcl", "ece", _SCRATCH_LAMS, protocol="from scratch", seed=None),
                3,
            ),
        ),
    ),
    Claim(
        "On CIFAR-10/ResNet-50 a moderate positive lam improves ECE: the minimum over lam is in the interior.",
        "discussion",
        "surface",
        (_lowest_lam(_C10R50, SURFACE_LAMS[1], SURFACE_LAMS[-2], "0.5"),),
    ),
    Claim(
        "On CIFAR-100/ResNet-110 the minimum is at a small lam of about 0.1, after which larger lam degrade ECE.",
        "discussion",
        "surface",
        (_lowest_lam(_C100R110, 0.1, 0.25, "0.1"),),
    ),
    Claim(
        "Over ten seeds FCL is significantly better in 28 and 27 of 28 comparisons in the two favourable settings.",
        "discussion",
        "tenseed",
        tuple(
            Part(
                f"significantly better on {setting}",
                partial(verdicts, "better", [setting]),
                least,
                28,
                28,
                f"{least} of 28",
            )
            for setting, least in ((_C10R50, 28), (_C100R50, 27))
        ),
    ),
    Claim(
        "Significantly unfavourable comparisons are all on CIFAR-100/ResNet-110 and all against the focal family (11).",
        "discussion",
        "tenseed",
        (
            Part(
                f"significantly worse on {_C100R110} against the focal family",
                partial(verdicts, "worse", [_C100R110], baselines=_FOCAL_FAMILY),
                *(1, 12, 12, "11 of 12"),
            ),
            _never("significantly worse elsewhere", _elsewhere, 72),
        ),
    ),
    Claim(
        "Shift-detection AUROC shows no consistent advantage of FCL.",
        "discussion",
        "shift",
        (
            Part(
                "FCL has the highest AUROC",
                partial(shift_wins, ["fcl"], ("svhn", "cifar10c"), CIFAR10, among=OBJECTIVES),
                *(0, 7, 8, "2 of 8"),
            ),
        ),
    ),
    Claim(
        'On test error "it is never the worst method".',
        "6.2",
        "vision",
        (_never("FCL has the highest error", partial(times_worst, "fcl", "error", VISION, among=OBJECTIVES), 9),),
    ),
    Claim(
        'Tiny-ImageNet: "After temperature scaling on this setting FCL attains the lowest mean ECE and AdaECE among '
        'the compared objectives".',
        "6.2",
        "vision",
        tuple(
            _every(
                f"FCL has the lowest {in_sentence(metric)} with a temperature",
                partial(times_best_scaled, ["fcl"], metric, [_TINY], among=OBJECTIVES),
                1,
            )
            for metric in ("ece", "adaptive_ece")
        ),
    ),
    Claim(
        '"On CIFAR-10-C it is best on 0 of 4, where CE and Dual Focal are strongest".',
        "6.4",
        "shift",
        (
            _never(
                "FCL has the highest AUROC", partial(shift_wins, ["fcl"], ["cifar10c"], CIFAR10, among=OBJECTIVES), 4
            ),
            _every(
                "CE or Dual Focal has the highest AUROC",
                partial(shift_wins, ["ce", "dual_focal"], ["cifar10c"], CIFAR10, among=OBJECTIVES),
                4,
            ),
        ),
    ),
    Claim(
        'Shift detection: "Label smoothing is a consistent underperformer here".',
        "6.4",
        "shift",
        (
            _every(
                "AUROC of label smoothing is below the median of the others",
                partial(shifts_below_median, "ls", ("svhn", "cifar10c"), CIFAR10, among=OBJECTIVES),
                8,
            ),
        ),
    ),
    Claim(
        'From scratch: "on Swin-T it attains the best NLL (lam = 0.5 ...) and the best Brier (lam = 1 ...), and lower '
        'error than focal at every lam".',
        "6.6",
        "transformer-scratch",
        (
            _scratch_best("fcl lam=0.5", "nll", [_SWIN], "lam = 0.5 has the lowest NLL"),
            _scratch_best("fcl lam=1", "brier", [_SWIN], "lam = 1 has the lowest Brier score"),
            *(
                _scratch_best(
                    f"fcl lam={lam:g}",
                    "error",
                    [_SWIN],
                    f"lam = {lam:g} has a lower error than focal",
                    among=("focal", f"fcl lam={lam:g}"),
                )
                for lam in _SCRATCH_LAMS
            ),
        ),
    ),
    Claim(
        'AdaFocal: "lowest-confidence bins driven to 7.98/20.0/6.41 with gamma_max = 20 saturating, higher bins '
        'settling near or below 1".',
        "6.9",
        "adafocal",
        (
            *(
                Part(
                    f"{setting}: gamma of the lowest bin",
                    partial(gamma_of_lowest_bin, setting),
                    _DRIVEN,
                    20,
                    printed=printed,
                )
                for setting, printed in zip(TEN_SEED_SETTINGS, ("7.98", "20.0", "6.41"), strict=True)
            ),
            _every(
                f"no gamma of the upper half of the bins is above {_NEAR_ONE:g}",
                partial(times_high_bins_below, _NEAR_ONE, TEN_SEED_SETTINGS),
                3,
            ),
        ),
    ),
    Claim(
        '"On CIFAR-100/ResNet-110, for gamma >= 2 the displayed seed-0 surface has a small-lam minimum (around lam '
        '= 0.1), after which ECE increases monotonically over the remaining displayed range".',
        "7.1",
        "surface",
        (
            _every(
                "ECE rises from lam to lam, 0.1 to 8, at gamma = 2, 3, 4 and 5",
                partial(times_rising, [_C100R110], "fcl", "ece", SURFACE_LAMS[1:], gammas=(2.0, 3.0, 4.0, 5.0)),
                4,
            ),
        ),
    ),
    Claim(
        '"On DeiT-S (CIFAR-100) pre-TS ECE increases monotonically in lam over {0, 0.25, 0.5, 1, 2, 3}, so lam = 0 '
        '(plain focal) is best there".',
        "7.1",
        "deit-lam-sweep",
        (
            _every(
                "ECE rises from lam to lam, 0 to 3",
                partial(times_rising, [_DEIT], "fcl", "ece", _DEIT_LAMS, protocol="fine-tuned", gammas=[3.0]),
                1,
            ),
        ),
    ),
    Claim(
        '"On ChestX-ray14 pre-TS ECE decreases monotonically over {0.25, 0.5, 1, 2, 4, 8} before plateauing near '
        'lam >= 4, without reaching the BCE baseline".',
        "7.1",
        "chestxray-lam-sweep",
        (
            _every(
                "ECE falls from lam to lam, 0.25 to 4",
                partial(times_rising, [_CHEST], "multilabel_fcl", "ece", _CHEST_LAMS[-2::-1]),
                1,
            ),
            Part("relative change of ECE from lam = 4 to 8", _plateau, 0, _PLATEAU, printed="0"),
            _every("lam with a higher ECE than BCE", _over_bce, 6),
        ),
    ),
)


def judged_claims(runs: PaperRuns) -> list[JudgedClaim]:
    """All of them, in the paper's order."""
    return [JudgedClaim(claim, tuple(JudgedPart(part, part.ours(runs)) for part in claim.parts)) for claim in CLAIMS]
