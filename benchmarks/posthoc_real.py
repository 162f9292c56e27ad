"""What do the calibrators do to real networks?

    python benchmarks/posthoc_real.py FOLDER [--seeds N]

FOLDER holds logits/cifar10_test_logits_akamaster_resnets.npz: CIFAR-10 test logits of four ResNets trained with
cross-entropy. The split-half protocol, averaged over seeds: every calibrator is fitted on 5,000 rows and measured on
the other 5,000. ECE has 15 bins (lo, hi]; NLL in nats; Brier is summed over the classes; error in %. Then conformal
sets: alpha = 0.05, APS and RAPS (penalty 0.01, no penalty for the first rank), of the logits as they are.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from focalcal.core.binning import bin_sums, equal_width_edges
from focalcal.posthoc import CALIBRATORS, ConformalSets, split_half

NETWORKS = ("resnet20", "resnet32", "resnet44", "resnet56")


def ece(probs: np.ndarray, labels: np.ndarray) -> float:
    sums = bin_sums(probs.max(1), probs.argmax(1) == labels, equal_width_edges(15))
    return 100 * float(np.abs(sums.confidence - sums.correct).sum()) / len(labels)


def nll(probs: np.ndarray, labels: np.ndarray) -> float:
    with np.errstate(divide="ignore"):
        return float(-np.log(probs[np.arange(len(labels)), labels]).mean())


def brier(probs: np.ndarray, labels: np.ndarray) -> float:
    return float(((probs - np.eye(probs.shape[1])[labels]) ** 2).sum(1).mean())


def error(probs: np.ndarray, labels: np.ndarray) -> float:
    return 100 * float((probs.argmax(1) != labels).mean())


METRICS = {"ECE %": ece, "NLL": nll, "Brier": brier, "error %": error}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    stored = np.load(arguments.folder / "logits" / "cifar10_test_logits_akamaster_resnets.npz")
    labels = stored["labels"].astype(np.int64)
    print("| network | calibrator | " + " | ".join(METRICS) + " |")
    print("|---|---|" + "---|" * len(METRICS))
    for network in NETWORKS:
        logits = stored[network].astype(np.float64)
        for name, kind in CALIBRATORS.items():
            runs = [split_half(logits, labels, kind(), seed=s, metrics=METRICS) for s in range(arguments.seeds)]
            if name == next(iter(CALIBRATORS)):
                show(network, "none", [run.before for run in runs])
            show(network, name, [run.after for run in runs])
    print("\n| network | sets | coverage % | lowest | highest | mean size |\n|---|---|---|---|---|---|")
    for network in NETWORKS:
        for name, penalty in (("APS", 0.0), ("RAPS", 0.01)):
            show_sets(network, name, stored[network].astype(np.float64), labels, penalty, arguments.seeds)


def show_sets(network: str, name: str, logits: np.ndarray, labels: np.ndarray, penalty: float, seeds: int) -> None:
    reports = []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(labels))
        fit, held = np.split(order, 2)
        sets = ConformalSets(0.05, penalty=penalty, seed=seed).fit(logits[fit], labels[fit])
        reports.append(sets.evaluate(logits[held], labels[held]))
    coverage = [100 * report.coverage for report in reports]
    size = np.mean([report.mean_size for report in reports])
    print(f"| {network} | {name} | {np.mean(coverage):.2f} | {min(coverage):.2f} | {max(coverage):.2f} | {size:.3f} |")


def show(network: str, name: str, values: list[dict[str, float]]) -> None:
    means = {metric: np.mean([v[metric] for v in values]) for metric in METRICS}
    print(f"| {network} | {name} | " + " | ".join(f"{means[m]:.4g}" for m in METRICS) + " |", flush=True)


if __name__ == "__main__":
    main()
