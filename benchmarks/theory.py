"""What a solve costs: against SciPy's SLSQP on the study's problems, and as K and the batch grow.

python benchmarks/theory.py           a minute or so, nearly all of it SLSQP
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from paper.theory.cross_check import slsqp
from paper.theory.theory_study import CALIBRATION_GAMMAS, GAMMAS, LAMS, population, posteriors

from focalcal.theory import minimise


def median_seconds(call: Callable[[], object], *, repeats: int = 7) -> float:
    """CPU time of this thread: others on the machine do not count."""
    call()
    taken = []
    for _ in range(repeats):
        start = time.thread_time()
        call()
        taken.append(time.thread_time() - start)
    return float(np.median(taken))


def all_as_batches() -> None:
    """The 504 solves and the 36 of 40 states each, one call for each number of classes."""
    etas = list(posteriors().values())
    for classes in sorted({len(eta) for eta in etas}):
        same = np.array([eta for eta in etas if len(eta) == classes])
        minimise(same[:, None, None], gamma=GAMMAS[:, None], lam=LAMS)
    minimise(population()[:, None, None], gamma=CALIBRATION_GAMMAS[:, None], lam=LAMS)


def all_by_slsqp() -> float:
    start = time.thread_time()
    for eta in posteriors().values():
        for gamma in GAMMAS:
            for lam in LAMS:
                slsqp(eta, gamma=gamma, lam=lam, restarts=False)
    for eta in population():
        for gamma in CALIBRATION_GAMMAS:
            for lam in LAMS:
                slsqp(eta, gamma=gamma, lam=lam, restarts=False)
    return time.thread_time() - start


def exponent(sizes: list[int], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def main() -> None:
    ours, theirs = median_seconds(all_as_batches), all_by_slsqp()
    print("| 504 + 36 solves | seconds |\n|---|---:|")
    print(f"| as batches | {ours:.4f} |\n| SLSQP, one start at eta | {theirs:.1f} |\n| ratio | {theirs / ours:.0f} |\n")

    rng = np.random.default_rng(0)
    sizes = [10, 100, 1_000, 10_000, 100_000, 1_000_000]
    seconds = []
    print("| K | one solve, ms | stationarity | feasibility | steps |\n|---:|---:|---:|---:|---:|")
    for classes in sizes:
        eta = rng.dirichlet(np.ones(classes))
        found = minimise(eta, gamma=3.0, lam=1.0)
        seconds.append(median_seconds(lambda eta=eta: minimise(eta, gamma=3.0, lam=1.0), repeats=3))
        figures = f"{found.stationarity:.1e} | {found.feasibility:.1e} | {found.steps}"
        print(f"| {classes:,} | {1e3 * seconds[-1]:.3g} | {figures} |")
    print(f"\ntime grows like K^{exponent(sizes[2:], seconds[2:]):.2f} from 1,000 to 1,000,000 classes")
    print(f"and like K^{exponent(sizes, seconds):.2f} from 10, where the cost of a call shows\n")

    batches = [100, 1_000, 10_000, 100_000]
    etas = [rng.dirichlet(np.ones(10), size=size) for size in batches]
    seconds = [median_seconds(lambda eta=eta: minimise(eta, gamma=3.0, lam=1.0), repeats=3) for eta in etas]
    print("| posteriors of 10 classes | ms | us a posterior |\n|---:|---:|---:|")
    for size, taken in zip(batches, seconds, strict=True):
        print(f"| {size:,} | {1e3 * taken:.3g} | {1e6 * taken / size:.1f} |")
    print(f"\ntime grows like B^{exponent(batches[1:], seconds[1:]):.2f} from 1,000 to 100,000 posteriors")


if __name__ == "__main__":
    main()
