"""A store of runs that look trained, in milliseconds: logits drawn around the labels, measured as a run's are."""

import json
from pathlib import Path

import numpy as np
from scipy.special import softmax

from focalcal.lab.evidence.evidence import gather, reading_order
from focalcal.lab.store import Evaluation, Spec, Store
from focalcal.lab.store.split_metrics import shift_metrics, split_metrics
from focalcal.predictions import Predictions

SHARPNESS = {"ce": 2.0, "focal": 0.6, "fcl": 1.1}  # what the logits are multiplied with: 1 is calibrated
TRAINING = {"recipe": "synthetic", "epochs": 2, "optimizer": {"name": "sgd", "lr": 0.1}}


def spec(objective="fcl", seed=0, *, data_set="digits", model="small_cnn", training=TRAINING, **options):
    options = options or ({"gamma": 3.0, "lam": 1.0} if objective == "fcl" else {})
    return Spec(
        data_set=data_set,
        model=model,
        objective=objective,
        objective_options=options,
        seed=seed,
        training=training,
    )


def logits_and_labels(rows, classes, *, seed, sharpness=1.0, signal=2.0):
    """Labels drawn from softmax(logits / sharpness): T = sharpness calibrates them."""
    generator = np.random.default_rng(seed)
    logits = generator.normal(size=(rows, classes)) * signal
    probs = np.exp(logits - logits.max(1, keepdims=True))
    probs /= probs.sum(1, keepdims=True)
    labels = (probs.cumsum(1) < generator.random((rows, 1))).sum(1).clip(0, classes - 1)
    return (logits * sharpness).astype(np.float32), labels


def add(
    store: Store, one: Spec, *, sharpness=None, rows=400, classes=4, signal=2.0, changed=None, shifts=(), known=False
):
    """Store a run of `one`; `changed` metrics of the test split replace those that were measured.

    With `known` what the labels were drawn from is stored, too.
    """
    factor = sharpness if sharpness is not None else SHARPNESS.get(one.objective, 1.3)
    parts = [
        Predictions(logits=logits, labels=labels, split=split, posterior=softmax(logits / factor, 1) if known else None)
        for at, split in enumerate(("val", "test"))
        for logits, labels in (
            logits_and_labels(rows, classes, seed=1000 * at + one.seed, sharpness=factor, signal=signal),
        )
    ]
    names = [str(k) for k in range(classes)]
    metrics = {part.split: split_metrics(part, names) for part in parts}
    evaluations = []
    for shift in shifts:
        logits, labels = logits_and_labels(rows, classes, seed=7, sharpness=factor, signal=1.0)
        made = Predictions(logits=logits, labels=labels, split=shift)
        told = {"metrics": {shift: shift_metrics(made, parts[1])}, "provenance": {}, "seconds": 0.5}
        evaluations.append(Evaluation(shift, told, [made]))
    metrics["test"] |= changed or {}
    record = {"metrics": metrics, "provenance": {"focalcal": "0"}, "seconds": 1.5, "epochs": 2}
    return store.add(one, record=record, epochs=_epochs(store.path), predictions=parts, evaluations=evaluations)


def add_multilabel(store: Store, one: Spec, names, *, rows=300):
    generator = np.random.default_rng(one.seed)
    logits = generator.normal(size=(rows, len(names))) * 1.5
    labels = generator.random(logits.shape) < 1 / (1 + np.exp(-logits))
    part = Predictions(
        logits=(logits * SHARPNESS.get(one.objective, 1.3)).astype(np.float32),
        labels=labels,
        split="test",
        multilabel=True,
    )
    record = {
        "metrics": {"test": split_metrics(part, names)},
        "provenance": {"focalcal": "0"},
        "seconds": 1.0,
        "epochs": 2,
    }
    return store.add(one, record=record, epochs=None, predictions=[part])


def study_store(folder: Path, *, objectives=("ce", "focal", "fcl"), seeds=(0, 1, 2), shifts=(), **cell) -> Store:
    store = Store(folder)
    for objective in objectives:
        for seed in seeds:
            add(store, spec(objective, seed, **cell), shifts=shifts)
    return store


def evidence_of(store: Store, *, title="A study", **options):
    return gather(reading_order(store.runs()), title=title, **options)


def damage_predictions(run):
    """Change a byte of the test predictions, not their size."""
    file = run.path / "predictions" / "test.npz"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def _epochs(folder: Path) -> Path:
    path = folder / "epochs-to-store.jsonl"
    lines = [{"epoch": at, "lr": 0.1, "train": {"loss": 1.0 / at}, "test": {"nll": 2.0 / at}} for at in (1, 2)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
