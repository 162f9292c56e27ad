"""The calibrators by name, and a reader for any of their files."""

from __future__ import annotations

from os import PathLike

from focalcal.posthoc.beta import BetaCalibration
from focalcal.posthoc.calibrator import Calibrator
from focalcal.posthoc.histogram import HistogramBinning
from focalcal.posthoc.isotonic import IsotonicCalibration
from focalcal.posthoc.matrix import MatrixScaling
from focalcal.posthoc.platt import PlattScaling
from focalcal.posthoc.recovery import PosteriorRecovery
from focalcal.posthoc.storage import read
from focalcal.posthoc.temperature import TemperatureScaling
from focalcal.posthoc.vector import VectorScaling

CALIBRATORS: dict[str, type[Calibrator]] = {
    "temperature": TemperatureScaling,
    "vector": VectorScaling,
    "matrix": MatrixScaling,
    "platt": PlattScaling,
    "histogram": HistogramBinning,
    "isotonic": IsotonicCalibration,
    "beta": BetaCalibration,
    "recovery": PosteriorRecovery,
}


def load_calibrator(path: str | PathLike[str]) -> Calibrator:
    """The calibrator that a `save` wrote, of whichever class; any other file raises ValueError."""
    stored = read(path)
    known = {kind.__name__: kind for kind in CALIBRATORS.values()}
    if stored.name not in known:
        raise ValueError(f"{path} holds a {stored.name!r}, which is none of {', '.join(known)}")
    return known[stored.name]._restore(stored, path)
