"""Is structured scaling the best affine map of stored networks? Mean test NLL in nats, and CPU seconds of a fit.

    python benchmarks/structured.py FOLDER [--splits N] [--rows N]

FOLDER holds logits/cifar10_test_logits_akamaster_resnets.npz and logits/cifar_probs_netcal.npz. Every calibrator is
fitted on --rows of the rows and measured on the others, for each split (set OMP_NUM_THREADS=1). SVS and SMS are of
`probmetrics`, where it is installed. The NLL is that of probabilities clipped at 1e-12.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from focalcal.core.numerics import softmax
from focalcal.posthoc import (
    DirichletCalibration,
    EnsembleTemperatureScaling,
    MatrixScaling,
    SplineCalibration,
    StructuredScaling,
    TemperatureScaling,
    VectorScaling,
    WithUniform,
)

Array = np.ndarray[Any, Any]
OURS = {
    "temperature": TemperatureScaling(),
    "vector": VectorScaling(),
    "matrix": MatrixScaling(),
    "dirichlet": DirichletCalibration(),
    "ensemble": EnsembleTemperatureScaling(),
    "spline, uniform part": WithUniform(SplineCalibration()),
    "structured, mix=False": StructuredScaling(mix=False),
    "structured": StructuredScaling(),
}


def networks(folder: Path) -> Iterator[tuple[str, Array, Array]]:
    resnets = np.load(folder / "logits" / "cifar10_test_logits_akamaster_resnets.npz")
    for name in ("resnet20", "resnet32", "resnet44", "resnet56"):
        yield name, resnets[name].astype(np.float64), resnets["labels"].astype(np.int64)
    stored = np.load(folder / "logits" / "cifar_probs_netcal.npz")
    for key in stored:
        if key.endswith("_probs"):
            probs = np.maximum(stored[key].astype(np.float64), 1e-38)
            name = key.removesuffix("_probs")
            yield name, np.log(probs), stored[f"{name}_labels"].astype(np.int64)


def peers() -> dict[str, Any]:
    try:
        from probmetrics.calibrators import SMSCalibrator, SVSCalibrator
    except ImportError:
        return {}
    return {"SVS": SVSCalibrator, "SMS": SMSCalibrator}


def fitted(name: str, logits: Array, labels: Array) -> Callable[[Array], Array]:
    """The map of a calibrator fitted on these rows."""
    if name in OURS:
        return OURS[name].fit(logits, labels).predict_proba
    peer = peers()[name](print_init_info=False) if name == "SMS" else peers()[name]()
    peer.fit(softmax(logits), labels)
    return lambda rows: np.asarray(peer.predict_proba(softmax(rows)))


def nll(probs: Array, labels: Array) -> float:
    return float(-np.log(np.maximum(probs[np.arange(len(labels)), labels], 1e-12)).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--rows", type=int, default=5000)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    names = [*OURS, *peers()]
    print("| network | " + " | ".join(names) + " |\n|---|" + "---|" * len(names), flush=True)
    for network, logits, labels in networks(arguments.folder):
        losses, seconds = {name: [] for name in names}, dict.fromkeys(names, 0.0)
        for seed in range(arguments.splits):
            order = np.random.default_rng(seed).permutation(len(labels))
            rows, held = np.split(order, [arguments.rows])
            for name in names:
                started = time.process_time()
                calibrated = fitted(name, logits[rows], labels[rows])
                seconds[name] += (time.process_time() - started) / arguments.splits
                losses[name].append(nll(calibrated(logits[held]), labels[held]))
        cells = [f"{np.mean(losses[name]):.4f} ({seconds[name]:.2f} s)" for name in names]
        print(f"| {network} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
