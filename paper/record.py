"""Write what a store knows of a study's runs into paper/records: one JSON line per run, without logits.

    python -m paper.record STUDY [--seeds N] [--store FOLDER] [--name NAME] [--bins]

STUDY is a shipped study or a .toml file, as for `focalcal study`. Lines of its runs that are in the file and not in the
store stay. A line holds what was run (its spec), by which software, on what and for how long, the temperature that
validation rows need (None where none is finite, or rows have several labels), the metrics of validation, test and
shifted rows (AUROC: how well the confidence tells them from test rows; of corrupted images the mean over the
corruptions), and what needs the predictions, all on test rows:

test_by_epoch
           error, ECE and NLL, where the study evaluates between the epochs
scaled     with the temperature of the validation rows
recovered  of data with a known posterior: with the distortion of focal loss or FCL undone, before and after that
           temperature (`recovered`, `recovered_scaled`)
q_distance mean total variation from the loss's own population minimiser q*, where the theory has one
operating_point
           of cross-entropy: its overfitting, and by gamma the lam that its validation rows predict; none where there is
           nothing to cancel, 0 where no lam distorts enough
bins       with --bins: counts, sums of confidence and of correct predictions in fifteen bins, before and after scaling
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from focalcal.core.arrays import Array
from focalcal.core.atomic import write_atomically
from focalcal.core.numerics import softmax
from focalcal.lab.evidence.evidence import collected
from focalcal.lab.store import Run, Store
from focalcal.lab.store.layout import store_folder
from focalcal.lab.studies import load_study
from focalcal.lab.studies.provenance import machine, software
from focalcal.losses import LOSSES
from focalcal.metrics.reliability import reliability
from focalcal.pages.tables import Table
from focalcal.posthoc import operating_point
from focalcal.posthoc.split_half import REPORTED
from focalcal.predictions import Predictions
from focalcal.theory import minimise, recover
from paper.operating_point.trial import label_temperature

RECORDS = Path(__file__).parent / "records"
POSTERIOR = ("posterior_distance", "confidence_distance", "posterior_ece")
GAMMAS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)  # of the predicted lam
_DIGITS = 7  # significant, of every stored number


def record(run: Run, *, with_bins: bool) -> dict[str, Any]:
    """What is published of a run."""
    spec, stored = run.settings, run.record
    line: dict[str, Any] = {
        "key": run.key,
        "spec": dict(spec),
        "epochs": stored["epochs"],
        "seconds": stored["seconds"],
        "software": stored["provenance"]["software"],
        "machine": stored["provenance"]["machine"],
        "metrics": by_split(stored["metrics"]),
        "temperature": validation_temperature(run),
    }
    if spec["protocol"]["evaluate_every"] < stored["epochs"]:
        line["test_by_epoch"] = {
            str(epoch["epoch"]): {name: epoch["test"][name] for name in ("error", "ece", "nll")}
            for epoch in run.epochs()
            if "test" in epoch
        }
    test = run.predictions("test")
    if test.multilabel:
        return line
    if with_bins:
        line["bins"] = _bins(test.probs, test.labels)
    if "val" in run.splits and test.kind == "logits":
        if (temperature := line["temperature"]) is not None:
            line["scaled"] = published_metrics(softmax(test.logits.astype(np.float64) / temperature), test)
        if "scaled" in line and with_bins:
            line["scaled_bins"] = _bins(softmax(test.logits.astype(np.float64) / line["temperature"]), test.labels)
        if "scaled" in line and _is_cross_entropy(run):
            line |= _operating_point(run.predictions("val"))
    if test.posterior is not None:
        line |= _against_theory(run, test)
    return line


def origin(run: Run) -> dict[str, str]:
    """Where a run's numbers come from; another instruction set rounds differently, and a network trains apart."""
    provenance = run.record["provenance"]
    return _origin(provenance["software"], provenance["machine"])


def here() -> dict[str, str]:
    """The same of numbers that this process computes."""
    return _origin(software(), machine("cpu", 1))


def _origin(software: Mapping[str, Any], machine: Mapping[str, Any]) -> dict[str, str]:
    commit = software.get("commit") or {"id": "unknown", "dirty": False}
    return {
        "instructions": machine["instructions"],
        "torch": software["torch"],
        "focalcal": software["focalcal"],
        "commit": commit["id"][:12] + "+" * commit["dirty"],
    }


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """A .csv of rows with every column that one of them has: older ones may have fewer."""
    names = dict.fromkeys(name for row in rows for name in row)
    write_atomically(path, Table({name: [row.get(name) for row in rows] for name in names}).csv().encode())


def _is_cross_entropy(run: Run) -> bool:
    options = run.settings["objective_options"]
    return bool(run.settings["objective"] == "ce" or options.get("gamma") == options.get("lam") == 0)


def _operating_point(held_out: Predictions) -> dict[str, Any]:
    try:
        point = operating_point(held_out, gamma=3.0, gammas=GAMMAS)
    except ValueError:  # too few rows to tell
        return {}
    lams = {f"{match.gamma:g}": match.lam for match in point.matches}
    return {"operating_point": {"helps": point.helps, "overfitting": point.overfitting, "lams": lams}}


def by_split(metrics: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Those of validation, test and shifted rows; of corrupted images the means over the corruptions."""
    kept = {split: _kept(values) for split, values in metrics.items() if split != "train"}
    corrupted = [kept.pop(split) for split in list(kept) if split.startswith("cifar10c/")]
    if corrupted:
        kept["cifar10c"] = {name: float(np.mean([each[name] for each in corrupted])) for name in corrupted[0]}
    return kept


def _kept(values: dict[str, float]) -> dict[str, float]:
    wanted = ("rows", "confidence_gap", "auroc", *REPORTED, *POSTERIOR)
    return {name: values[name] for name in wanted if name in values}


def _bins(probs: Array, labels: Array) -> dict[str, list[float]]:
    diagram = reliability(probs, labels)
    counts = np.asarray(diagram.count, dtype=float)
    return {
        "count": counts.tolist(),
        "confidence": (counts * np.nan_to_num(diagram.confidence)).tolist(),
        "accuracy": (counts * np.nan_to_num(diagram.accuracy)).tolist(),
    }


def validation_temperature(run: Run) -> float | None:
    """The best one for the validation rows; None where no finite one is, as when every label is predicted."""
    if "val" not in run.splits or (held_out := run.predictions("val")).multilabel:
        return None
    temperature = label_temperature(held_out)
    return temperature if math.isfinite(temperature) else None


def published_metrics(probs: Array, test: Predictions) -> dict[str, float]:
    """What is published of probabilities (N, K) for test rows."""
    values = {name: float(metric(probs, test.labels)) for name, metric in REPORTED.items()}
    if test.posterior is not None:
        values["posterior_distance"] = _distance(probs, test.posterior)
    return values


def _distance(probs: Array, other: Array) -> float:
    return float(np.abs(probs.astype(np.float64) - other).sum(1).mean() / 2)


def _against_theory(run: Run, test: Predictions) -> dict[str, Any]:
    """How far the network is from its loss's own q*, and what undoing the distortion gives."""
    assert test.posterior is not None
    eta, name = test.posterior.astype(np.float64), run.settings["objective"]
    if name in ("ce", "brier"):
        return {"q_distance": _distance(test.probs, eta)}
    loss: Any = LOSSES[name](**run.settings["objective_options"])
    if name == "ls":
        smoothed = (1 - loss.epsilon) * eta + loss.epsilon / eta.shape[1]
        return {"q_distance": _distance(test.probs, smoothed)}
    if name not in ("focal", "fcl"):
        return {}
    gamma, lam = float(loss.gamma), float(getattr(loss, "lam", 0.0))
    optimum = minimise(eta, gamma=gamma, lam=lam).q
    found: dict[str, Any] = {"q_distance": _distance(test.probs, optimum), "q_from_eta": _distance(optimum, eta)}
    undone = _undone(test, gamma, lam)
    found["recovered"] = published_metrics(undone, test)
    held_out = run.predictions("val")
    log_undone = np.log(_undone(held_out, gamma, lam).clip(min=1e-30))
    temperature = label_temperature(Predictions(logits=log_undone, labels=held_out.labels, split="val"))
    if math.isfinite(temperature):
        probs = softmax(np.log(undone.clip(min=1e-30)) / temperature)
        found["recovered_scaled"] = published_metrics(probs, test)
    return found


def _undone(predictions: Predictions, gamma: float, lam: float) -> Array:
    return np.asarray(recover(softmax(predictions.logits.astype(np.float64)), gamma=gamma, lam=lam))


def with_few_digits(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: with_few_digits(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [with_few_digits(inner) for inner in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value


def recorded(path: Path) -> dict[str, dict[str, Any]]:
    """The lines that are there, by key: those of a store that is on another machine stay."""
    lines = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return {line["key"]: line for line in lines}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--name", help="of the file; by default the study's")
    parser.add_argument("--bins", action="store_true", help="with the bins of reliability diagrams")
    asked = parser.parse_args()
    study = load_study(asked.study, seeds=asked.seeds)
    specs = study.specs()
    runs, _ = collected([Store(store_folder(asked.store))], specs)
    order = {spec.key: place for place, spec in enumerate(specs)}
    path = RECORDS / f"{asked.name or study.name}.jsonl"
    lines = recorded(path) | {run.key: with_few_digits(record(run, with_bins=asked.bins)) for run in runs}
    kept = sorted(lines.keys() & order.keys(), key=lambda key: order[key])
    write_atomically(path, "".join(json.dumps(lines[key]) + "\n" for key in kept).encode())
    print(f"{path}: {len(kept)} of {len(specs)} runs, {len(runs)} of them from the store")


if __name__ == "__main__":
    main()
