"""What classifiers of scikit-learn and trainers of Hugging Face give, as the arguments of `Predictions`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.core.arrays import Array, as_array
from focalcal.predictions.class_labels import label_values

NOT_A_LABEL = -100  # of a Trainer: padding, and tokens that do not count
_PER_EXAMPLE = ("ids", "groups", "clusters", "weights", "times")


def of_sklearn(
    model: Any, X: Any, y: Any, *, multilabel: bool = False, **about: Any
) -> tuple[dict[str, Any], Sequence[Any] | None]:
    """The fields of a fitted classifier's predictions, and the names of its classes; labels by `model.classes_`."""
    _check_about(about)
    name = type(model).__name__
    if not hasattr(model, "predict_proba"):
        if hasattr(model, "decision_function"):
            raise TypeError(
                f"model must have predict_proba, got {name}, whose decision_function gives scores that are neither "
                "probabilities nor logits; fit sklearn.calibration.CalibratedClassifierCV(model) and give that"
            )
        raise TypeError(f"model must be a classifier with predict_proba, got {name}; give a fitted classifier")
    probs = model.predict_proba(X)
    if isinstance(probs, list):
        raise TypeError(
            f"model must have one output, got {name} with {len(probs)}; give each by itself: "
            "Predictions(probs=model.predict_proba(X)[0], labels=y[:, 0], ...)"
        )
    about = {"provenance": {"model": name}} | about | {"probs": probs, "multilabel": multilabel}
    if multilabel:
        return about | {"labels": y}, None
    if not hasattr(model, "classes_"):
        raise TypeError(
            f"model must say in classes_ which column is whose, got {name} without; use "
            "Predictions(probs=model.predict_proba(X), labels=y, classes=[...], ...)"
        )
    classes = np.asarray(model.classes_).tolist()
    values, _ = label_values(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"y must be (N,), one class per row, got {values.shape}; for several labels say multilabel=True"
        )
    place = {each: at for at, each in enumerate(classes)}
    labels = [place.get(each, -1) for each in values.tolist()]
    if -1 in labels:
        at = labels.index(-1)
        raise ValueError(
            f"y must hold classes of the model, {str(classes)[:200]}, got {values.tolist()[at]!r} in row {at}; leave "
            "out rows of other classes, or give the labels that the model was fitted with"
        )
    return about | {"labels": np.array(labels, np.int64)}, [_name(each) for each in classes]


def _name(each: Any) -> Any:
    """Of a class, a whole number or text, which a file can hold."""
    if isinstance(each, float) and each.is_integer():
        return int(each)
    return each if isinstance(each, int | str) and not isinstance(each, bool) else str(each)


def of_hugging_face(
    output: Any,
    *,
    classes: Sequence[Any] | Mapping[int, Any] | None = None,
    multilabel: bool = False,
    shift_labels: bool | None = None,
    **about: Any,
) -> tuple[dict[str, Any], Sequence[Any] | None]:
    """The fields of what `Trainer.predict` gives, without labels of -100, and the names of the classes."""
    _check_about(about)
    logits, labels = _arrays(output)
    examples = len(logits)
    if multilabel:
        rows = np.arange(examples)
    elif labels.shape == logits.shape:
        raise ValueError(
            f"label_ids of the shape of predictions, {labels.shape}, are several labels per row; say multilabel=True"
        )
    else:
        logits, labels, rows = _rows_with_labels(logits, labels, shift_labels)
    if logits.ndim != 2 or logits.shape[1] < 2 - multilabel:
        raise ValueError(
            f"predictions must be logits (N, K) of a classifier, got {logits.shape}; a regression (num_labels=1) has "
            "none"
        )
    fields: dict[str, Any] = {"logits": logits, "labels": labels, "multilabel": multilabel}
    every = as_array("label_ids", output.label_ids)
    if every.ndim == 2 and not multilabel:
        fields["clusters"] = rows  # the tokens of one text depend on each other
    fields |= {
        name: _taken(name, values, rows, examples) if name in _PER_EXAMPLE else values
        for name, values in about.items()
        if values is not None
    }
    if left_out := (every[:, 1:] if shift_labels else every).size - labels.size:
        fields["provenance"] = {"labels_of_-100_left_out": left_out} | dict(about.get("provenance") or {})
    if isinstance(classes, Mapping):  # id2label of a configuration
        named = {int(k): name for k, name in classes.items()}
        classes = [named.get(k) for k in range(logits.shape[1])]
    return fields, classes


def _check_about(about: Mapping[str, Any]) -> None:
    if unknown := sorted(about.keys() - {*_PER_EXAMPLE, "posterior", "provenance"}):
        raise TypeError(
            f"what is known besides must be one of {', '.join(_PER_EXAMPLE)}, posterior and provenance, got "
            f"{unknown[0]}; leave it out"
        )


def _arrays(output: Any) -> tuple[Array, Array]:
    """The logits, the first of several predictions, and the labels."""
    predictions, labels = getattr(output, "predictions", None), getattr(output, "label_ids", None)
    if predictions is None or labels is None:
        raise TypeError(
            f"output must have predictions and label_ids, got {type(output).__name__} without "
            f"{'predictions' if predictions is None else 'label_ids'}; give Trainer.predict(dataset) of a dataset that "
            "has labels"
        )
    if isinstance(labels, tuple | list):
        raise TypeError(
            f"label_ids must be one array, got {len(labels)}; give each pair by itself: "
            "Predictions(logits=..., labels=...)"
        )
    if isinstance(predictions, tuple | list):
        if not predictions:
            raise ValueError(
                "predictions must begin with the logits, got an empty tuple; predict with a model that has them"
            )
        predictions = predictions[0]  # hidden states, attentions and the like follow the logits
    logits = as_array("predictions", predictions)
    if logits.dtype.kind != "f":
        raise TypeError(
            f"predictions must be logits, got {logits.dtype}, as of generated tokens or an argmax; predict without "
            "predict_with_generate and preprocess_logits_for_metrics"
        )
    return logits, as_array("label_ids", labels)


def _rows_with_labels(
    logits: Array, labels: Array, shift_labels: bool | None
) -> tuple[Array, Array, NDArray[np.int64]]:
    """Logits (n, K), labels (n,) and the example of each."""
    if labels.shape != logits.shape[:-1]:
        raise ValueError(
            f"label_ids must have one label per row of predictions, got {labels.shape} for {logits.shape}; of a model "
            "with several outputs, give those of the labels: Predictions(logits=..., labels=...)"
        )
    if labels.ndim == 2:
        if shift_labels is None:
            raise ValueError(
                f"predictions of tokens, {logits.shape}, need shift_labels; say True of a causal language model, whose "
                "label at t + 1 belongs to the logits at t, and False of token classification"
            )
        if shift_labels:
            logits, labels = logits[:, :-1], labels[:, 1:]
    elif shift_labels:
        raise ValueError(
            f"shift_labels is for tokens, (N, T, K), got predictions of shape {logits.shape}; leave it out"
        )
    kept = labels != NOT_A_LABEL
    if not kept.any():
        raise ValueError("label_ids must hold a label, got -100 alone; give a dataset that has labels")
    if labels.ndim == 1 and kept.all():
        return logits, labels, np.arange(len(labels))
    return logits[kept], labels[kept], np.nonzero(kept)[0]


def _taken(name: str, values: Any, rows: Any, examples: int) -> Any:
    """One value per example as one per row."""
    if hasattr(values, "columns"):
        values = {each: values[each] for each in values.columns}
    if isinstance(values, Mapping):
        return {each: _taken(f"{name}[{each!r}]", own, rows, examples) for each, own in values.items()}
    array = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    if len(array) != examples:
        raise ValueError(f"{name} must have one value per example, {examples}, got {len(array)}")
    return array[rows]
