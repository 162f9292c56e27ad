"""Calibration for PyTorch classifiers, around Focal Calibration Loss.

Names are imported when first used, so that `import focalcal` costs next to nothing and
`from focalcal import FocalCalibrationLoss` costs what `import torch` costs.
"""

from typing import TYPE_CHECKING

from focalcal.core.lazy import lazy_names

if TYPE_CHECKING:
    from focalcal.auditing import Audit as Audit
    from focalcal.auditing import Monitor as Monitor
    from focalcal.auditing import audit as audit
    from focalcal.auditing import monitor as monitor
    from focalcal.core.checks import ProbabilityWarning as ProbabilityWarning
    from focalcal.lab.studies.tuning import tune as tune
    from focalcal.losses import LOSSES as LOSSES
    from focalcal.losses import AdaFocalLoss as AdaFocalLoss
    from focalcal.losses import BrierLoss as BrierLoss
    from focalcal.losses import BSCEGRALoss as BSCEGRALoss
    from focalcal.losses import CrossEntropyLoss as CrossEntropyLoss
    from focalcal.losses import DualFocalLoss as DualFocalLoss
    from focalcal.losses import FLSDLoss as FLSDLoss
    from focalcal.losses import FocalCalibrationLoss as FocalCalibrationLoss
    from focalcal.losses import FocalLoss as FocalLoss
    from focalcal.losses import LabelSmoothingLoss as LabelSmoothingLoss
    from focalcal.losses import LinearFocalCalibrationLoss as LinearFocalCalibrationLoss
    from focalcal.losses import MMCELoss as MMCELoss
    from focalcal.losses import MultilabelBCELoss as MultilabelBCELoss
    from focalcal.losses import MultilabelBrierLoss as MultilabelBrierLoss
    from focalcal.losses import MultilabelFocalCalibrationLoss as MultilabelFocalCalibrationLoss
    from focalcal.losses import MultilabelFocalLoss as MultilabelFocalLoss
    from focalcal.metrics import METRICS as METRICS
    from focalcal.metrics import CalibrationSketch as CalibrationSketch
    from focalcal.metrics.bootstrap import bootstrap as bootstrap
    from focalcal.metrics.summary import summary as summary
    from focalcal.pages import ReliabilityDisplay as ReliabilityDisplay
    from focalcal.pages import RiskCoverageDisplay as RiskCoverageDisplay
    from focalcal.posthoc import CALIBRATORS as CALIBRATORS
    from focalcal.posthoc import BetaCalibration as BetaCalibration
    from focalcal.posthoc import CalibratedModel as CalibratedModel
    from focalcal.posthoc import CalibrationWarning as CalibrationWarning
    from focalcal.posthoc import CentredIsotonic as CentredIsotonic
    from focalcal.posthoc import ConformalSets as ConformalSets
    from focalcal.posthoc import DirichletCalibration as DirichletCalibration
    from focalcal.posthoc import EarlyStopping as EarlyStopping
    from focalcal.posthoc import EnsembleTemperatureScaling as EnsembleTemperatureScaling
    from focalcal.posthoc import FocalTemperatureScaling as FocalTemperatureScaling
    from focalcal.posthoc import GroupwiseCalibration as GroupwiseCalibration
    from focalcal.posthoc import HistogramBinning as HistogramBinning
    from focalcal.posthoc import IsotonicCalibration as IsotonicCalibration
    from focalcal.posthoc import MatrixScaling as MatrixScaling
    from focalcal.posthoc import MultilabelCalibration as MultilabelCalibration
    from focalcal.posthoc import OperatingPoint as OperatingPoint
    from focalcal.posthoc import PlattScaling as PlattScaling
    from focalcal.posthoc import PosteriorRecovery as PosteriorRecovery
    from focalcal.posthoc import QuadraticScaling as QuadraticScaling
    from focalcal.posthoc import SplineCalibration as SplineCalibration
    from focalcal.posthoc import StructuredScaling as StructuredScaling
    from focalcal.posthoc import TemperatureScaling as TemperatureScaling
    from focalcal.posthoc import VectorScaling as VectorScaling
    from focalcal.posthoc import VennAbers as VennAbers
    from focalcal.posthoc import WithUniform as WithUniform
    from focalcal.posthoc import calibrate as calibrate
    from focalcal.posthoc import load_calibrator as load_calibrator
    from focalcal.posthoc.headroom import headroom as headroom
    from focalcal.posthoc.label_shift import label_shift as label_shift
    from focalcal.posthoc.operating_point import operating_point as operating_point
    from focalcal.posthoc.selective_threshold import selective_threshold as selective_threshold
    from focalcal.posthoc.split_half import split_half as split_half
    from focalcal.predictions import InputWarning as InputWarning
    from focalcal.predictions import Predictions as Predictions
    from focalcal.predictions import PredictionsFileError as PredictionsFileError

__version__ = "0.3.0"

_NAMES = {
    "auditing": "Audit audit Monitor monitor",
    "losses": """
        LOSSES AdaFocalLoss BrierLoss CrossEntropyLoss BSCEGRALoss DualFocalLoss FLSDLoss FocalCalibrationLoss
        FocalLoss LabelSmoothingLoss LinearFocalCalibrationLoss MMCELoss MultilabelBCELoss MultilabelBrierLoss
        MultilabelFocalCalibrationLoss MultilabelFocalLoss
    """,
    "metrics": "METRICS CalibrationSketch bootstrap summary",
    "posthoc": """
        CALIBRATORS BetaCalibration CalibratedModel CalibrationWarning CentredIsotonic ConformalSets
        DirichletCalibration EarlyStopping EnsembleTemperatureScaling FocalTemperatureScaling GroupwiseCalibration
        HistogramBinning IsotonicCalibration MatrixScaling MultilabelCalibration OperatingPoint PlattScaling
        PosteriorRecovery QuadraticScaling SplineCalibration StructuredScaling TemperatureScaling VectorScaling
        VennAbers WithUniform calibrate headroom label_shift load_calibrator operating_point selective_threshold
        split_half
    """,
    "core.checks": "ProbabilityWarning",
    "predictions": "InputWarning Predictions PredictionsFileError",
    "pages": "ReliabilityDisplay RiskCoverageDisplay",
    "lab.studies.tuning": "tune",
}
_HOME = {name: home for home, names in _NAMES.items() for name in names.split()}
_PACKAGES = ("auditing", "core", "lab", "losses", "metrics", "pages", "posthoc", "predictions", "stats", "theory")

__all__ = ["__version__", *_HOME]
__getattr__, __dir__ = lazy_names(__name__, _HOME, submodules=_PACKAGES, search=("metrics", "theory"))
