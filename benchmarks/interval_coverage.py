"""How often does a 95 % interval hold the truth?

    python benchmarks/interval_coverage.py [--samples 60] [--resamples 200]

Samples of a classifier whose labels are drawn from softmax(z / T) while it says softmax(z): T = 1 is perfectly
calibrated, T > 1 overconfident. The truth is the metric on two million rows. For each rule of `bootstrap` the share
of samples whose interval holds it; with 60 samples a true 0.95 shows as 0.89 to 1. About a quarter of an hour.
"""

from __future__ import annotations

import argparse

import torch

from focalcal import metrics

ASKED = [
    *(metric for metric in metrics.METRICS.values() if metric.by_chance),
    metrics.confidence_gap, metrics.brier, metrics.nll, metrics.error, metrics.aurc,
]  # fmt: skip


def sample(rows: int, temperature: float, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    logits = 2 * torch.randn(rows, 5, generator=generator)
    noise = -torch.log(-torch.log(torch.rand(rows, 5, generator=generator)))
    return logits.softmax(1), (logits / temperature + noise).argmax(1)


def coverage(rows: int, temperature: float, samples: int, resamples: int) -> None:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--resamples", type=int, default=200)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for temperature in (1.0, 1.1, 1.5):
        for rows in (500, 5000):
            coverage(rows, temperature, arguments.samples, arguments.resamples)


if __name__ == "__main__":
    main()
