"""Specs and runs, for the tests of the store."""

import json
import os
from pathlib import Path

from focalcal.lab.store import Evaluation, Run, Spec, Store
from support.prediction_samples import sample

TRAINING = {"epochs": 2, "batch_size": 64, "optimizer": {"kind": "sgd", "lr": 0.1}, "mean": [0.5, 0.25]}


def spec(seed=0, objective="fcl", *, data_set="digits", model="small_cnn", training=TRAINING, **options) -> Spec:
    options = options or ({"gamma": 3.0, "lam": 1.0} if objective == "fcl" else {})
    return Spec(
        data_set=data_set, model=model, objective=objective, objective_options=options, seed=seed, training=training
    )


def record(**metrics) -> dict:
    """Of two epochs; the metrics are those of the test split."""
    test = {"error": 0.25, "nll": 0.5, "ece": 0.125, "brier": 0.375} | metrics
    return {
        "metrics": {"val": {"nll": 0.75}, "test": test},
        "provenance": {"focalcal": "0.1.0", "threads": 1},
        "seconds": 1.5,
        "epochs": 2,
    }


def epochs_file(folder: Path) -> Path:
    path = folder / "epochs-to-store.jsonl"
    lines = [
        {"epoch": at, "lr": 0.1, "train": {"loss": 1.0 / at}, "test": {"nll": 2.0 / at}, "gammas": [1.0, float(at)]}
        for at in (1, 2)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def stored(store: Store, one: Spec, *, epochs: Path | None = None, splits=("val", "test"), **metrics) -> Run:
    predictions = [sample(6, 3, split=split, seed=one.seed) for split in splits]
    return store.add(one, record=record(**metrics), epochs=epochs, predictions=predictions)


def flip_a_bit(path: Path, at: int, bit: int = 0) -> None:
    """As a failing disk does: neither the size nor the time of the file says so."""
    stat, content = path.stat(), bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def evaluation(name="svhn", *, split=None, files=(), **metrics) -> Evaluation:
    split = split or name
    told = {"metrics": {split: {"auroc": 0.75} | metrics}, "provenance": {"weights": "abc"}, "seconds": 0.5}
    return Evaluation(name, told, [sample(5, 3, split=split, seed=7)], dict(files))


def contents(folder: Path) -> dict:
    """What every file holds, and when it was written."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }
