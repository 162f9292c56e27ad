"""Post-hoc calibrators: scikit-learn estimators from logits to probabilities, fitted on held-out data."""

from os import PathLike
from typing import Any

from focalcal.posthoc.beta import BetaCalibration
from focalcal.posthoc.calibrated_model import CalibratedModel
from focalcal.posthoc.calibrator import CalibrationWarning, Calibrator
from focalcal.posthoc.conformal import ConformalSets, SetCoverage
from focalcal.posthoc.dirichlet import DirichletCalibration
from focalcal.posthoc.ensemble import EnsembleTemperatureScaling
from focalcal.posthoc.focal_temperature import FocalTemperatureScaling
from focalcal.posthoc.histogram import HistogramBinning
from focalcal.posthoc.isotonic import IsotonicCalibration
from focalcal.posthoc.matrix import MatrixScaling
from focalcal.posthoc.multilabel import MultilabelCalibration
from focalcal.posthoc.newton_temperature import optimal_inverse_temperature
from focalcal.posthoc.operating_point import OperatingPoint, operating_point
from focalcal.posthoc.platt import PlattScaling
from focalcal.posthoc.recovery import PosteriorRecovery, log_posterior
from focalcal.posthoc.spline import SplineCalibration
from focalcal.posthoc.split_half import SplitHalf, split_half
from focalcal.posthoc.storage import Stored, read, stored_from
from focalcal.posthoc.structured import StructuredScaling
from focalcal.posthoc.temperature import TemperatureScaling
from focalcal.posthoc.vector import VectorScaling
from focalcal.posthoc.with_uniform import WithUniform

__all__ = [
    "CALIBRATORS",
    "BetaCalibration",
    "CalibratedModel",
    "CalibrationWarning",
    "Calibrator",
    "ConformalSets",
    "DirichletCalibration",
    "EnsembleTemperatureScaling",
    "FocalTemperatureScaling",
    "HistogramBinning",
    "IsotonicCalibration",
    "MatrixScaling",
    "MultilabelCalibration",
    "OperatingPoint",
    "PlattScaling",
    "PosteriorRecovery",
    "SetCoverage",
    "SplineCalibration",
    "SplitHalf",
    "StructuredScaling",
    "TemperatureScaling",
    "VectorScaling",
    "WithUniform",
    "load_calibrator",
    "log_posterior",
    "operating_point",
    "optimal_inverse_temperature",
    "split_half",
]

CALIBRATORS: dict[str, type[Calibrator]] = {
    "temperature": TemperatureScaling,
    "vector": VectorScaling,
    "matrix": MatrixScaling,
    "platt": PlattScaling,
    "histogram": HistogramBinning,
    "isotonic": IsotonicCalibration,
    "beta": BetaCalibration,
    "recovery": PosteriorRecovery,
    "dirichlet": DirichletCalibration,
    "ensemble": EnsembleTemperatureScaling,
    "focal_temperature": FocalTemperatureScaling,
    "spline": SplineCalibration,
    "structured": StructuredScaling,
}
"""Every calibrator by the name that audits and files use."""


def load_calibrator(path: str | PathLike[str]) -> Calibrator | MultilabelCalibration:
    """The calibrator that a `save` wrote, of whichever class; any other file raises ValueError."""
    stored = read(path)
    if stored.name != MultilabelCalibration.__name__:
        return _restored(stored, path)
    parts = stored.state.get("calibrators_")
    calibrators = [restored_part(part, path) for part in parts] if isinstance(parts, list) else []
    return MultilabelCalibration._restore(stored, calibrators, path)


def _restored(stored: Stored, path: str | PathLike[str]) -> Calibrator:
    known: dict[str, type[Calibrator]] = {kind.__name__: kind for kind in (*CALIBRATORS.values(), WithUniform)}
    if stored.name not in known:
        raise ValueError(f"{path} holds a {stored.name!r}, which is none of {', '.join(known)}")
    return known[stored.name]._restore(stored, path)


def restored_part(content: Any, path: str | PathLike[str]) -> Calibrator:
    """A calibrator that is a part of another one's file."""
    return _restored(stored_from(content, path), path)
