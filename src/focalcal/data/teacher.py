"""Real inputs, known posterior: the labels of a data set are drawn anew from a fixed teacher.

The teacher is scikit-learn's logistic regression, fitted once to the real training labels;
eta(x) = softmax((W x + b) / T) is then the truth by definition, in float64, and a temperature T > 1 makes the classes
overlap. Inputs keep their ids, so that a relabelled example is still recognised.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.core.rng import numpy_stream
from focalcal.data.digits import load_digits
from focalcal.data.drawn_labels import drawn_labels
from focalcal.data.examples import DataSet, Examples

MAX_ROWS = 5_000  # that the teacher is fitted to: it has to be fixed, not good
_STEPS = 100
_AT_ONCE = 4096  # rows whose features are in memory as float64


def load_teacher(
    folder: Path | None = None, *, allow_partial: bool = False, temperature: float = 2.0, seed: int = 0
) -> DataSet:
    """The digits, relabelled; use `relabelled` for any other data set of images or features."""
    return replace(relabelled(load_digits(), temperature=temperature, seed=seed), name="teacher")


def relabelled(data: DataSet, *, temperature: float = 2.0, seed: int = 0) -> DataSet:
    """The same inputs and splits with labels drawn by `seed` and the posterior they were drawn from."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    if not 0 < temperature < float("inf"):
        raise ValueError(f"temperature must be > 0 and finite, got {temperature!r}")
    if data.train.labels.ndim != 1 or data.vocabulary is not None:
        raise ValueError(f"a teacher needs images or features with one label each, got {data!r}")
    rows = data.train.take(np.arange(min(MAX_ROWS, len(data.train))))
    if len(np.unique(rows.labels)) != len(data.classes):
        raise ValueError(f"every class must occur in the training rows the teacher sees, got {data!r}")
    # One thread: sums then have one order, so the labels do not depend on how many processors a machine has.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # where it stops is the teacher
        teacher = LogisticRegression(max_iter=_STEPS).fit(_features(rows.inputs), rows.labels)
        splits = {
            split: _drawn(examples, teacher, temperature, numpy_stream(seed, "teacher", split))
            for split, examples in data.splits.items()
        }
    options = {"temperature": float(temperature), "seed": seed, "teacher_rows": len(rows)}
    provenance = {**data.provenance, "relabelled_from": data.name, "options": options}
    return DataSet(
        f"teacher_{data.name}",
        data.classes,
        splits["train"],
        splits["val"],
        splits["test"],
        provenance=provenance,
    )


def _drawn(examples: Examples, teacher: Any, temperature: float, draws: np.random.Generator) -> Examples:
    posterior = np.empty((len(examples), len(teacher.classes_)))
    for start in range(0, len(examples), _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        logits = _features(examples.inputs[rows]) @ _rows(teacher.coef_).T + _rows(teacher.intercept_[:, None]).T
        odds = np.exp((logits - logits.max(1, keepdims=True)) / temperature)
        posterior[rows] = odds / odds.sum(1, keepdims=True)
    return replace(examples, labels=drawn_labels(posterior, draws), posterior=posterior)


def _rows(weights: NDArray[Any]) -> NDArray[Any]:
    """One row a class: for two classes scikit-learn keeps the second's row, as the log odds, only."""
    return np.concatenate([np.zeros_like(weights), weights]) if len(weights) == 1 else weights


def _features(inputs: NDArray[Any]) -> NDArray[np.float64]:
    """Flat rows; images from 0 to 1."""
    flat = inputs.reshape(len(inputs), -1).astype(np.float64)
    return flat / 255 if inputs.dtype == np.uint8 else flat
