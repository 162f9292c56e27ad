"""Numbers printed in the paper on Focal Calibration Loss, to stand beside ours and never in their place.

Its tables, and what its text says of single cells, with the digits it prints; `paper_text` has the other numbers of its
text. The supplement's tables are not here. Other runs on other machines, and often another protocol: `against_paper`
says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal

from focalcal.analysis.numbers import Printed

Protocol = Literal["main", "common split", "fine-tuned", "from scratch"]

METRICS = ("error", "ece", "nll", "brier", "auroc", "mce")
OBJECTIVES = ("ce", "focal", "brier", "mmce", "ls", "flsd53", "dual_focal", "fcl")  # of the rows of _ERROR and _ECE

# Table 1: test error in percent, mean and standard deviation over three seeds, whole training and test set.
_ERROR = {
    "cifar100/resnet50": "20.58±0.33 21.88±0.22 23.56±0.78 21.56±1.12 20.71±0.10 21.15±0.10 22.07±0.38 20.94±0.24",
    "cifar100/resnet110": "26.28±0.29 26.60±0.22 29.00±0.42 26.46±0.41 25.87±0.52 26.40±0.09 27.08±0.22 26.33±0.26",
    "cifar100/wide_resnet26_10": "18.62±0.25 18.58±0.18 19.29±0.09 18.65±0.34 "
    "18.00±0.27 18.80±0.10 19.39±0.08 18.88±0.20",
    "cifar100/densenet121": "19.55±0.08 19.78±0.28 21.38±0.32 20.29±0.41 19.74±0.21 20.10±0.30 20.63±0.18 19.85±0.39",
    "cifar10/resnet50": "4.71±0.15 5.38±0.27 5.13±0.23 4.86±0.10 4.73±0.19 5.03±0.09 5.30±0.20 4.58±0.13",
    "cifar10/resnet110": "5.79±0.24 6.48±0.26 6.50±0.50 6.01±0.26 5.86±0.22 6.11±0.08 6.61±0.24 5.82±0.21",
    "cifar10/wide_resnet26_10": "3.77±0.06 4.02±0.03 3.86±0.10 3.87±0.08 3.95±0.09 4.18±0.08 4.24±0.08 3.96±0.01",
    "cifar10/densenet121": "4.55±0.14 4.95±0.18 4.86±0.29 4.63±0.18 4.64±0.07 4.90±0.14 5.19±0.24 4.65±0.15",
    "tiny_imagenet/resnet50_tiny": "35.45±0.14 37.25±0.56 39.30±1.35 35.33±0.27 "
    "35.34±0.36 37.24±0.12 37.32±0.37 36.67±0.03",
    "newsgroups_19997/gp_cnn": "15.58±0.25 16.13±0.23 16.04±0.25 15.36±0.49 "
    "14.36±0.05 16.00±0.18 16.05±0.11 14.87±0.35",
    "ag_news/gp_cnn": "9.46±0.05 9.48±0.16 8.99±0.21 9.12±0.15 8.64±0.21 9.58±0.19 9.43±0.15 9.53±0.38",
    "finsen/gp_cnn": "0.64±0.04 0.74±0.07 0.89±0.13 0.71±0.07 0.63±0.07 0.86±0.11 0.80±0.05 0.71±0.09",
}
# Table 2: ECE in percent, 15 bins, the same runs, no temperature. That of texts is in the supplement.
_ECE = {
    "cifar100/resnet50": "8.85 4.89 5.67 9.73 3.46 4.81 5.94 2.53",
    "cifar100/resnet110": "14.26 1.44 12.30 15.78 8.97 1.39 1.73 9.24",
    "cifar100/wide_resnet26_10": "4.81 11.77 7.28 5.03 9.24 11.62 12.11 6.09",
    "cifar100/densenet121": "7.06 8.79 3.28 8.73 5.35 8.67 10.80 1.83",
    "cifar10/resnet50": "3.02 4.35 1.92 3.20 4.26 4.89 3.51 1.47",
    "cifar10/resnet110": "4.22 3.37 3.70 4.58 3.28 3.23 3.09 2.64",
    "cifar10/wide_resnet26_10": "1.75 8.61 0.85 2.07 4.24 8.35 6.80 1.47",
    "cifar10/densenet121": "2.72 9.31 1.53 3.03 4.07 9.65 8.03 1.57",
    "tiny_imagenet/resnet50_tiny": "5.80 5.77 2.21 7.54 2.86 5.57 12.03 2.19",
}
# Table 3: CIFAR-100, fine-tuned from ImageNet weights; error and ECE in percent, of each network.
_TRANSFORMERS = ("deit_small", "vit_small", "swin_tiny")
_FINE_TUNED = {
    "ce": "12.77±0.11 9.60 10.11±0.17 7.26 11.60±0.11 8.46",
    "focal": "12.89±0.22 2.34 10.33±0.26 1.69 12.11±0.08 3.74",
    "brier": "12.97±0.04 7.29 11.04±0.17 6.54 11.65±0.01 7.20",
    "mmce": "12.62±0.20 9.67 10.33±0.02 7.67 11.64±0.34 8.72",
    "ls": "12.38±0.16 4.18 9.97±0.18 3.99 11.24±0.13 4.25",
    "flsd53": "12.89±0.24 2.21 10.43±0.30 1.71 11.84±0.02 3.52",
    "dual_focal": "13.12±0.30 2.31 10.91±0.14 2.83 11.85±0.20 4.55",
    "fcl": "12.55±0.31 6.48 10.09±0.35 5.07 11.68±0.12 6.53",
}
# Table 4: 45k / 5k / 10k images; error and ECE in percent, NLL, Brier score; no temperature.
_COMMON_SPLIT = {
    "cifar10/resnet50": {
        "ce": "5.16 3.21 0.214 0.085",
        "brier": "5.52 2.12 0.199 0.087",
        "focal": "5.66 4.25 0.207 0.087",
        "flsd53": "5.46 4.29 0.202 0.085",
        "dual_focal": "5.86 2.96 0.198 0.090",
        "adafocal": "5.42 0.65 0.170 0.081",
        "fcl": "4.84 1.47 0.159 0.074",
    },
    "cifar100/resnet50": {
        "ce": "22.08 8.92 0.924 0.327",
        "brier": "24.41 4.85 0.996 0.347",
        "focal": "22.44 4.58 0.823 0.316",
        "flsd53": "22.38 4.63 0.830 0.318",
        "dual_focal": "23.77 4.11 0.880 0.334",
        "adafocal": "22.26 1.39 0.806 0.311",
        "fcl": "21.86 2.54 0.803 0.307",
    },
    "cifar100/resnet110": {
        "ce": "26.66 14.36 1.288 0.408",
        "brier": "30.00 12.32 1.318 0.440",
        "focal": "27.43 1.57 0.999 0.380",
        "flsd53": "27.28 1.83 0.988 0.378",
        "dual_focal": "28.19 2.08 1.035 0.388",
        "adafocal": "27.17 1.19 0.957 0.371",
        "fcl": "26.95 9.49 1.088 0.387",
    },
}
# Section 6.5 (chest X-rays, text): means over 14 findings, not in percent.
_CHEST = {
    "multilabel_bce": {"auroc": "0.8171", "ece": "0.0119", "mce": "0.1308"},
    "multilabel_fcl": {"auroc": "0.8147", "ece": "0.0319", "mce": "0.1229"},
}
# Section 6.2, text: NLL of the runs of Tables 1 and 2.
_NLL = {"tiny_imagenet/resnet50_tiny": {"brier": "1.791", "fcl": "1.487"}}

VISION = tuple(_ECE)
CIFAR10 = tuple(setting for setting in VISION if setting.startswith("cifar10/"))
TRANSFORMERS = tuple(f"cifar100/{model}" for model in _TRANSFORMERS)
TEN_SEED_SETTINGS = tuple(_COMMON_SPLIT)  # and of the common split: the same three
SURFACE_LAMS = (0.0, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0)

# AUROC that others reported for the findings of ChestX-ray14, as CheXNet's authors list them; their splits are others.
# Wang et al. (2017), Yao et al. (2017), Rajpurkar et al. (2017, CheXNet).
LITERATURE = ("Wang et al.", "Yao et al.", "CheXNet")
LITERATURE_AUROC = {
    "Atelectasis": "0.716 0.772 0.8094",
    "Cardiomegaly": "0.807 0.904 0.9248",
    "Effusion": "0.784 0.859 0.8638",
    "Infiltration": "0.609 0.695 0.7345",
    "Mass": "0.706 0.792 0.8676",
    "Nodule": "0.671 0.717 0.7802",
    "Pneumonia": "0.633 0.713 0.7680",
    "Pneumothorax": "0.806 0.841 0.8887",
    "Consolidation": "0.708 0.788 0.7901",
    "Edema": "0.835 0.882 0.8878",
    "Emphysema": "0.815 0.829 0.9371",
    "Fibrosis": "0.769 0.767 0.8047",
    "Pleural_Thickening": "0.708 0.765 0.8062",
    "Hernia": "0.767 0.914 0.9164",
}


@dataclass(frozen=True)
class PaperNumber:
    """A number of the paper, in percent or not, and the standard deviation that it prints beside it, if any."""

    value: Printed
    deviation: Printed | None
    percent: bool
    source: str


def paper_number(setting: str, objective: str, metric: str, *, protocol: Protocol = "main") -> PaperNumber | None:
    """What the paper prints for a cell under a protocol, or None.

    >>> paper_number("cifar10/resnet50", "fcl", "error").value.text
    '4.58'
    """
    if protocol == "from scratch":
        return None  # in the supplement
    if protocol == "common split":
        row = _COMMON_SPLIT.get(setting, {}).get(objective)
        cell = _at(row, ("error", "ece", "nll", "brier"), metric)
        return _number(cell, metric in ("error", "ece"), "Table 4, common split")
    if protocol == "fine-tuned":
        data_set, _, model = setting.partition("/")
        if data_set != "cifar100" or model not in _TRANSFORMERS:
            return None
        columns = [f"{name} {kind}" for name in _TRANSFORMERS for kind in ("error", "ece")]
        return _number(_at(_FINE_TUNED.get(objective), columns, f"{model} {metric}"), True, "Table 3, fine-tuned")
    if setting == "chestxray14/chexnet":
        return _number(_CHEST.get(objective, {}).get(metric), False, "Section 6.5")
    if metric == "nll":
        return _number(_NLL.get(setting, {}).get(objective), False, "Section 6.2")
    rows = {"error": _ERROR, "ece": _ECE}.get(metric, {})
    source = "Table 1" if metric == "error" else "Table 2"
    return _number(_at(rows.get(setting), OBJECTIVES, objective), True, source)


def table_cells() -> Iterator[tuple[Protocol, str, str, str]]:
    """Protocol, setting, objective and metric of every cell that `paper_number` knows, in the paper's order."""
    adafocal = tuple(_COMMON_SPLIT["cifar10/resnet50"])
    shapes: dict[Protocol, list[tuple[Iterable[str], tuple[str, ...]]]] = {
        "main": [(_ERROR, OBJECTIVES), (["chestxray14/chexnet"], tuple(_CHEST))],
        "fine-tuned": [(TRANSFORMERS, OBJECTIVES)],
        "common split": [(_COMMON_SPLIT, adafocal)],
    }
    for protocol, parts in shapes.items():
        for settings, objectives in parts:
            for setting, objective, metric in product(settings, objectives, METRICS):
                if paper_number(setting, objective, metric, protocol=protocol) is not None:
                    yield protocol, setting, objective, metric


def study_of(protocol: Protocol, setting: str) -> str:
    """The shipped study that has the paper's cells of a setting."""
    named: dict[str, str] = {"common split": "adafocal", "fine-tuned": "transformer-finetune"}
    model = setting.partition("/")[2]
    return named.get(protocol, {"gp_cnn": "text", "chexnet": "chestxray"}.get(model, "vision"))


def literature_auroc(finding: str) -> dict[str, Printed]:
    """What others reported for one finding, by author; nothing for a finding that is not known."""
    row = LITERATURE_AUROC.get(finding)
    return dict(zip(LITERATURE, map(Printed, row.split()), strict=True)) if row else {}


def _at(row: str | None, names: tuple[str, ...] | list[str], name: str) -> str | None:
    return row.split()[names.index(name)] if row is not None and name in names else None


def _number(cell: str | None, percent: bool, source: str) -> PaperNumber | None:
    if cell is None:
        return None
    mean, _, spread = cell.partition("±")
    return PaperNumber(Printed(mean), Printed(spread) if spread else None, percent, source)
