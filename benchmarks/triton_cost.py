"""What do the Triton kernels cost on this GPU, beside what its memory allows?

    python benchmarks/triton_cost.py [--bandwidth GB_PER_SECOND] [--rounds N]

Forward + backward of Focal Calibration Loss by Triton, by torch operations and of `F.cross_entropy`, medians of GPU
time in microseconds. The roofline is the time to move the bytes that the kernels must move: the logits read once (twice
beyond 16,384 classes, and once more for float16, whose gradient waits for the loss scale), the gradient written once,
labels and losses. The bandwidth is that of a copy of 1 GB, measured first, unless it is given. Values are checked on
the way.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from focalcal.losses import FocalCalibrationLoss
from focalcal.losses.triton_launch import tile

SHAPES = [(128, 10), (128, 1000), (4096, 1000), (8192, 16384), (4096, 32000), (2048, 128256), (8, 21, 512, 512)]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def bytes_moved(shape: tuple[int, ...], dtype: torch.dtype) -> int:
    """By forward and backward: logits and gradient, int64 labels by both kernels, one float32 loss per example."""
    positions = math.prod(shape[2:])
    reads = (1 if tile(shape[1], positions).whole else 2) + (dtype is torch.float16)
    rows = shape[0] * positions
    return (reads + 1) * math.prod(shape) * dtype.itemsize + rows * (2 * 8 + 2 * 4)


def microseconds(step: Callable[[], object], rounds: int) -> float:
    """The median GPU time of a call, with the second-level cache emptied before it."""
    flush = torch.empty(256 * 2**20, dtype=torch.int8, device="cuda")
    for _ in range(5):
        step()
    times = []
    for _ in range(rounds):
        flush.zero_()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        step()
        end.record()
        end.synchronize()
        times.append(1000 * begin.elapsed_time(end))
    return statistics.median(times)


def forward_backward(loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, labels: Tensor) -> Callable[[], Tensor]:
    def step() -> Tensor:
        logits.grad = None
        loss(logits, labels).backward()
        assert logits.grad is not None
        return logits.grad

    return step


def measured_bandwidth(rounds: int) -> float:
    """Bytes per second of a copy, read and written."""
    source = torch.empty(2**30, dtype=torch.int8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / (1e-6 * microseconds(lambda: target.copy_(source), rounds))


def row(shape: tuple[int, ...], dtype: torch.dtype, bandwidth: float, rounds: int) -> str:
    logits = torch.randn(shape, device="cuda", dtype=dtype, requires_grad=True)
    labels = torch.randint(0, shape[1], (shape[0], *shape[2:]), device="cuda")
    losses: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"F.cross_entropy": F.cross_entropy}
    for engine in ("triton", "torch"):
        module = FocalCalibrationLoss(gamma=3, lam=1)
        module.engine = engine
        losses[engine] = module
    steps = {name: forward_backward(loss, logits, labels) for name, loss in losses.items()}
    torch.testing.assert_close(steps["triton"]().clone(), steps["torch"](), rtol=1e-2, atol=1e-6)
    times = {name: microseconds(step, rounds) for name, step in steps.items()}
    limit = 1e6 * bytes_moved(shape, dtype) / bandwidth
    return (
        f"| {'x'.join(map(str, shape))} | {str(dtype).removeprefix('torch.')} | {bytes_moved(shape, dtype) / 1e6:.1f} "
        f"| {limit:.1f} | {times['triton']:.1f} | {limit / times['triton']:.2f} | {times['torch']:.1f} "
        f"| {times['F.cross_entropy']:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bandwidth", type=float, help="GB per second of the GPU's memory (default: measured)")
    parser.add_argument("--rounds", type=int, default=50, help="calls per time (default 50)")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit(
            "This times GPU kernels, and torch sees no GPU here. `make test-triton` runs them on the CPU, in Triton's "
            "interpreter, and tests/losses/test_triton_compiled.py compiles them for GPUs that are not here."
        )
    bandwidth = arguments.bandwidth * 1e9 if arguments.bandwidth else measured_bandwidth(arguments.rounds)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {bandwidth / 1e9:.0f} GB per second\n")
    print("| logits | dtype | MB | roofline us | triton us | of the roofline | torch us | F.cross_entropy us |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for shape in SHAPES:
        for dtype in DTYPES:
            print(row(shape, dtype, bandwidth, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
