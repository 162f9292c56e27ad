"""How long does an operating point take, how good are its shortcuts, and does overfitting act like a temperature?

    FOCALCAL_DATA=... python benchmarks/operating_point.py [--json FILE]

Nine real networks (CIFAR-10 and CIFAR-100, from the folder `logits` of the data) and three that are trained here on
digits whose labels are drawn from a known posterior. Printed are, in this order:

cost         CPU seconds of `operating_point` on 10,000 rows, after cross-entropy and after FCL(1, 1)
sample       T_pop(3, 1) over the sampled posteriors minus that over all rows, beside the standard error of log T
closed form  T_pop at gamma = 3, exactly and by its closed form, over the networks' posteriors
thirds       T fitted apart to the third of the rows with the least, middle and most confidence
held out     NLL of the second half of the rows: as it is, and with T, vector and matrix scaling fitted on the first
posterior    mean KL from the known posterior: of the network, with the T of its labels, with the best T; and the slope
             and correlation of the network's centred logits with those of the posterior
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from torch import Tensor

from focalcal.lab.data import load_data
from focalcal.lab.training import Optimizer, fit, predict, recipe
from focalcal.losses import CrossEntropyLoss
from focalcal.metrics import nll
from focalcal.posthoc import MatrixScaling, TemperatureScaling, VectorScaling, operating_point, split_half
from focalcal.posthoc.operating_point import HeldOut
from focalcal.theory import effective_temperature, small_distortion_temperature

Row = dict[str, Any]
RATES = (0.02, 0.05, 0.1)


def networks(folder: Path) -> Iterator[tuple[str, Tensor, Tensor]]:
    with np.load(folder / "cifar10_test_logits_akamaster_resnets.npz") as stored:
        for name in stored.files:
            if name != "labels":
                yield f"cifar10_{name}", torch.from_numpy(stored[name]), torch.from_numpy(stored["labels"]).long()
    with np.load(folder / "cifar_probs_netcal.npz") as stored:
        for name in (key.removesuffix("_probs") for key in stored.files if key.endswith("_probs")):
            probs, labels = (torch.from_numpy(stored[f"{name}_{part}"]) for part in ("probs", "labels"))
            yield name, probs.double().clamp(min=1e-45).log(), labels.long()


def cost(logits: Tensor, labels: Tensor) -> Row:
    row: Row = {}
    for name, trained_with in (("after cross-entropy", (0.0, 0.0)), ("after FCL(1, 1)", (1.0, 1.0))):
        start = time.process_time()
        operating_point(logits, labels, trained_with=trained_with)
        row[name] = time.process_time() - start
    return row


def sample(logits: Tensor, labels: Tensor) -> Row:
    held_out = HeldOut(logits.numpy(), labels.numpy(), (0.0, 0.0))
    temperature = held_out.overfitting()
    sampled = held_out.posteriors(temperature)
    everything = (logits.double() / temperature).softmax(1).numpy()
    exact, found = (float(effective_temperature(eta, gamma=3.0, lam=1.0)) for eta in (everything, sampled))
    low, high = np.log(held_out.interval(temperature, level=0.95, resamples=500, seed=0))
    return {"rows": len(sampled), "T_pop": exact, "error": found - exact, "error of log T": (high - low) / 3.92}


def closed_form(logits: Tensor, labels: Tensor) -> Row:
    held_out = HeldOut(logits.numpy(), labels.numpy(), (0.0, 0.0))
    eta = held_out.posteriors(held_out.overfitting())
    row: Row = {}
    for lam in (1.0, 10.0, 100.0):
        row[f"T_pop at lam = {lam:g}"] = float(effective_temperature(eta, gamma=3.0, lam=lam))
        row[f"closed form at {lam:g}"] = small_distortion_temperature(eta, gamma=3.0, lam=lam)
    return row


def thirds(logits: Tensor, labels: Tensor) -> Row:
    order = logits.double().softmax(1).amax(1).argsort()
    row: Row = {"all": TemperatureScaling().fit(logits, labels).temperature_}
    for name, part in zip(("least", "middle", "most"), order.tensor_split(3), strict=True):
        row[name] = TemperatureScaling().fit(logits[part], labels[part]).temperature_
    return row


def held_out(logits: Tensor, labels: Tensor) -> Row:
    row: Row = {}
    for calibrator in (TemperatureScaling(), VectorScaling(), MatrixScaling()):
        outcome = split_half(logits.double(), labels, calibrator, metrics={"nll": nll})
        row["as it is"] = outcome.before["nll"]
        row[type(calibrator).__name__] = outcome.after["nll"]
    return row


def posterior(rate: float) -> Row:
    base = recipe("teacher_mlp_lite")
    data = load_data("teacher", None, **dict(base.data_options))
    sgd = Optimizer(name="sgd", lr=rate, momentum=0.9, nesterov=True, weight_decay=0.0)
    fast = replace(base, optimizer=sgd)
    predictions = predict(fit(fast, data, CrossEntropyLoss(), seed=0).model, data.test, fast, split="test")
    logits, eta = predictions.logits.astype(float), predictions.posterior.astype(float)
    temperature = TemperatureScaling().fit(logits, predictions.labels).temperature_

    def divergence(t: float) -> float:
        return float((eta * (np.log(eta.clip(1e-300)) - log_softmax(logits / t, axis=1))).sum(1).mean())

    best = minimize_scalar(divergence, bounds=(0.2, 20.0), method="bounded").x
    truth = np.log(eta.clip(1e-300))
    truth, network = truth - truth.mean(1, keepdims=True), logits - logits.mean(1, keepdims=True)
    correlation = float(np.corrcoef(truth.ravel(), network.ravel())[0, 1])
    return {
        "lr": rate,
        "T of labels": temperature,
        "T of posterior": best,
        "KL": divergence(1.0),
        "KL with T of labels": divergence(temperature),
        "KL with best T": divergence(best),
        "slope": float((truth * network).sum() / (truth * truth).sum()),
        "correlation": correlation,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    folder = Path(os.environ["FOCALCAL_DATA"]) / "logits"
    real = list(networks(folder))
    results: dict[str, list[Row]] = {}
    for question in (cost, sample, closed_form, thirds, held_out):
        results[question.__name__] = [{"network": name, **question(logits, labels)} for name, logits, labels in real]
        show(question.__name__, results[question.__name__])
    results["posterior"] = [posterior(rate) for rate in RATES]
    show("posterior", results["posterior"])
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2))


def show(title: str, rows: list[Row]) -> None:
    print(f"\n{title.replace('_', ' ')}\n| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0]))
    for row in rows:
        cells = (f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values())
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
