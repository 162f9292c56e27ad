"""The numbers of the paper's text that stored runs can answer, each with the query that does.

Copied with the digits it prints, as its tables are in `paper_numbers`. What its text repeats from those tables is not
here; the theory study and `focalcal overhead` show the paper's numbers beside their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from focalcal.analysis.paper_numbers import CIFAR10, SURFACE_LAMS, TEN_SEED_SETTINGS, TRANSFORMERS, VISION
from focalcal.analysis.paper_queries import (
    Query,
    best_lam,
    extreme,
    finding_wins,
    gamma_of_lowest_bin,
    largest_effect,
    largest_excess,
    least_p,
    mean_of,
    shift_wins,
    temperature_distance,
    temperatures_near_one,
    times_best,
    times_lower,
    verdicts,
)

Unit = Literal["", "%", "points"]  # a point is a hundredth
Rows = Iterable[tuple[str, str, Query]]

_CHEST, _SWIN = "chestxray14/chexnet", "cifar100/swin_tiny"
_C10R50, _C100R50, _C100R110 = TEN_SEED_SETTINGS
_TEN = TEN_SEED_SETTINGS
_CHEST_LAMS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_DEIT_LAMS = (0.0, 0.25, 0.5, 1.0, 2.0, 3.0)
READ_INTO_IT = (  # what the text leaves open
    f"Not printed in the paper, and read into it: lam = 0, 0.25, 0.5 and 1 on {_C100R110}; the settings of the three "
    "gammas, in its order; AUROC as what 4 of 14 findings are won on; 14 of 28, which its totals leave. Its 1 and 0.2 "
    "points are bounds."
)


@dataclass(frozen=True)
class TextNumber:
    """A number of the text: what it says, as printed ("0.18", "5 of 9"), where, and which study and query give ours."""

    what: str
    printed: str
    unit: Unit
    section: str
    study: str
    ours: Query


def _numbers(section: str, study: str, unit: Unit, rows: Rows) -> list[TextNumber]:
    return [TextNumber(what, printed, unit, section, study, ours) for what, printed, ours in rows]


def _gaps(setting: str, **printed: str) -> Rows:
    """By objective."""
    for objective, value in printed.items():
        query = partial(mean_of, setting, objective, "confidence_gap", seed=0)
        yield f"{setting}, {objective}, seed 0: mean confidence minus accuracy", value, query


def _shifts() -> Rows:
    for what, shifts, printed in (
        ("both shifts", ("svhn", "cifar10c"), "2 of 8"),
        ("SVHN", ("svhn",), "2 of 4"),
        ("CIFAR-10-C", ("cifar10c",), "0 of 4"),
    ):
        query = partial(shift_wins, ["fcl"], shifts, CIFAR10)
        yield f"CIFAR-10 networks, {what}: fcl has the highest AUROC", printed, query


def _range(objective: str, protocol: Literal["fine-tuned", "from scratch"], low: str, high: str) -> Rows:
    for name, which, printed in (("lowest", min, low), ("highest", max, high)):
        query = partial(extreme, which, objective, "ece", TRANSFORMERS, protocol=protocol)
        yield f"transformers {protocol}, {objective}: {name} ECE of the three", printed, query


def _verdicts(
    where: str,
    verdict: str,
    printed: str,
    settings: tuple[str, ...],
    baseline: str | None = None,
    metric: str | None = None,
) -> Rows:
    what = f"{where}: fcl {verdict}" if verdict == "indistinguishable" else f"{where}: fcl significantly {verdict}"
    yield what, printed, partial(verdicts, verdict, settings, baselines=[baseline] if baseline else [], metric=metric)


def _surface(setting: str, gamma: float, printed: dict[float, str]) -> Rows:
    """By lam."""
    for lam, value in printed.items():
        query = partial(mean_of, setting, "fcl", "ece", gamma=gamma, lam=lam, seed=0)
        yield f"{setting}, fcl, gamma = {gamma:g}, lam = {lam:g}, seed 0: ECE", value, query


TEXT_NUMBERS: tuple[TextNumber, ...] = (
    *_numbers("6.2", "vision", "", [
        ("vision settings: fcl has the lowest error", "1 of 9", partial(times_best, ["fcl"], "error", VISION)),
        ("vision settings: fcl has the lowest ECE", "5 of 9", partial(times_best, ["fcl"], "ece", VISION)),
        ("vision settings: fcl has the lowest smECE", "1 of 9", partial(times_best, ["fcl"], "smooth_ece", VISION)),
        ("CIFAR-10 networks: brier has the lowest ECE", "2 of 4", partial(times_best, ["brier"], "ece", CIFAR10)),
        ("CIFAR-10 networks: fcl has the lowest ECE", "2 of 4", partial(times_best, ["fcl"], "ece", CIFAR10)),
        ("vision settings: mean |T - 1| of fcl", "0.18", partial(temperature_distance, "fcl", VISION)),
        ("vision settings: mean |T - 1| of ce", "0.38", partial(temperature_distance, "ce", VISION)),
        ("vision settings: T of fcl in [0.9, 1.1]", "1 of 9", partial(temperatures_near_one, "fcl", VISION)),
    ]),
    *_numbers("6.2", "vision", "points", [
        ("vision settings: largest excess of fcl's error over the lowest other", "1",
         partial(largest_excess, "fcl", "error", VISION)),
    ]),
    *_numbers("6.3", "vision", "points", _gaps("cifar10/resnet50", ce="2.8", focal="-4.7", fcl="1.6")),
    *_numbers("6.3", "vision", "points", _gaps("cifar10/resnet110", ce="4.4", focal="-2.0", fcl="2.6")),
    *_numbers("6.4", "shift", "", _shifts()),
    *_numbers("6.5", "chestxray", "", [
        (f"{_CHEST}, findings: multilabel_fcl has the higher AUROC", "4 of 14",
         partial(finding_wins, _CHEST, "multilabel_fcl", "auroc")),
    ]),
    *_numbers("6.5", "chestxray-lam-sweep", "", [
        (f"{_CHEST}, multilabel_fcl, lam = 4, seed 0: ECE", "0.0200",
         partial(mean_of, _CHEST, "multilabel_fcl", "ece", lam=4.0, seed=0)),
        (f"{_CHEST}, multilabel_fcl, lam = 8, seed 0: ECE", "0.0200",
         partial(mean_of, _CHEST, "multilabel_fcl", "ece", lam=8.0, seed=0)),
        (f"{_CHEST}, multilabel_fcl, seed 0: lam of the lowest MCE", "2",
         partial(best_lam, _CHEST, "multilabel_fcl", "mce", _CHEST_LAMS)),
    ]),
    *_numbers("6.6", "deit-lam-sweep", "", [
        ("cifar100/deit_small fine-tuned, fcl, gamma = 3, seed 0: lam of the lowest ECE", "0",
         partial(best_lam, "cifar100/deit_small", "fcl", "ece", _DEIT_LAMS, protocol="fine-tuned", gamma=3.0)),
    ]),
    *_numbers("6.6", "transformer-finetune", "", [
        ("transformers fine-tuned: focal or flsd53 has the lowest ECE", "3 of 3",
         partial(times_best, ["focal", "flsd53"], "ece", TRANSFORMERS, protocol="fine-tuned")),
        ("transformers fine-tuned: ls has the lowest error", "3 of 3",
         partial(times_best, ["ls"], "error", TRANSFORMERS, protocol="fine-tuned")),
    ]),
    *_numbers("6.6", "transformer-finetune", "points", [
        ("DeiT-S, ViT-S fine-tuned: largest excess of fcl's error over the lowest other", "0.2",
         partial(largest_excess, "fcl", "error", TRANSFORMERS[:2], protocol="fine-tuned")),
    ]),
    *_numbers("6.6", "transformer-finetune", "%", _range("ce", "fine-tuned", "7.3", "9.6")),
    *_numbers("6.6", "transformer-scratch", "%", _range("ce", "from scratch", "10.5", "15.7")),
    *_numbers("6.6", "transformer-scratch", "%", _range("focal", "from scratch", "2.05", "2.50")),
    *_numbers("6.6", "transformer-scratch", "", [
        ("transformers from scratch: focal has the lowest ECE", "3 of 3",
         partial(times_best, ["focal"], "ece", TRANSFORMERS, protocol="from scratch")),
        (f"{_SWIN} from scratch, fcl, lam = 0.5: NLL", "0.933",
         partial(mean_of, _SWIN, "fcl", "nll", protocol="from scratch", lam=0.5)),
        (f"{_SWIN} from scratch, focal: NLL", "0.935",
         partial(mean_of, _SWIN, "focal", "nll", protocol="from scratch")),
        (f"{_SWIN} from scratch, fcl, lam = 1: Brier score", "0.354",
         partial(mean_of, _SWIN, "fcl", "brier", protocol="from scratch", lam=1.0)),
        (f"{_SWIN} from scratch, focal: Brier score", "0.361",
         partial(mean_of, _SWIN, "focal", "brier", protocol="from scratch")),
    ]),
    *_numbers("6.8", "tenseed", "", [
        ("ten seeds: least p that is possible", "0.00195", partial(least_p, _TEN, adjusted=False)),
        ("ten seeds: least p after Holm's correction", "0.0078", partial(least_p, _TEN, adjusted=True)),
        *_verdicts(_C10R50, "better", "28 of 28", (_C10R50,)),
        *_verdicts(_C100R50, "better", "27 of 28", (_C100R50,)),
        *_verdicts(f"{_C100R50}, flsd53, NLL", "indistinguishable", "1 of 1", (_C100R50,), "flsd53", "nll"),
        *_verdicts(_C100R110, "better", "14 of 28", (_C100R110,)),
        *_verdicts(_C100R110, "worse", "11 of 28", (_C100R110,)),
        *_verdicts(f"{_C100R110}, focal", "worse", "4 of 4", (_C100R110,), "focal"),
        *_verdicts(f"{_C100R110}, flsd53", "worse", "4 of 4", (_C100R110,), "flsd53"),
        *_verdicts(f"{_C100R110}, dual_focal", "worse", "3 of 4", (_C100R110,), "dual_focal"),
        *_verdicts("all three settings", "better", "69 of 84", _TEN),
        *_verdicts("all three settings", "worse", "11 of 84", _TEN),
        *_verdicts("all three settings", "indistinguishable", "4 of 84", _TEN),
        ("fcl against ce on ECE: largest |d_z|", "11.7", partial(largest_effect, _TEN, "ce", "ece")),
    ]),
    *_numbers("6.9", "adafocal", "", [
        ("common split: adafocal has a lower ECE than fcl", "3 of 3",
         partial(times_lower, "adafocal", "fcl", "ece", _TEN, protocol="common split")),
        ("common split: fcl has a lower NLL than adafocal", "2 of 3",
         partial(times_lower, "fcl", "adafocal", "nll", _TEN, protocol="common split")),
        ("common split: fcl has a lower Brier score than adafocal", "2 of 3",
         partial(times_lower, "fcl", "adafocal", "brier", _TEN, protocol="common split")),
        ("common split: fcl has a lower error than adafocal", "3 of 3",
         partial(times_lower, "fcl", "adafocal", "error", _TEN, protocol="common split")),
        *((f"{setting}, common split, adafocal: last gamma of the lowest bin", printed,
           partial(gamma_of_lowest_bin, setting))
          for setting, printed in zip(_TEN, ("7.98", "20.0", "6.41"), strict=True)),
    ]),
    *_numbers("7.1", "surface", "%", _surface(
        _C10R50, 4, {0: "8.42", 0.25: "1.40", 0.5: "0.92", 1: "1.16", 8: "2.27"})),
    *_numbers("7.1", "surface", "%", _surface(_C10R50, 5, {0: "11.74"})),
    *_numbers("7.1", "surface", "%", _surface(
        _C100R110, 4, {0: "2.69", 0.1: "1.28", 0.25: "4.15", 0.5: "5.79", 1: "9.59", 8: "14.40"})),
    *_numbers("7.1", "surface", "", [
        (f"{_C10R50}, fcl, gamma = 4, seed 0: lam of the lowest ECE of these five", "0.5",
         partial(best_lam, _C10R50, "fcl", "ece", (0.0, 0.25, 0.5, 1.0, 8.0), gamma=4.0)),
        (f"{_C100R110}, fcl, gamma = 4, seed 0: lam of the lowest ECE", "0.1",
         partial(best_lam, _C100R110, "fcl", "ece", SURFACE_LAMS, gamma=4.0)),
    ]),
)  # fmt: skip
