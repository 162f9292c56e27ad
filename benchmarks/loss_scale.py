"""By which number must Focal Calibration Loss be divided for a learning rate of cross-entropy to carry over to it?

    python benchmarks/loss_scale.py [--tasks ...] [--seeds N] [--json FILE]

Stochastic gradient descent with momentum trains one network per learning rate (steps of 2) on cross-entropy and on
FCL(3, lam) as the paper writes it. The best learning rate of an objective is the one whose network has the lowest value
of that same objective on held-out rows, refined by a parabola; cross-entropy's over FCL's is the divisor that was
needed. Against it stand the candidates, ratios of FCL's logit gradient to cross-entropy's:

    start     of the true logit, at the uniform prediction where training starts
    mean      of the true logit, averaged over p_y from 0 to 1, the other classes sharing the rest
    matched   the geometric mean of these two: the scale "matched"
    rms       root mean square over the training rows, at the predictions of the best cross-entropy network
    path      the same, over that network's predictions during all of its training

The excess of a candidate is what the held-out objective has above its best value at the learning rate that the
candidate implies, in per cent of the distance from the uniform prediction to the best value.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from focalcal.lab.data import data_folder
from focalcal.lab.data.known_posteriors import load_gaussian_mixture
from focalcal.lab.data.text_sets import load_newsgroups
from focalcal.losses import functional, matched_scale

GAMMA, LAMS = 3.0, (0.0, 4.0, 16.0, 64.0)
POWERS = range(-11, -1)  # learning rates 2^-11 .. 2^-2 of cross-entropy
Objective = tuple[float, float]  # gamma, lam
CROSS_ENTROPY: Objective = (0.0, 0.0)


@dataclass(frozen=True)
class Task:
    """Rows to train on and rows to judge by."""

    name: str
    classes: int
    epochs: int
    inputs: Tensor
    labels: Tensor
    held_inputs: Tensor
    held_labels: Tensor


def mixture(classes: int, dimensions: int, separation: float, rows: int, epochs: int) -> Task:
    data = load_gaussian_mixture(
        classes=classes, dimensions=dimensions, separation=separation, sizes=(rows, 100, 5_000)
    )
    return _task(f"mixture, K = {classes}", classes, epochs, data.train, data.test, torch.from_numpy)


def newsgroups() -> Task:
    """Posts as the square roots of word counts, of length one."""
    data = load_newsgroups(data_folder(), num_words=2000)

    def bags(tokens: np.ndarray) -> Tensor:
        counts = torch.zeros(len(tokens), 2001)
        counts.scatter_add_(1, torch.from_numpy(tokens).clamp(max=2000), torch.ones(tokens.shape))
        return nn.functional.normalize(counts[:, 2:].sqrt()) * 10

    return _task("20 Newsgroups, K = 20", 20, 6, data.train, data.test, bags)


def _task(name, classes, epochs, train, test, features) -> Task:  # type: ignore[no-untyped-def]
    labels, held = torch.from_numpy(train.labels), torch.from_numpy(test.labels)
    return Task(name, classes, epochs, features(train.inputs), labels, features(test.inputs), held)


TASKS = {
    "mixture10": lambda: mixture(10, 20, 2.5, 10_000, 10),
    "newsgroups": newsgroups,
    "mixture100": lambda: mixture(100, 30, 3.5, 20_000, 8),
    "mixture1000": lambda: mixture(1000, 60, 5.0, 40_000, 4),
}


def value(logits: Tensor, labels: Tensor, objective: Objective) -> Tensor:
    return functional.focal_calibration(logits, labels, gamma=objective[0], lam=objective[1]).mean()


def train(task: Task, objective: Objective, rate: float, seed: int) -> tuple[float, float, list[Tensor]]:
    """The objective and the error on held-out rows, and the training logits after each epoch."""
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(task.inputs.shape[1], 128), nn.ReLU(), nn.Linear(128, task.classes))
    optimiser = torch.optim.SGD(network.parameters(), lr=rate, momentum=0.9)
    path = []
    for _ in range(task.epochs):
        for rows in torch.randperm(len(task.labels)).split(128):
            optimiser.zero_grad()
            loss = value(network(task.inputs[rows]), task.labels[rows], objective)
            loss.backward()
            optimiser.step()
        if not math.isfinite(loss.item()):
            return math.inf, 1.0, []
        if objective == CROSS_ENTROPY:
            with torch.no_grad():
                path.append(network(task.inputs[:5000]))
    with torch.no_grad():
        logits = network(task.held_inputs)
    wrong = (logits.argmax(1) != task.held_labels).double().mean().item()
    return value(logits, task.held_labels, objective).item(), wrong, path


def best_power(values: dict[int, float]) -> float:
    """The power of two with the least value, by the parabola through the best of the grid and its neighbours."""
    at = min(values, key=values.__getitem__)
    left, middle, right = values.get(at - 1, math.inf), values[at], values.get(at + 1, math.inf)
    if not math.isfinite(left + right):
        return float(at)
    bend = left - 2 * middle + right
    return at + (0.5 * (left - right) / bend if bend > 0 else 0.0)


def value_at(values: dict[int, float], power: float) -> float:
    """Between two learning rates of the grid, linear in the logarithm."""
    power = min(max(power, min(values)), max(values))
    low = min(math.floor(power), max(values) - 1)
    share = power - low
    return values[low] if share == 0 else (1 - share) * values[low] + share * values[low + 1]


def at_start(gamma: float, lam: float, classes: int) -> float:
    return _ratio(torch.zeros(1, classes, dtype=torch.float64), gamma, lam, lambda g: g[:, 0].abs().mean())


def mean_over_own(gamma: float, lam: float, classes: int) -> float:
    own = torch.linspace(0, 1, 20_001, dtype=torch.float64)[1:-1]
    others = torch.log((1 - own) / (classes - 1)).unsqueeze(1).expand(-1, classes - 1)
    return _ratio(torch.cat([own.log().unsqueeze(1), others], 1), gamma, lam, lambda g: g[:, 0].abs().mean())


def root_mean_square(logits: Tensor, labels: Tensor, gamma: float, lam: float) -> float:
    return _ratio(logits, gamma, lam, lambda g: g.square().sum(1).mean().sqrt(), labels)


def _ratio(logits, gamma, lam, size, labels=None) -> float:  # type: ignore[no-untyped-def]
    labels = torch.zeros(len(logits), dtype=torch.long) if labels is None else labels
    sizes = []
    for objective in ((gamma, lam), CROSS_ENTROPY):
        leaf = logits.detach().clone().requires_grad_()
        (gradient,) = torch.autograd.grad(value(leaf, labels, objective), leaf)
        sizes.append(float(size(gradient)))
    return sizes[0] / sizes[1]


def measure(task: Task, seeds: int) -> list[dict[str, object]]:
    """One row per lam: the divisor that was needed and those of the candidates, with their excess."""
    curves: dict[Objective, dict[int, float]] = {}
    errors: dict[Objective, dict[int, float]] = {}
    paths: dict[int, list[Tensor]] = {}
    for objective in (CROSS_ENTROPY, *((GAMMA, lam) for lam in LAMS)):
        powers: Iterable[int] = POWERS
        if objective != CROSS_ENTROPY:
            center = best_power(curves[CROSS_ENTROPY])
            powers = range(
                math.floor(center - math.log2(mean_over_own(*objective, task.classes))) - 2, round(center) + 2
            )
        runs = {power: [train(task, objective, 2.0**power, seed) for seed in range(seeds)] for power in powers}
        curves[objective] = {power: statistics.mean(run[0] for run in several) for power, several in runs.items()}
        errors[objective] = {power: statistics.mean(run[1] for run in several) for power, several in runs.items()}
        if objective == CROSS_ENTROPY:
            paths = {power: several[0][2] for power, several in runs.items()}
        print(task.name, objective, {p: round(v, 4) for p, v in curves[objective].items()}, flush=True)
    own_best = best_power(curves[CROSS_ENTROPY])
    path = paths[round(own_best)]
    labels = task.labels[:5000]
    rows = []
    for lam in LAMS:
        curve = curves[GAMMA, lam]
        least = min(curve.values())
        start = value(torch.zeros(1, task.classes), torch.zeros(1, dtype=torch.long), (GAMMA, lam)).item()
        candidates = {
            "start": at_start(GAMMA, lam, task.classes),
            "mean": mean_over_own(GAMMA, lam, task.classes),
            "matched": matched_scale(GAMMA, lam, task.classes),
            "rms": root_mean_square(path[-1], labels, GAMMA, lam),
            "path": root_mean_square(torch.cat(path), labels.repeat(len(path)), GAMMA, lam),
            "paper": 1.0,
        }
        excess = {
            name: 100 * (value_at(curve, own_best - math.log2(divisor)) - least) / (start - least)
            for name, divisor in candidates.items()
        }
        needed = 2 ** (own_best - best_power(curve))
        rows.append({"task": task.name, "lam": lam, "needed": needed, "divisor": candidates, "excess": excess})
        rows[-1] |= {"curve": curve, "errors": errors[GAMMA, lam], "cross_entropy": curves[CROSS_ENTROPY]}
    return rows


def print_table(rows: list[dict[str, object]]) -> None:
    names = list(rows[0]["divisor"])  # type: ignore[call-overload]
    print("| task | lam | needed |" + "".join(f" {name} | excess % |" for name in names))
    print("|---|---:|---:|" + "---:|---:|" * len(names))
    for row in rows:
        cells = [f" {row['divisor'][name]:.2f} | {row['excess'][name]:.2f} |" for name in names]  # type: ignore[index]
        print(f"| {row['task']} | {row['lam']:g} | {row['needed']:.2f} |" + "".join(cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="which tasks (default all)")
    parser.add_argument("--seeds", type=int, default=1, help="networks for each learning rate (default 1)")
    parser.add_argument("--json", type=Path, help="write the numbers here as well")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = [row for name in arguments.tasks for row in measure(TASKS[name](), arguments.seeds)]
    print_table(rows)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
