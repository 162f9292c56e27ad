"""How often does a nominal 95 % interval for a mean of paired differences cover it, with the seeds studies have?

    python benchmarks/paired_coverage.py [--studies 2000]

Differences are drawn, normal and skewed (exponential less its mean); the true mean is 0. Beside the bootstrap's
intervals stands Student's, and how often the exact sign-flip test is significant at 0.05, which must be at most 5 %.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.special import stdtrit

from focalcal.stats import PairedInterval, bootstrap_ci, sign_flip_test

SEEDS = (3, 5, 8, 10, 20)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=2000, help="drawn for each row")
    parser.add_argument("--resamples", type=int, default=1999)
    options = parser.parse_args()
    print(f"{'law':8} {'n':>3} {'BCa':>7} {'percentile':>10} {'Student':>8} {'sign-flip p <= 0.05':>20}")
    for law in ("normal", "skewed"):
        for n in SEEDS:
            generator = np.random.default_rng(n)
            draws = generator.normal(size=(options.studies, n))
            if law == "skewed":
                draws = generator.exponential(size=(options.studies, n)) - 1
            print(f"{law:8} {n:3} " + row(draws, options.resamples))


def row(draws: np.ndarray, resamples: int) -> str:
    """Shares of the studies."""
    n = draws.shape[1]
    covered = {
        method: np.mean([_covers(bootstrap_ci(d, method=method, resamples=resamples)) for d in draws])
        for method in ("bca", "percentile")
    }
    half = stdtrit(n - 1, 0.975) * draws.std(1, ddof=1) / np.sqrt(n)
    student = np.mean(np.abs(draws.mean(1)) <= half)
    rejected = np.mean([sign_flip_test(d).p_value <= 0.05 for d in draws])
    return f"{covered['bca']:7.3f} {covered['percentile']:10.3f} {student:8.3f} {rejected:20.3f}"


def _covers(interval: PairedInterval) -> bool:
    return interval.low <= 0 <= interval.high


if __name__ == "__main__":
    main()
