"""Training objectives: drop-in replacements for `nn.CrossEntropyLoss`. `functional` has them per example."""

try:
    from torch import nn
except ModuleNotFoundError as missing:
    from focalcal.core.extras import install_command

    message = f"focalcal.losses needs the package torch: {install_command('torch', extra='torch')}"
    raise ModuleNotFoundError(message, name="torch") from missing

from focalcal.core.named_table import NamedTable
from focalcal.losses import functional
from focalcal.losses.adafocal import AdaFocalLoss
from focalcal.losses.brier import BrierLoss
from focalcal.losses.bsce_gra import BSCEGRALoss
from focalcal.losses.cross_entropy import CrossEntropyLoss
from focalcal.losses.dual_focal import DualFocalLoss
from focalcal.losses.flsd import FLSDLoss
from focalcal.losses.focal import FocalLoss
from focalcal.losses.focal_calibration import FocalCalibrationLoss
from focalcal.losses.label_smoothing import LabelSmoothingLoss
from focalcal.losses.linear import LinearFocalCalibrationLoss
from focalcal.losses.mmce import MMCELoss
from focalcal.losses.multilabel import (
    MultilabelBCELoss,
    MultilabelBrierLoss,
    MultilabelFocalCalibrationLoss,
    MultilabelFocalLoss,
)
from focalcal.losses.scale import matched_scale

LOSSES: dict[str, type[nn.Module]] = NamedTable(
    "an objective",
    {
        "ce": CrossEntropyLoss,
        "focal": FocalLoss,
        "brier": BrierLoss,
        "ls": LabelSmoothingLoss,
        "mmce": MMCELoss,
        "flsd53": FLSDLoss,
        "dual_focal": DualFocalLoss,
        "adafocal": AdaFocalLoss,
        "bsce_gra": BSCEGRALoss,
        "fcl": FocalCalibrationLoss,
        "multilabel_bce": MultilabelBCELoss,
        "multilabel_focal": MultilabelFocalLoss,
        "multilabel_brier": MultilabelBrierLoss,
        "multilabel_fcl": MultilabelFocalCalibrationLoss,
    },
)
"""Every objective's module by the name that studies and commands use."""

__all__ = [
    "LOSSES",
    "AdaFocalLoss",
    "BSCEGRALoss",
    "BrierLoss",
    "CrossEntropyLoss",
    "DualFocalLoss",
    "FLSDLoss",
    "FocalCalibrationLoss",
    "FocalLoss",
    "LabelSmoothingLoss",
    "LinearFocalCalibrationLoss",
    "MMCELoss",
    "MultilabelBCELoss",
    "MultilabelBrierLoss",
    "MultilabelFocalCalibrationLoss",
    "MultilabelFocalLoss",
    "functional",
    "matched_scale",
]
