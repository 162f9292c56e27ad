"""The forms in which scores come to `Predictions`: logits, probabilities, percentages, log-probabilities, outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np

from focalcal.core.checks import one_of, yes_or_no
from focalcal.predictions.answer_options import option_probs
from focalcal.predictions.field_checks import shares_of_percentages
from focalcal.predictions.header import SCALES
from focalcal.predictions.inputs import read_inputs

OTHER = "other"  # what answer options leave


def given_scores(
    logits: Any,
    probs: Any,
    logprobs: Any,
    labels: Any,
    confidence: Any,
    correct: Any,
    *,
    multilabel: bool,
    classes: Any,
    positive: Any,
    normalize: Any,
    missing: float | None,
    scale: str,
) -> tuple[str, Any, Any, Any, bool]:
    """The kind, the scores, the labels, the names of the classes, and whether there is only confidence and correct."""
    one_of("scale", scale, SCALES)
    if scale == "percent":
        if logits is not None or logprobs is not None:
            raise ValueError("scale='percent' is for probs=, got logits= or logprobs=; leave it out")
        probs = None if probs is None else shares_of_percentages("probs", probs)
        confidence = None if confidence is None else shares_of_percentages("confidence", confidence)
    if logprobs is not None:
        if logits is not None or probs is not None or multilabel:
            raise TypeError("logprobs take the place of logits and probs, one label per row; give one or the other")
        probs, normalize = option_probs(logprobs, normalize=normalize, missing=missing), False
        if classes is not None and probs.shape[1] > len(classes):
            classes = [*classes, OTHER]
    elif missing is not None or isinstance(normalize, str):
        raise TypeError(f"missing and normalize={normalize!r} are for logprobs; leave them out, or pass logprobs=")
    top1 = confidence is not None or correct is not None
    if top1:
        if any(given is not None for given in (logits, probs, labels, classes)) or multilabel:
            raise TypeError("confidence and correct take the place of scores and labels; give one or the other")
        outcomes = read_inputs(confidence=confidence, correct=correct)
        probs, labels = np.stack([1 - outcomes.scores, outcomes.scores], 1), outcomes.labels.astype(np.int64)
    if (logits is None) == (probs is None):
        got = "neither" if logits is None else "both"
        raise TypeError(f"give exactly one of logits= and probs=, got {got}; the name says what the scores are")
    yes_or_no("multilabel", multilabel)
    kind = "probs" if logits is None else "logits"
    scores, truth, named = probs if logits is None else logits, labels, classes
    if not multilabel:
        inputs = read_inputs(probs, labels, logits=logits, classes=classes, positive=positive, normalize=normalize)
        scores, truth, named = inputs.scores, inputs.labels, inputs.classes
    elif positive is not None or normalize:
        raise TypeError("positive and normalize are for one label per row; leave them out with multilabel=True")
    return kind, scores, truth, named, top1
