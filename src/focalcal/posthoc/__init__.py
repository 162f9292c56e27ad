"""Post-hoc calibrators: scikit-learn estimators from logits to probabilities, fitted on held-out data."""

from focalcal.posthoc.beta import BetaCalibration
from focalcal.posthoc.calibrator import CalibrationWarning, Calibrator
from focalcal.posthoc.histogram import HistogramBinning
from focalcal.posthoc.isotonic import IsotonicCalibration
from focalcal.posthoc.matrix import MatrixScaling
from focalcal.posthoc.newton_temperature import optimal_inverse_temperature
from focalcal.posthoc.platt import PlattScaling
from focalcal.posthoc.recovery import PosteriorRecovery, log_posterior
from focalcal.posthoc.registry import CALIBRATORS, load_calibrator
from focalcal.posthoc.split_half import SplitHalf, split_half
from focalcal.posthoc.temperature import TemperatureScaling
from focalcal.posthoc.vector import VectorScaling

__all__ = [
    "CALIBRATORS",
    "BetaCalibration",
    "CalibrationWarning",
    "Calibrator",
    "HistogramBinning",
    "IsotonicCalibration",
    "MatrixScaling",
    "PlattScaling",
    "PosteriorRecovery",
    "SplitHalf",
    "TemperatureScaling",
    "VectorScaling",
    "load_calibrator",
    "log_posterior",
    "optimal_inverse_temperature",
    "split_half",
]
