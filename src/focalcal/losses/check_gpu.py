"""Do the Triton kernels compute on this GPU what torch computes?

    python -m focalcal.losses.check_gpu

Every loss that they serve, by engine="triton" and by the differentiable formula in float64 on the same device: the
largest error of the loss and of its gradient, relative to the largest entry, and the time of a forward and a backward
pass by Triton and by torch operations. Ends with status 1 if an error is larger than the dtype explains.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import product

import torch
from torch import Tensor

from focalcal.losses import LOSSES, FocalCalibrationLoss
from focalcal.losses.engines import Engine
from focalcal.losses.module import FocalFamilyLoss
from focalcal.losses.triton_launch import kernels

ENGINES: tuple[Engine, ...] = ("triton", "torch")
SHAPES = [(128, 10), (4096, 1000), (256, 32000), (4, 21, 64, 64)]
# Of single precision some units in the last place add up; half precision rounds the gradient once.
TOLERANCES = {torch.float64: 1e-11, torch.float32: 1e-5, torch.bfloat16: 2.0**-7, torch.float16: 2.0**-9}
NO_GPU = (
    "This runs the Triton kernels on a GPU, and torch sees none here: torch.cuda.is_available() is False. Run it where "
    "there is one; TRITON_INTERPRET=1 runs them on the CPU, in Triton's interpreter."
)


def losses() -> dict[str, FocalFamilyLoss]:
    """Every loss of the table that the kernels serve, and Focal Calibration Loss with each of its options."""
    named = {name: loss() for name, loss in LOSSES.items() if issubclass(loss, FocalFamilyLoss)}
    named["fcl, matched"] = FocalCalibrationLoss(scale="matched")
    named["fcl, smoothed"] = FocalCalibrationLoss(label_smoothing=0.1)
    named["fcl, sum"] = FocalCalibrationLoss(reduction="sum")
    named["fcl, none"] = FocalCalibrationLoss(reduction="none")
    return named


def by_engine(loss: FocalFamilyLoss, engine: Engine, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The loss and the gradient of its sum."""
    loss.engine = engine
    leaf = logits.detach().requires_grad_()
    value = loss(leaf, labels)
    return value.detach(), torch.autograd.grad(value.sum(), leaf)[0]


def relative_error(found: Tensor, expected: Tensor) -> float:
    """The largest difference over the largest entry; NaN if there is one."""
    return float((found.double() - expected).abs().max() / expected.abs().max())


def microseconds(step: Callable[[], object], device: str) -> float:
    """The median time of a call, waited for; of one call where Triton's interpreter would take seconds."""
    wait: Callable[[], object] = torch.cuda.synchronize if device == "cuda" else int
    times = []
    for _ in range(20 if device == "cuda" else 1):
        wait()
        begin = time.perf_counter()
        step()
        wait()
        times.append(1e6 * (time.perf_counter() - begin))
    return statistics.median(times)


def compare(name: str, loss: FocalFamilyLoss, shape: tuple[int, ...], dtype: torch.dtype, device: str) -> bool:
    """Print one row; whether both errors are within the tolerance."""
    generator = torch.Generator().manual_seed(0)
    logits = (3 * torch.randn(shape, generator=generator)).to(device, dtype)
    labels = torch.randint(0, shape[1], (shape[0], *shape[2:]), generator=generator).to(device)
    labels.view(-1)[1] = loss.ignore_index
    expected = by_engine(loss, "formula", logits.double(), labels)
    found = by_engine(loss, "triton", logits, labels)
    errors = [relative_error(*pair) for pair in zip(found, expected, strict=True)]
    right = all(error <= TOLERANCES[dtype] for error in errors)
    times = [microseconds(partial(by_engine, loss, engine, logits, labels), device) for engine in ENGINES]
    cells = [name, "x".join(map(str, shape)), str(dtype).removeprefix("torch."), *(f"{error:.1e}" for error in errors)]
    print(f"| {' | '.join(cells)} | {times[0]:.0f} | {times[1]:.0f} | {'' if right else 'WRONG'} |", flush=True)
    return right


def check(device: str, shapes: list[tuple[int, ...]], dtypes: list[torch.dtype]) -> bool:
    """Whether all of them agree; prints a table on the way."""
    print("| loss | logits | dtype | error of the loss | of the gradient | triton us | torch us | |")
    print("|---|---|---|---:|---:|---:|---:|---|")
    named = losses()
    for loss in named.values():
        loss.to(device)
    cases = product(named.items(), shapes, dtypes)
    rights = [compare(name, loss, shape, dtype, device) for (name, loss), shape, dtype in cases]
    print(f"\n{sum(rights)} of {len(rights)} agree with torch.")
    return all(rights)


def main() -> int:
    """Compare on the GPU, or interpreted; the exit status."""
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    if not torch.cuda.is_available() and not interpreted:
        print(NO_GPU, file=sys.stderr)
        return 2
    kernels()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    where = torch.cuda.get_device_name() if device == "cuda" else "Triton's interpreter on the CPU"
    print(f"{where}, torch {torch.__version__}, triton {sys.modules['triton'].__version__}\n")
    right = check(device, SHAPES if device == "cuda" else [(8, 10), (2, 5, 3, 2)], [*TOLERANCES])
    print("Please put all of this into an issue of the project's tracker: the kernels have run on few GPUs.")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
