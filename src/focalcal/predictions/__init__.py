"""Stored predictions: what a model said about a set of examples, and what was true.

Everything that measures, calibrates, compares or draws starts here, so it can be done again from a file alone.
"""

from focalcal.predictions.header import PredictionsFileError
from focalcal.predictions.inputs import Inputs, InputWarning, read_inputs
from focalcal.predictions.record import Predictions

__all__ = ["InputWarning", "Inputs", "Predictions", "PredictionsFileError", "read_inputs"]
