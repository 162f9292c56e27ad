"""How often does a 95 % interval hold the truth?

    python benchmarks/interval_coverage.py [--samples 60] [--resamples 200]
    python benchmarks/interval_coverage.py --event [--samples 400] [--resamples 200]

Samples of a classifier whose labels are drawn from softmax(z / T) while it says softmax(z): T = 1 is perfectly
calibrated, T > 1 overconfident. The truth is the metric on two million rows. For each rule of `bootstrap` the share
of samples whose interval holds it; with 60 samples a true 0.95 shows as 0.89 to 1. About a quarter of an hour.

`--event`: `event_calibration` of 120 and of 1,000 rows whose outcomes are drawn from expit(a + b x + u) while the
model says expit(x): calibrated (a = 0, b = 1), or under-predicted and too extreme (a = 0.7, b = 0.7). Rows are alike;
or sampled with unequal chances, events four times as often, and weighted back; or in clusters of 5 that share half of
x's variance and a shift u of the log odds with standard deviation 0.8. Truths are the population's, by quadrature. With
400 samples a true 0.95 shows as 0.93 to 0.97. About seven minutes of CPU.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from scipy.optimize import root
from scipy.special import expit, roots_hermite

from focalcal import metrics
from focalcal.metrics.event_curve import weighted_quantile

EVENT = ("ici", "e50", "e90", "emax")
ASKED = [
    *(metric for name, metric in metrics.METRICS.items() if metric.by_chance and name not in EVENT),
    metrics.confidence_gap, metrics.brier, metrics.nll, metrics.error, metrics.aurc,
]  # fmt: skip


def sample(rows: int, temperature: float, generator: Any) -> tuple[Any, Any]:
    import torch

    logits = 2 * torch.randn(rows, 5, generator=generator)
    noise = -torch.log(-torch.log(torch.rand(rows, 5, generator=generator)))
    return logits.softmax(1), (logits / temperature + noise).argmax(1)


def coverage(rows: int, temperature: float, samples: int, resamples: int) -> None:
    import torch

    generator = torch.Generator().manual_seed(1)
    population = sample(2_000_000, temperature, generator)
    truth = {metric.__name__: metric(*population) for metric in ASKED}
    rules = ("adjusted", "basic", "percentile")
    hits = {(name, rule): 0 for name in truth for rule in rules}
    for seed in range(samples):
        probs, labels = sample(rows, temperature, generator)
        for rule in rules:
            found = metrics.bootstrap(ASKED, probs, labels, resamples=resamples, method=rule, seed=seed)
            for name, interval in found.items():
                hits[name, rule] += interval.low <= truth[name] <= interval.high
    print(f"\nT = {temperature}, {rows} rows {'':13} truth" + "".join(f"{rule:>12}" for rule in rules))
    for name, value in truth.items():
        print(f"{name:>30} {value:8.4f}" + "".join(f"{hits[name, rule] / samples:12.2f}" for rule in rules), flush=True)


MEAN, SPREAD, SHIFT, SIZE = -1.0, 1.2, 0.8, 5  # of x, of u, and of a cluster


def event_sample(
    rows: int, a: float, b: float, design: str, generator: np.random.Generator
) -> tuple[Any, Any, Any, Any]:
    """Log odds that the model says, outcomes, weights and clusters."""
    if design == "clusters":
        cluster = np.arange(rows) // SIZE
        shared, u = generator.normal(size=(2, rows // SIZE + 1))
        x = MEAN + SPREAD * (shared[cluster] + generator.normal(size=rows)) / np.sqrt(2)
        return x, generator.random(rows) < expit(a + b * x + SHIFT * u[cluster]), None, cluster
    many = rows if design == "rows" else 40 * rows
    x = generator.normal(MEAN, SPREAD, many)
    y = generator.random(many) < expit(a + b * x)
    if design == "rows":
        return x, y, None, None
    chance = np.where(y, 0.1, 0.025) * np.exp(0.4 * generator.normal(size=many))
    chosen = np.flatnonzero(generator.random(many) < chance)[:rows]
    return x[chosen], y[chosen], 1 / chance[chosen], None


def event_truth(a: float, b: float, design: str) -> dict[str, float]:
    """The population's numbers."""
    nodes, mass = roots_hermite(80)
    x, mass = MEAN + SPREAD * np.sqrt(2) * nodes, mass / mass.sum()
    z, share = roots_hermite(40)
    shift = SHIFT * np.sqrt(2) * z if design == "clusters" else np.zeros(1)
    share = share / share.sum() if design == "clusters" else np.ones(1)

    def curve(x: Any) -> Any:
        return expit(a + b * x[:, None] + shift) @ share

    p, q = expit(x), curve(x)

    def score(theta: Any) -> Any:
        off = mass * (q - expit(theta[0] + theta[1] * x))
        return [off.sum(), (off * x).sum()]

    fit = root(score, [a, b], tol=1e-12).x
    alone = root(lambda c: (mass * (q - expit(c + x))).sum(), [0.0], tol=1e-12).x
    fine = np.linspace(MEAN - 8 * SPREAD, MEAN + 8 * SPREAD, 400_001)
    density = np.exp(-(((fine - MEAN) / SPREAD) ** 2) / 2)
    gap = np.abs(expit(fine) - curve(fine))
    e50, e90 = weighted_quantile(gap, density, np.array([0.5, 0.9]))
    density /= density.sum()
    happens, above, flagged = curve(fine), expit(fine) >= 0.3, expit(fine) >= 1 / 11
    worth = happens - (1 - happens) * 3 / 7
    everyone = (density * worth).sum() > 0
    order = np.cumsum(density * (1 - curve(fine)))
    area = (density * curve(fine) * (order - density * (1 - curve(fine)) / 2)).sum()
    return {
        "predicted_rate": mass @ p, "observed_rate": mass @ q, "oe": (mass @ q) / (mass @ p), "slope": fit[1],
        "intercept": fit[0], "citl": alone[0], "ici": (density * gap).sum(), "e50": e50, "e90": e90,
        "brier": mass @ (q * (1 - p) ** 2 + (1 - q) * p**2), "nll": -mass @ (q * np.log(p) + (1 - q) * np.log1p(-p)),
        "net benefit at 0.3": (density * above * worth).sum(),
        "its gain": (density * (above * worth - everyone * worth)).sum(),
        "precision at 0.3": (density * above * happens).sum() / (density * above).sum(),
        "recall at 0.3": (density * above * happens).sum() / (density * happens).sum(),
        "cost per 1,000": 1000 * (density * np.where(flagged, 1 - happens, 10 * happens)).sum(),
        "auroc": area / ((density * curve(fine)).sum() * (density * (1 - curve(fine))).sum()),
    }  # fmt: skip


def decisions(p: Any, y: Any, weights: Any, clusters: Any) -> dict[str, Any]:
    """The intervals of decisions."""
    options = {"sample_weight": weights, "clusters": clusters}
    curve = metrics.net_benefit(p, y, thresholds=[0.3], **options)
    flagged = metrics.flagged_at(p, y, threshold=0.3, **options)
    return {
        "net benefit at 0.3": metrics.Interval(curve.net_benefit[0], curve.low[0], curve.high[0], 0.95),
        "its gain": metrics.Interval(curve.gain[0], curve.gain_low[0], curve.gain_high[0], 0.95),
        "precision at 0.3": flagged.precision,
        "recall at 0.3": flagged.recall,
        "cost per 1,000": metrics.decision_cost(p, y, cost={"fp": 1, "fn": 10}, **options).per_1000,
    }


def event_coverage(rows: int, a: float, b: float, samples: int, resamples: int) -> None:
    generator = np.random.default_rng([rows, samples])
    designs = ("rows", "weights", "clusters")
    truths = {design: event_truth(a, b, design) for design in designs}
    hits = {(design, name): 0 for design, truth in truths.items() for name in truth}
    for design in designs:
        for seed in range(samples):
            x, y, weights, clusters = event_sample(rows, a, b, design, generator)
            found = metrics.event_calibration(
                expit(x), y, sample_weight=weights, clusters=clusters, resamples=resamples, seed=seed
            )
            intervals = found.intervals | decisions(expit(x), y, weights, clusters)
            for name, value in truths[design].items():
                interval = intervals[name]
                hits[design, name] += interval.low - 1e-9 <= value <= interval.high + 1e-9
    print(f"\na = {a}, b = {b}, {rows} rows {'':5} truth" + "".join(f"{design:>10}" for design in designs))
    for name, value in truths["rows"].items():
        print(f"{name:>26} {value:8.4f}" + "".join(f"{hits[d, name] / samples:10.3f}" for d in designs), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--event", action="store_true", help="Measure event_calibration.")
    parser.add_argument("--samples", type=int)
    parser.add_argument("--resamples", type=int, default=200)
    arguments = parser.parse_args()
    if arguments.event:
        for rows in (120, 1000):
            for a, b in ((0.0, 1.0), (0.7, 0.7)):
                event_coverage(rows, a, b, arguments.samples or 400, arguments.resamples)
        return
    import torch

    torch.set_num_threads(1)
    for temperature in (1.0, 1.1, 1.5):
        for rows in (500, 5000):
            coverage(rows, temperature, arguments.samples or 60, arguments.resamples)


if __name__ == "__main__":
    main()
