"""Post-hoc calibrators: scikit-learn estimators from logits to probabilities, fitted on held-out data."""

from os import PathLike
from typing import Any

from focalcal.core.named_table import NamedTable
from focalcal.posthoc.affine_scaling import DirichletCalibration, MatrixScaling, VectorScaling
from focalcal.posthoc.calibrated_model import CalibratedModel
from focalcal.posthoc.calibrator import CalibrationWarning, Calibrator
from focalcal.posthoc.choice import CalibratorChoice, calibrate
from focalcal.posthoc.comparison import CalibratorCandidate
from focalcal.posthoc.conformal import ConformalSets, SetCoverage
from focalcal.posthoc.early_stopping import EarlyStopping, EpochScores, epoch_scores
from focalcal.posthoc.ensemble import EnsembleTemperatureScaling
from focalcal.posthoc.focal_temperature import FocalTemperatureScaling
from focalcal.posthoc.groupwise import GroupGains, GroupwiseCalibration
from focalcal.posthoc.headroom import Headroom, headroom
from focalcal.posthoc.histogram import HistogramBinning
from focalcal.posthoc.isotonic import CentredIsotonic, IsotonicCalibration, VennAbers
from focalcal.posthoc.label_shift import LabelShift, label_shift
from focalcal.posthoc.logistic_maps import BetaCalibration, PlattScaling, QuadraticScaling
from focalcal.posthoc.mixture import CalibratorMixture, WithUniform
from focalcal.posthoc.multilabel import MultilabelCalibration
from focalcal.posthoc.operating_point import OperatingPoint, operating_point
from focalcal.posthoc.recovery import PosteriorRecovery, log_posterior
from focalcal.posthoc.selective_threshold import SelectiveThreshold, selective_threshold
from focalcal.posthoc.spline import SplineCalibration
from focalcal.posthoc.split_half import SplitHalf, split_half
from focalcal.posthoc.storage import Stored, read_json, stored_from
from focalcal.posthoc.structured import StructuredScaling
from focalcal.posthoc.temperature import TemperatureScaling, optimal_inverse_temperature

__all__ = [
    "CALIBRATORS",
    "BetaCalibration",
    "CalibratedModel",
    "CalibrationWarning",
    "Calibrator",
    "CalibratorCandidate",
    "CalibratorChoice",
    "CalibratorMixture",
    "CentredIsotonic",
    "ConformalSets",
    "DirichletCalibration",
    "EarlyStopping",
    "EnsembleTemperatureScaling",
    "EpochScores",
    "FocalTemperatureScaling",
    "GroupGains",
    "GroupwiseCalibration",
    "Headroom",
    "HistogramBinning",
    "IsotonicCalibration",
    "LabelShift",
    "MatrixScaling",
    "MultilabelCalibration",
    "OperatingPoint",
    "PlattScaling",
    "PosteriorRecovery",
    "QuadraticScaling",
    "SelectiveThreshold",
    "SetCoverage",
    "SplineCalibration",
    "SplitHalf",
    "StructuredScaling",
    "TemperatureScaling",
    "VectorScaling",
    "VennAbers",
    "WithUniform",
    "calibrate",
    "epoch_scores",
    "headroom",
    "label_shift",
    "load_calibrator",
    "log_posterior",
    "operating_point",
    "optimal_inverse_temperature",
    "selective_threshold",
    "split_half",
]

CALIBRATORS: dict[str, type[Calibrator]] = NamedTable(
    "a calibrator",
    {
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
        "quadratic": QuadraticScaling,
        "centred_isotonic": CentredIsotonic,
        "venn_abers": VennAbers,
        "structured": StructuredScaling,
    },
)
"""Every calibrator by the name that audits and files use."""


def load_calibrator(path: str | PathLike[str]) -> Calibrator | GroupwiseCalibration | MultilabelCalibration:
    """The calibrator that a `save` wrote, of whichever class; any other file raises ValueError.

    Args:
        path: of the file.

    Returns:
        A calibrator of the class that was saved, fitted as it was.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     TemperatureScaling(2.0).save(f"{folder}/halved.json")
    ...     load_calibrator(f"{folder}/halved.json")
    TemperatureScaling(temperature=2.0)
    """
    return restored_calibrator(read_json(path), path)


def restored_calibrator(content: Any, path: str | PathLike[str]) -> Any:
    """The calibrator of `Calibrator.record()`; `path` is where it was found, for errors."""
    try:
        return restored(stored_from(content, path), path)
    except RecursionError:
        raise ValueError(
            f"{path} is damaged: its calibrators are nested too deeply; save one that was fitted"
        ) from None


def restored(stored: Stored, path: str | PathLike[str]) -> Any:
    """The calibrator of a file's content."""
    kinds = (*CALIBRATORS.values(), WithUniform, CalibratorMixture, GroupwiseCalibration, MultilabelCalibration)
    known: dict[str, Any] = {kind.__name__: kind for kind in kinds}
    if stored.name not in known:
        raise ValueError(f"{path} holds a {stored.name!r}, which is none of {', '.join(known)}")
    return known[stored.name]._restore(stored, path)
