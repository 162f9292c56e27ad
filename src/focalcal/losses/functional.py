"""Every objective as a function: one value per example (per label, for the multilabel_* ones), no reduction.

The exceptions return one number: `mmce` is a statistic of the batch, and `linear_focal_calibration` adds up the rows
whose logits it does not keep.
"""

from focalcal.losses.adafocal import adafocal
from focalcal.losses.brier import brier
from focalcal.losses.bsce_gra import bsce_gra
from focalcal.losses.cross_entropy import cross_entropy
from focalcal.losses.dual_focal import dual_focal
from focalcal.losses.flsd import flsd
from focalcal.losses.focal import focal
from focalcal.losses.focal_calibration import focal_calibration
from focalcal.losses.label_smoothing import label_smoothing
from focalcal.losses.linear import linear_focal_calibration
from focalcal.losses.mmce import mmce
from focalcal.losses.multilabel import (
    multilabel_bce,
    multilabel_brier,
    multilabel_focal,
    multilabel_focal_calibration,
)

__all__ = [
    "adafocal",
    "brier",
    "bsce_gra",
    "cross_entropy",
    "dual_focal",
    "flsd",
    "focal",
    "focal_calibration",
    "label_smoothing",
    "linear_focal_calibration",
    "mmce",
    "multilabel_bce",
    "multilabel_brier",
    "multilabel_focal",
    "multilabel_focal_calibration",
]
