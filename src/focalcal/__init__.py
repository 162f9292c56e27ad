"""Calibration for PyTorch classifiers, around Focal Calibration Loss.

Names are imported when first used, so that `import focalcal` costs next to nothing and
`from focalcal import FocalCalibrationLoss` costs what `import torch` costs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from focalcal.losses import LOSSES as LOSSES
    from focalcal.losses import AdaFocalLoss as AdaFocalLoss
    from focalcal.losses import BrierLoss as BrierLoss
    from focalcal.losses import CrossEntropyLoss as CrossEntropyLoss
    from focalcal.losses import DualFocalLoss as DualFocalLoss
    from focalcal.losses import FLSDLoss as FLSDLoss
    from focalcal.losses import FocalCalibrationLoss as FocalCalibrationLoss
    from focalcal.losses import FocalLoss as FocalLoss
    from focalcal.losses import LabelSmoothingLoss as LabelSmoothingLoss
    from focalcal.losses import MMCELoss as MMCELoss
    from focalcal.losses import MultilabelBCELoss as MultilabelBCELoss
    from focalcal.losses import MultilabelBrierLoss as MultilabelBrierLoss
    from focalcal.losses import MultilabelFocalCalibrationLoss as MultilabelFocalCalibrationLoss
    from focalcal.losses import MultilabelFocalLoss as MultilabelFocalLoss
    from focalcal.metrics import METRICS as METRICS
    from focalcal.metrics import CalibrationSketch as CalibrationSketch
    from focalcal.metrics import bootstrap as bootstrap
    from focalcal.metrics.summary import summary as summary
    from focalcal.posthoc import CALIBRATORS as CALIBRATORS
    from focalcal.posthoc import BetaCalibration as BetaCalibration
    from focalcal.posthoc import CalibrationWarning as CalibrationWarning
    from focalcal.posthoc import HistogramBinning as HistogramBinning
    from focalcal.posthoc import IsotonicCalibration as IsotonicCalibration
    from focalcal.posthoc import MatrixScaling as MatrixScaling
    from focalcal.posthoc import PlattScaling as PlattScaling
    from focalcal.posthoc import PosteriorRecovery as PosteriorRecovery
    from focalcal.posthoc import TemperatureScaling as TemperatureScaling
    from focalcal.posthoc import VectorScaling as VectorScaling
    from focalcal.posthoc import load_calibrator as load_calibrator
    from focalcal.posthoc.split_half import split_half as split_half
    from focalcal.predictions import Predictions as Predictions
    from focalcal.predictions import PredictionsFileError as PredictionsFileError

__version__ = "0.1.0"

_HOME = {
    "LOSSES": "focalcal.losses",
    "AdaFocalLoss": "focalcal.losses",
    "BrierLoss": "focalcal.losses",
    "CrossEntropyLoss": "focalcal.losses",
    "DualFocalLoss": "focalcal.losses",
    "FLSDLoss": "focalcal.losses",
    "FocalCalibrationLoss": "focalcal.losses",
    "FocalLoss": "focalcal.losses",
    "LabelSmoothingLoss": "focalcal.losses",
    "MMCELoss": "focalcal.losses",
    "MultilabelBCELoss": "focalcal.losses",
    "MultilabelBrierLoss": "focalcal.losses",
    "MultilabelFocalCalibrationLoss": "focalcal.losses",
    "MultilabelFocalLoss": "focalcal.losses",
    "METRICS": "focalcal.metrics",
    "CalibrationSketch": "focalcal.metrics",
    "bootstrap": "focalcal.metrics",
    "summary": "focalcal.metrics",
    "CALIBRATORS": "focalcal.posthoc",
    "BetaCalibration": "focalcal.posthoc",
    "CalibrationWarning": "focalcal.posthoc",
    "HistogramBinning": "focalcal.posthoc",
    "IsotonicCalibration": "focalcal.posthoc",
    "MatrixScaling": "focalcal.posthoc",
    "PlattScaling": "focalcal.posthoc",
    "PosteriorRecovery": "focalcal.posthoc",
    "TemperatureScaling": "focalcal.posthoc",
    "VectorScaling": "focalcal.posthoc",
    "load_calibrator": "focalcal.posthoc",
    "split_half": "focalcal.posthoc",
    "Predictions": "focalcal.predictions",
    "PredictionsFileError": "focalcal.predictions",
}
_PACKAGES = (
    "core",
    "data",
    "experiments",
    "losses",
    "metrics",
    "models",
    "posthoc",
    "predictions",
    "reports",
    "results",
    "stats",
    "theory",
    "training",
)

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _PACKAGES:
        value = import_module(f"focalcal.{name}")
    else:
        raise AttributeError(f"focalcal has no attribute {name!r}; it has {', '.join(__all__)}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])
