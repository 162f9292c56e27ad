"""Data sets whose posterior eta(x) is known exactly: the theory's population, Gaussian classes, a fixed teacher.

discrete          40 equally probable states and 5 classes; an input is the state as a one-hot row, float32 (N, 40), so
                  that a linear model can represent every prediction
gaussian_mixture  class k has the density N(mean_k, I) and prior pi_k, so eta_k(x) is proportional to
                  pi_k exp(-|x - mean_k|^2 / 2), computed in float64 from the very float32 features (N, dimensions) that
                  a model gets; the means lie on a sphere of radius `separation`: the larger, the easier
teacher           real inputs with labels drawn anew from eta(x) = softmax((W x + b) / T), scikit-learn's logistic
                  regression, fitted once to the real training labels; it is the truth by definition, in float64, and a
                  temperature T > 1 makes the classes overlap. Inputs keep their ids
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.core.checks import whole_number
from focalcal.core.forty_states import population
from focalcal.core.rng import numpy_stream
from focalcal.lab.data.examples import SPLITS, DataSet, Examples, numbered_ids
from focalcal.lab.data.image_sets import load_digits

_TEACHER_ROWS = 5_000  # that the teacher is fitted to: it has to be fixed, not good
_TEACHER_STEPS = 100
_AT_ONCE = 4096  # rows whose features are in memory as float64


def load_discrete(*, sizes: tuple[int, int, int] = (20_000, 4_000, 20_000), seed: int = 0) -> DataSet:
    """Fresh draws for every split; `sizes` are those of train, val and test."""
    states = population()
    splits = {}
    for split, size in zip(SPLITS, sizes, strict=True):
        draws = numpy_stream(seed, "discrete", split)
        state = draws.integers(len(states), size=size)
        posterior = states[state] / states[state].sum(1, keepdims=True)
        inputs = np.eye(len(states), dtype=np.float32)[state]
        splits[split] = Examples(inputs, draw_labels(posterior, draws), numbered_ids(split, size), posterior)
    names = tuple(f"class {k}" for k in range(states.shape[1]))
    return _independent_draws("discrete", names, splits, {"seed": seed})


def load_gaussian_mixture(
    *,
    classes: int = 5,
    dimensions: int = 10,
    separation: float = 1.5,
    imbalance: float = 1.0,
    sizes: tuple[int, int, int] = (10_000, 2_000, 10_000),
    seed: int = 0,
) -> DataSet:
    """Fresh draws for every split. Priors fall geometrically; class 0 is `imbalance` times as frequent as the last."""
    if classes < 2 or dimensions < 1 or not separation > 0 or not imbalance >= 1:
        raise ValueError(
            "a mixture needs classes >= 2, dimensions >= 1, separation > 0 and imbalance >= 1, "
            f"got {classes}, {dimensions}, {separation!r}, {imbalance!r}"
        )
    means = gaussian_means(classes, dimensions, separation, seed)
    priors = float(imbalance) ** (-np.arange(classes) / (classes - 1))
    priors /= priors.sum()
    splits = {}
    for split, size in zip(SPLITS, sizes, strict=True):
        draws = numpy_stream(seed, "gaussian_mixture", split)  # of its own: its size leaves the other splits alone
        labels = draws.choice(classes, size=size, p=priors)
        features = (means[labels] + draws.standard_normal((size, dimensions))).astype(np.float32)
        posterior = gaussian_posterior(features, means, priors)
        splits[split] = Examples(features, labels.astype(np.int64), numbered_ids(split, size), posterior)
    options: dict[str, Any] = {"classes": classes, "dimensions": dimensions, "separation": float(separation)}
    options |= {"imbalance": float(imbalance), "seed": seed}
    return _independent_draws("gaussian_mixture", tuple(f"component {k}" for k in range(classes)), splits, options)


def gaussian_means(classes: int, dimensions: int, separation: float, seed: int) -> NDArray[np.float64]:
    """(classes, dimensions): the classes' means."""
    directions = numpy_stream(seed, "gaussian_mixture", "means").standard_normal((classes, dimensions))
    return np.asarray(separation * directions / np.linalg.norm(directions, axis=1, keepdims=True))


def gaussian_posterior(
    features: NDArray[Any], means: NDArray[np.float64], priors: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(N, K): the class probabilities given the features."""
    # |x|^2 is the same for every class and leaves the expression, with most of its rounding.
    logs = features.astype(np.float64) @ means.T - (means**2).sum(1) / 2 + np.log(priors)
    odds = np.exp(logs - logs.max(1, keepdims=True))
    return np.asarray(odds / odds.sum(1, keepdims=True))


def load_teacher(*, temperature: float = 2.0, seed: int = 0, test_draws: int = 1) -> DataSet:
    """The digits, relabelled; use `relabelled` for any other data set of images or features.

    With `test_draws` each test image occurs so often, each time with a label of its own draw: 360 labels say little.
    """
    whole_number("test_draws", test_draws, least=1, remedy="it is how often each test image is labelled")
    digits = load_digits()
    if test_draws > 1:
        order = np.tile(np.arange(len(digits.test)), test_draws)
        once = digits.test
        test = Examples(once.inputs[order], once.labels[order], numbered_ids("digit-test", len(order)))
        split = f"{digits.provenance['split']}; every test image {test_draws} times"
        digits = replace(digits, test=test, provenance={**digits.provenance, "split": split})
    return replace(relabelled(digits, temperature=temperature, seed=seed), name="teacher")


def relabelled(data: DataSet, *, temperature: float = 2.0, seed: int = 0) -> DataSet:
    """The same inputs and splits, with labels drawn from a known posterior: that of a multinomial regression on the
    labels.

    Args:
        data: of one label per example.
        temperature: the regression's logits are divided by it: more makes labels noisier.
        seed: of the draws.

    Returns:
        The data set; `posterior` of its splits is what the labels were drawn from.

    >>> from focalcal.lab.data import load_data
    >>> relabelled(load_data("digits")).test.posterior.shape
    (360, 10)
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    if not 0 < temperature < float("inf"):
        raise ValueError(f"temperature must be > 0 and finite, got {temperature!r}")
    if data.train.labels.ndim != 1 or data.vocabulary is not None:
        raise ValueError(f"a teacher needs images or features with one label each, got {data!r}")
    rows = data.train.take(np.arange(min(_TEACHER_ROWS, len(data.train))))
    if len(np.unique(rows.labels)) != len(data.classes):
        raise ValueError(f"every class must occur in the training rows the teacher sees, got {data!r}")
    # One thread: sums then have one order, so the labels do not depend on how many processors a machine has.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # where it stops is the teacher
        teacher = LogisticRegression(max_iter=_TEACHER_STEPS).fit(_features(rows.inputs), rows.labels)
        splits: dict[str, Any] = {
            split: _relabel(examples, teacher, temperature, numpy_stream(seed, "teacher", split))
            for split, examples in data.splits.items()
        }
    options = {"temperature": float(temperature), "seed": seed, "teacher_rows": len(rows)}
    provenance = {**data.provenance, "relabelled_from": data.name, "options": options}
    return DataSet(f"teacher_{data.name}", data.classes, **splits, provenance=provenance)


def draw_labels(posterior: NDArray[np.float64], draws: np.random.Generator) -> NDArray[np.int64]:
    """(N,): one label per row, class k with probability posterior[:, k]; inverts the cumulative distribution."""
    cumulative = posterior.cumsum(1)
    threshold = draws.random((len(posterior), 1)) * cumulative[:, -1:]  # below the sum, whatever it was rounded to
    return np.asarray((cumulative <= threshold).sum(1), np.int64)


def _independent_draws(name: str, classes: tuple[str, ...], splits: dict[str, Any], options: dict[str, Any]) -> DataSet:
    provenance = {"files": [], "split": "independent draws", "partial": False, "options": options}
    return DataSet(name, classes, **splits, provenance=provenance)


def _relabel(examples: Examples, teacher: Any, temperature: float, draws: np.random.Generator) -> Examples:
    posterior = np.empty((len(examples), len(teacher.classes_)))
    for start in range(0, len(examples), _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        logits = _features(examples.inputs[rows]) @ _rows(teacher.coef_).T + _rows(teacher.intercept_[:, None]).T
        odds = np.exp((logits - logits.max(1, keepdims=True)) / temperature)
        posterior[rows] = odds / odds.sum(1, keepdims=True)
    return replace(examples, labels=draw_labels(posterior, draws), posterior=posterior)


def _rows(weights: NDArray[Any]) -> NDArray[Any]:
    """One row per class: for two classes scikit-learn keeps the second's row, as the log odds, only."""
    return np.concatenate([np.zeros_like(weights), weights]) if len(weights) == 1 else weights


def _features(inputs: NDArray[Any]) -> NDArray[np.float64]:
    """Flat rows; images from 0 to 1."""
    flat = inputs.reshape(len(inputs), -1).astype(np.float64)
    return flat / 255 if inputs.dtype == np.uint8 else flat
