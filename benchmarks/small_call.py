"""Where does the time of a small call go?

    python benchmarks/small_call.py [--rounds N]

Microseconds of one thread's CPU time at 128 x 10, medians over interleaved rounds of 300 calls: `F.cross_entropy`
and FCL, forward and backward; a `torch.autograd.Function` that computes nothing but has a gradient of this size; and
the kernel's own pass over the logits.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from focalcal import _native
from focalcal.losses import FocalCalibrationLoss
from focalcal.losses.native_engine import fused_rows

CALLS = 300


class Nothing(torch.autograd.Function):
    """A loss without arithmetic, which keeps what a loss keeps."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor) -> Tensor:
        ctx.save_for_backward(logits, labels)
        ctx.gradient = torch.empty_like(logits)
        return logits.new_empty(())

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        return ctx.gradient, None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40, help="interleaved rounds (default 40)")
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    logits, labels = torch.randn(128, 10, requires_grad=True), torch.randint(0, 10, (128,))

    def step(loss: Callable[[Tensor, Tensor], Any]) -> Callable[[], None]:
        def both() -> None:
            logits.grad = None
            loss(logits, labels).backward()

        return both

    steps: dict[str, Callable[[], Any]] = {
        "F.cross_entropy": step(F.cross_entropy),
        "FCL": step(FocalCalibrationLoss()),
        "autograd.Function that computes nothing": step(Nothing.apply),
    }
    if _native.available():
        given = logits.detach()
        steps["kernel and two allocations"] = lambda: fused_rows(
            given, labels, 1.0, 3.0, 1.0, 0.0, False, -100, "mean", True
        )
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, call in steps.items():
            begin = time.thread_time_ns()
            for _ in range(CALLS):
                call()
            times[name].append((time.thread_time_ns() - begin) / CALLS / 1000)
    for name, values in times.items():
        print(f"{statistics.median(values):6.1f} us  {name}")


if __name__ == "__main__":
    main()
