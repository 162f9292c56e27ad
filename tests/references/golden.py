"""Inputs given by formulas, and values that published reference code gives on them (tolerance 1e-6, since
parts of that code run in float32).

Origins: CE, focal, FLSD-53, Brier, label smoothing and the coded MMCE from torrvision/focal_calibration;
MMCE from aviralkumar2907/MMCE; Dual Focal from Linwei94/DualFocalLoss; AdaFocal from 3mcloud/adafocal; FCL
from EagleAdelaide/Focal-Calibration-Loss-FCL (`FCLUngated`). The multi-label values have no reference code:
they follow from the formulas.
"""

import torch
from torch import Tensor

TOLERANCE = 1e-6

MEAN_LOSS = {  # first 128 rows: (name in LOSSES, arguments) -> value
    ("ce", ()): 1.1736990850,
    ("focal", (("gamma", 1),)): 0.8867082128,
    ("focal", (("gamma", 2),)): 0.7130255592,
    ("focal", (("gamma", 3),)): 0.5951337345,
    ("flsd53", ()): 0.5108178584,
    ("brier", ()): 0.6211466736,
    ("dual_focal", (("gamma", 3),)): 0.8267352276,
    ("ls", (("spread", "others"),)): 1.3560433176,
    ("ls", (("spread", "all"),)): 1.3378088944,
    ("fcl", (("gamma", 3), ("lam", 1))): 1.2162804081,
    ("adafocal", ()): 0.8867082128,
}
MMCE = {"unweighted": 0.0026288, "as_coded": 0.00227684, "formula": 0.12351141}
MULTILABEL = {
    ("multilabel_bce", ()): 1.3008646566,
    ("multilabel_focal", (("gamma", 3),)): 0.9248111103,
    ("multilabel_brier", ()): 0.7755590160,
    ("multilabel_fcl", (("gamma", 3), ("lam", 2))): 2.4759291423,
}


def single_label() -> tuple[Tensor, Tensor]:
    """2000 x 10 logits in float64 and their labels; accuracy 0.52."""
    i = torch.arange(1, 2001, dtype=torch.float64).unsqueeze(1)
    k = torch.arange(10, dtype=torch.float64)
    logits = 3 * torch.sin(0.37 * i * (k + 1)) + 2 * torch.cos(0.11 * i + 1.7 * k)
    labels = (logits + 2.5 * torch.sin(0.73 * i * (k + 2) + k)).argmax(1)
    return logits, labels


def multi_label() -> tuple[Tensor, Tensor]:
    """128 x 5 logits and 236 positive labels among them."""
    i = torch.arange(128, dtype=torch.float64).unsqueeze(1)
    k = torch.arange(5, dtype=torch.float64)
    return single_label()[0][:128, :5], torch.sin(1.3 * i + 2.1 * k) > 0.4
