"""Stored predictions: what a model said about a set of examples, and what was true.

Everything that measures, calibrates, compares or draws starts here, so it can be done again from a file alone. What
language models give (log-probabilities of options or of the most probable tokens, stated confidences, samples, logs of
evaluations) becomes predictions here, too.
"""

from focalcal.predictions.answer_options import option_probs
from focalcal.predictions.evaluation_logs import TaskLog, read_logs
from focalcal.predictions.header import PredictionsFileError
from focalcal.predictions.inputs import Inputs, InputWarning, read_inputs
from focalcal.predictions.record import Predictions
from focalcal.predictions.sampled_answers import sampled_answers
from focalcal.predictions.top_k import TopK, top_k
from focalcal.predictions.verbalised import Verbalised, verbalised

__all__ = [
    "InputWarning",
    "Inputs",
    "Predictions",
    "PredictionsFileError",
    "TaskLog",
    "TopK",
    "Verbalised",
    "option_probs",
    "read_inputs",
    "read_logs",
    "sampled_answers",
    "top_k",
    "verbalised",
]
