"""How fast and how exact is temperature scaling beside its peers?

    python benchmarks/temperature.py [--rounds N] [--json FILE]

Fits float32 logits with labels drawn from softmax(logits / 1.7), on one thread. Contenders run in turn, in random
order, `rounds` times; medians of CPU time are divided by ours. The error is relative to the T that a bounded scalar
minimiser finds in float64 (itself good to about 1e-8). Peers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import time
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import minimize_scalar
from torch import Tensor

from focalcal.posthoc import TemperatureScaling

SHAPES = [(10_000, 10), (100_000, 100), (50_000, 1000)]
TARGET = 0.2  # of the fastest peer's time


def problem(rows: int, classes: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.empty(rows, classes).normal_(0, 3, generator=generator)
    gumbel = -torch.empty(rows, classes).exponential_(generator=generator).log_()
    return logits, gumbel.add_(logits, alpha=1 / 1.7).argmax(1)


def ours(logits: Tensor, labels: Tensor) -> float:
    return TemperatureScaling().fit(logits, labels).temperature_


def scikit_learn(logits: Tensor, labels: Tensor) -> float:
    from sklearn.calibration import _TemperatureScaling

    return 1 / float(_TemperatureScaling().fit(logits.numpy(), labels.numpy()).beta_)


def netcal(logits: Tensor, labels: Tensor) -> float:
    """In float64: its finite differences do not leave T = 1 in float32."""
    from netcal.scaling import TemperatureScaling as Peer

    peer = Peer()
    peer.fit(logits.double().softmax(1).numpy(), labels.numpy())
    return 1 / float(np.asarray(peer.temperature).reshape(-1)[0])


def torch_lbfgs(logits: Tensor, labels: Tensor) -> float:
    """log T from 0 with a strong Wolfe line search, as careful implementations do."""
    log_t = torch.zeros((), requires_grad=True)
    optimiser = torch.optim.LBFGS([log_t], max_iter=50, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = F.cross_entropy(logits / log_t.exp(), labels)
        loss.backward()
        return loss

    optimiser.step(closure)
    return float(log_t.exp())


def exact(logits: Tensor, labels: Tensor) -> float:
    """Brent's method on the mean of the loss, in float64, a chunk of rows at a time."""
    pieces = list(zip(logits.split(4096), labels.split(4096), strict=True))

    def nll(t: float) -> float:
        return sum(float(F.cross_entropy(z.double() / t, y, reduction="sum")) for z, y in pieces) / len(labels)

    return float(minimize_scalar(nll, bounds=(1.0, 3.0), method="bounded", options={"xatol": 1e-10}).x)


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def contenders() -> dict[str, Callable[[Tensor, Tensor], float]]:
    peers = {"focalcal": ours, "torch L-BFGS": torch_lbfgs, "scikit-learn": scikit_learn}
    return peers | ({"netcal": netcal} if installed("netcal") else {})


def extra_memory(function: Callable[[], object]) -> float:
    """How far the process's peak rises above where it stands, in MB (Linux; NaN elsewhere)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
        before = resident("VmRSS")
        function()
        return (resident("VmHWM") - before) / 1024
    except OSError:
        return float("nan")


def resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def measure(rows: int, classes: int, rounds: int) -> dict[str, dict[str, float]]:
    logits, labels = problem(rows, classes)
    truth = exact(logits, labels)
    fits = contenders()
    times: dict[str, list[float]] = {name: [] for name in fits}
    found = {}
    ours(logits[:100], labels[:100])
    extra = extra_memory(lambda: ours(logits, labels))
    shuffle = random.Random(0)
    for _ in range(rounds):
        for name in shuffle.sample(list(fits), len(fits)):
            begin = time.process_time()
            found[name] = fits[name](logits, labels)
            times[name].append(time.process_time() - begin)
    seconds = {name: statistics.median(values) for name, values in times.items()}
    return {
        name: {
            "seconds": seconds[name],
            "times ours": seconds[name] / seconds["focalcal"],
            "relative error of T": abs(found[name] / truth - 1),
            **({"extra memory, MB": extra} if name == "focalcal" else {}),
        }
        for name in fits
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    packages = ("torch", "numpy", "scipy", "scikit-learn", "netcal")
    versions = {name: installed(name) for name in packages}
    print(f"python {platform.python_version()}, " + ", ".join(f"{k} {v}" for k, v in versions.items()))
    results = {}
    for rows, classes in SHAPES:
        table = measure(rows, classes, arguments.rounds)
        results[f"{rows}x{classes}"] = table
        fastest = min(values["seconds"] for name, values in table.items() if name != "focalcal")
        share = table["focalcal"]["seconds"] / fastest
        print(f"\n{rows} x {classes}: {share:.3f} of the fastest peer's time (target {TARGET})")
        for name, values in table.items():
            memory = f"  +{values['extra memory, MB']:.1f} MB" if "extra memory, MB" in values else ""
            print(
                f"  {name:14} {1e3 * values['seconds']:10.2f} ms  {values['times ours']:8.1f} x ours  "
                f"T off by {values['relative error of T']:.1e}{memory}"
            )
    if arguments.json:
        arguments.json.write_text(json.dumps({"versions": versions, "results": results}, indent=1))


if __name__ == "__main__":
    main()
