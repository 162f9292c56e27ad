"""How much memory and time does a loss without logits save?

    python benchmarks/linear_loss.py [--rows N] [--features D] [--classes K] [--chunk N] [--dtype float32]

Forward and backward of a linear layer and FCL(3, 1), once through the logits (`F.linear`, then `FocalCalibrationLoss`)
and once by `linear_focal_calibration`. Peak memory is what each adds to a process that has the inputs, measured in a
process of its own, the gradients included. Time is the median CPU time of one thread, interleaved in one process.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import linear

from focalcal.losses import FocalCalibrationLoss
from focalcal.losses.functional import linear_focal_calibration

Step = Callable[[], None]


def inputs(asked: argparse.Namespace) -> tuple[Tensor, Tensor, Tensor]:
    draws = torch.Generator().manual_seed(0)
    dtype = getattr(torch, asked.dtype)
    hidden = torch.randn(asked.rows, asked.features, generator=draws).to(dtype).requires_grad_()
    weight = (torch.randn(asked.classes, asked.features, generator=draws) / 20).to(dtype).requires_grad_()
    return hidden, weight, torch.randint(asked.classes, (asked.rows,), generator=draws)


def steps(asked: argparse.Namespace, hidden: Tensor, weight: Tensor, labels: Tensor) -> dict[str, Step]:
    loss = FocalCalibrationLoss(3, 1)

    def through_logits() -> None:
        loss(linear(hidden, weight), labels).backward()

    def without_logits() -> None:
        linear_focal_calibration(hidden, weight, labels, gamma=3, lam=1, chunk=asked.chunk).backward()

    def cleared(step: Step) -> Step:
        def run() -> None:
            hidden.grad = weight.grad = None
            step()

        return run

    return {"through logits": cleared(through_logits), "without logits": cleared(without_logits)}


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def added_memory(asked: argparse.Namespace, name: str, answer: multiprocessing.Queue[float]) -> None:
    torch.set_num_threads(1)
    small = argparse.Namespace(**(vars(asked) | {"rows": 4, "features": 8, "classes": 16}))
    steps(small, *inputs(small))[name]()  # what is loaded at the first call is not the loss's
    step = steps(asked, *inputs(asked))[name]
    before = megabytes()
    step()
    answer.put(megabytes() - before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--features", type=int, default=512)
    parser.add_argument("--classes", type=int, default=64_000)
    parser.add_argument("--chunk", type=int)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    spawned = multiprocessing.get_context("spawn")
    memory = {}
    for name in ("through logits", "without logits"):
        answer: multiprocessing.Queue[float] = spawned.Queue()
        process = spawned.Process(target=added_memory, args=(asked, name, answer))
        process.start()
        memory[name] = answer.get()
        process.join()
    torch.set_num_threads(1)
    timed = steps(asked, *inputs(asked))
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(asked.rounds):
        for name, step in timed.items():
            start = time.process_time()
            step()
            seconds[name].append(time.process_time() - start)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    print(f"{asked.rows:,} rows x {asked.features:,} features x {asked.classes:,} classes, {asked.dtype}")
    for name in timed:
        print(f"{name:<16} {memory[name]:8.0f} MB added at most {medians[name]:8.2f} s")
    whole, parts = timed
    print(f"memory {memory[whole] / memory[parts]:.1f} times lower, time {medians[parts] / medians[whole]:.2f} times")


if __name__ == "__main__":
    main()
