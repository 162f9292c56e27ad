"""What the metrics cost, as a share of the fastest other library's time for the same metric.

    python benchmarks/metrics.py            all shapes, a few minutes
    python benchmarks/metrics.py --quick    10,000 x 10 alone

One process, one thread, CPU time of that thread; everything in turn in each round, as often as takes ten
milliseconds; medians over rounds; input checks included on all sides, with every library's defaults. Arrays are handed
to each library in the kind it works on. Where a library has no such metric but a part of it (classwise ECE by a loop
over the classes, smECE of the confidence), that is what is timed. The floor is one sum over the array: nothing that
looks at every probability can be faster.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
import warnings
from importlib.metadata import version

import numpy as np
import torch

from focalcal import _native, metrics
from focalcal._native import scores as native

SHAPES = [(10_000, 10), (1_000_000, 10), (100_000, 100), (50_000, 1000)]
TARGETS = {  # share of the fastest peer: native, NumPy alone
    "ece": (0.15, 0.6),
    "classwise ece": (0.06, 0.25),
    "adaptive ece": (0.3, None),
    "smooth ece": (0.1, None),
    "brier": (0.12, 0.3),
    "nll": (0.05, None),
    "summary": (1.0, None),  # of the fastest ECE alone
}


def data(rows: int, classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Probabilities of an overconfident network and labels."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(rows, classes, generator=generator) * 3
    noise = -torch.log(-torch.log(torch.rand(rows, classes, generator=generator)))
    labels = (logits / 1.3 + noise).argmax(1)
    return logits.softmax(1), labels


def peers(probs: torch.Tensor, labels: torch.Tensor) -> dict[str, dict[str, object]]:
    """metric -> library -> function without arguments."""
    import calibration
    import relplot
    import torchmetrics.functional.classification as tm
    from netcal.metrics import ECE
    from sklearn.metrics import brier_score_loss, log_loss

    array, truth, classes = probs.numpy(), labels.numpy(), probs.shape[1]
    names = np.arange(classes)

    def torchmetrics_classwise():
        each = [tm.binary_calibration_error(probs[:, k], (labels == k).long(), n_bins=15) for k in range(classes)]
        return sum(each) / classes

    def netcal_classwise():
        return np.mean([ECE(15).measure(array[:, k], (truth == k).astype(int)) for k in range(classes)])

    def relplot_smooth():
        confidence, predicted = probs.max(1)
        return relplot.smECE(confidence.numpy(), (predicted == labels).numpy())

    found = {
        "ece": {
            "torchmetrics": lambda: tm.multiclass_calibration_error(probs, labels, classes, n_bins=15),
            "netcal": lambda: ECE(15).measure(array, truth),
            "uncertainty-calibration": lambda: calibration.get_ece(array, truth, num_bins=15),
        },
        "classwise ece": {"torchmetrics": torchmetrics_classwise, "netcal": netcal_classwise},
        "adaptive ece": {
            "netcal": lambda: ECE(15, equal_intervals=False).measure(array, truth),
            "uncertainty-calibration": lambda: calibration.get_ece_em(array, truth, num_bins=15),
        },
        "smooth ece": {"relplot": relplot_smooth},
        "brier": {"scikit-learn": lambda: brier_score_loss(truth, array, labels=names, scale_by_half=False)},
        "nll": {"scikit-learn": lambda: log_loss(truth, array, labels=names)},
    }
    if probs.numel() > 2_000_000:  # several times slower than torchmetrics wherever both were tried
        del found["classwise ece"]["netcal"]
    return found


def ours(given: torch.Tensor, truth: torch.Tensor) -> dict[str, object]:
    probs, labels = given.numpy(), truth.numpy()
    return {
        "ece": lambda: metrics.ece(probs, labels),
        "classwise ece": lambda: metrics.classwise_ece(probs, labels),
        "adaptive ece": lambda: metrics.adaptive_ece(probs, labels),
        "smooth ece": lambda: metrics.smooth_ece(probs, labels),
        "brier": lambda: metrics.brier(probs, labels),
        "nll": lambda: metrics.nll(probs, labels),
        "summary": lambda: metrics.summary(probs, labels),
    }


def once(function: object, least: float = 0.01) -> float:
    """CPU seconds of one call, the mean over enough calls for the clock."""
    calls = 0
    start = time.thread_time()
    while True:
        function()
        calls += 1
        spent = time.thread_time() - start
        if spent >= least:
            return spent / calls


def measure(rows: int, classes: int, rounds: int) -> dict[tuple[str, str], float]:
    """(metric, library) -> median CPU seconds; "native" and "numpy" are ours."""
    probs, labels = data(rows, classes)
    theirs, mine = peers(probs, labels), ours(probs, labels)
    usable = native.usable
    spent: dict[tuple[str, str], list[float]] = {}

    def add(metric: str, library: str, function: object) -> None:
        spent.setdefault((metric, library), []).append(once(function))

    for _ in range(rounds):
        add("floor", "one sum", lambda: float(probs.sum()))
        for metric, functions in theirs.items():
            for library, function in functions.items():
                add(metric, library, function)
        for engine in ("native", "numpy"):
            native.usable = usable if engine == "native" else lambda _: False
            for metric, function in mine.items():
                add(metric, engine, function)
        native.usable = usable
    return {key: statistics.median(values) for key, values in spent.items()}


def report(rows: int, classes: int, rounds: int) -> None:
    median = measure(rows, classes, rounds)
    print(f"\n{rows:,} x {classes}: one read of the array {median['floor', 'one sum'] * 1e3:.2f} ms")
    print(
        f"{'':15} {'fastest peer':>34} {'native':>9} {'share':>7} {'target':>7} {'numpy':>9} {'share':>7} {'target':>7}"
    )
    for metric, (target, numpy_target) in TARGETS.items():
        of = "ece" if metric == "summary" else metric
        best, library = min((t, name) for (m, name), t in median.items() if m == of and name not in ("native", "numpy"))
        mine, slow = median[metric, "native"], median[metric, "numpy"]
        share, slow_share = mine / best, slow / best
        mark = " " if share <= target else "*"
        slow_mark = " " if numpy_target is None or slow_share <= numpy_target else "*"
        print(
            f"{metric:15} {library:>24} {best * 1e3:9.2f} {mine * 1e3:9.2f} {share:7.3f}{mark}{target:6.2f} "
            f"{slow * 1e3:9.2f} {slow_share:7.3f}{slow_mark}{numpy_target or float('nan'):6.2f}"
        )


MEMORY = """
import sys, torch, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, "benchmarks")
import metrics as benchmark
torch.set_num_threads(1)
def even(rows): return torch.full((rows, 1000), 1e-3), torch.arange(rows) % 1000
small, large = even(1000), even(50_000)
def task(name, data):
    if name.startswith("focalcal"):
        return benchmark.ours(*data)["summary"]()
    return benchmark.peers(*data)["ece"][name]()
task(sys.argv[1], small)
def peak(): return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmHWM"))
before = peak()
task(sys.argv[1], large)
print((peak() - before) / 1024)
"""


def memory() -> None:
    """Extra peak memory at 50,000 x 1000: our whole summary, the others' ECE."""
    print("\nextra memory at 50,000 x 1000 (the array itself: 191 MB)")
    for name in ("focalcal native", "focalcal numpy", "torchmetrics", "netcal", "uncertainty-calibration"):
        switch = {"FOCALCAL_NATIVE": "0" if name == "focalcal numpy" else "1"}
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, name], capture_output=True, text=True, check=True, env=os.environ | switch
        )
        what = "summary" if name.startswith("focalcal") else "ECE"
        print(f"{name:>26} {what:>8} {float(done.stdout):8.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10,000 x 10 alone")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    names = ("torch", "numpy", "torchmetrics", "netcal", "relplot", "uncertainty-calibration", "scikit-learn")
    print(", ".join(f"{name} {version(name)}" for name in names))
    print(f"instruction sets: {', '.join(_native.instruction_sets()) or 'no native kernel'}")
    for rows, classes in SHAPES[:1] if arguments.quick else SHAPES:
        report(rows, classes, arguments.rounds if rows * classes > 1e6 else 4 * arguments.rounds)
    if not arguments.quick:
        memory()


if __name__ == "__main__":
    main()
