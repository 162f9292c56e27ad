"""What does an objective cost beside cross-entropy?

    python benchmarks/loss_cost.py [--seconds S] [--rounds N] [--threads N ...] [--json FILE]

Forward + backward of every objective relative to `F.cross_entropy`, in one process. A round times each of them
once, in random order, over as many calls as take five milliseconds; the medians over rounds are divided. One
thread is timed by its CPU time, two threads by the wall clock. `F.cross_entropy` runs a second time in each
round: how far that control is from 1.00 is how far the machine's noise reaches. Then each objective's share of
a ResNet-20 training step. `torch.compile` means its default backend, and needs a C++ compiler.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from focalcal import _native
from focalcal.losses import LOSSES

SHAPES = [(128, 10), (128, 100), (128, 200), (128, 1000), (1024, 1000), (64, 32000), (4, 21, 128, 128)]
SINGLE_LABEL = [name for name in LOSSES if not name.startswith("multilabel")]
IN_PART = ("mmce", "bsce_gra")  # natively: the rest is made of torch operations
NATIVE = [name for name in SINGLE_LABEL if name not in IN_PART]
TARGETS = {  # (objective, engine): what to reach on one thread
    ("fcl", "native"): "<= 1.0 everywhere, <= 0.6 from 128x1000 up",
    ("focal", "native"): "<= 1.0 everywhere, <= 0.6 from 128x1000 up",
    ("fcl", "torch"): "<= 5 at the small shapes, <= 2.5 from 1024x1000 up",
    ("focal", "torch"): "<= 5 at the small shapes, <= 2.5 from 1024x1000 up",
}

Step = Callable[[], None]


def forward_backward(loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, labels: Tensor) -> Step:
    def step() -> None:
        logits.grad = None
        loss(logits, labels).backward()

    return step


@cache
def compiled_fcl() -> Callable[[Tensor, Tensor], Tensor]:
    """One for all shapes, which it is compiled for but once per number of dimensions and threads."""
    return torch.compile(LOSSES["fcl"](), fullgraph=True, dynamic=True)


def contenders(logits: Tensor, labels: Tensor) -> dict[tuple[str, str], Step]:
    """Cross-entropy first, every objective on every engine it has, cross-entropy again last."""
    steps = {("F.cross_entropy", ""): forward_backward(F.cross_entropy, logits, labels)}
    for name in SINGLE_LABEL:
        for engine in ("native", "torch") if name in NATIVE and _native.available() else ("torch",):
            module = LOSSES[name]()
            if name in NATIVE:
                module.engine = engine
            steps[name, engine] = forward_backward(module, logits, labels)
    steps["fcl", "torch.compile"] = forward_backward(compiled_fcl(), logits, labels)
    steps["control", ""] = forward_backward(F.cross_entropy, logits, labels)
    return steps


def ratios(
    steps: dict[tuple[str, str], Step], seconds: float, clock: Callable[[], int]
) -> dict[tuple[str, str], float]:
    """Median time of each step over that of the first, rounds interleaved for about `seconds`."""
    first = next(iter(steps))
    for step in steps.values():
        step()
    begin = time.perf_counter()
    for _ in range(10):
        steps[first]()
    calls = max(1, round(0.005 / ((time.perf_counter() - begin) / 10)))
    times: dict[tuple[str, str], list[int]] = {key: [] for key in steps}
    order = list(steps)
    shuffle = random.Random(0).shuffle
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[first]) < 15:
        shuffle(order)
        for key in order:
            step = steps[key]
            start = clock()
            for _ in range(calls):
                step()
            times[key].append(clock() - start)
    base = statistics.median(times[first])
    return {key: statistics.median(values) / base for key, values in times.items()}


def shape_table(threads: int, seconds: float) -> dict[str, dict[tuple[str, str], float]]:
    torch.set_num_threads(threads)
    clock = time.thread_time_ns if threads == 1 else time.perf_counter_ns
    table = {}
    for shape in SHAPES:
        torch.manual_seed(0)
        logits = torch.randn(shape, requires_grad=True)
        labels = torch.randint(0, shape[1], (shape[0], *shape[2:]))
        table["x".join(map(str, shape))] = ratios(contenders(logits, labels), seconds, clock)
    return table


def print_table(table: dict[str, dict[tuple[str, str], float]]) -> None:
    print("| objective | engine |" + "".join(f" {shape} |" for shape in table))
    print("|---|---|" + "---:|" * len(table))
    for key in next(iter(table.values())):
        if key != ("F.cross_entropy", ""):
            print(f"| {key[0]} | {key[1]} |" + "".join(f" {table[shape][key]:.2f} |" for shape in table))


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)])
        self.short = nn.Conv2d(inside, outside, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        inner = self.norms[0](self.first(images)).relu()
        return (self.norms[1](self.second(inner)) + self.short(images)).relu()


def resnet20(classes: int) -> nn.Module:
    widths = [(16, 16, 1)] * 3 + [(16, 32, 2)] + [(32, 32, 1)] * 2 + [(32, 64, 2)] + [(64, 64, 1)] * 2
    stem = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes)]
    return nn.Sequential(*stem, *[Block(*width) for width in widths], *head)


def step_shares(rounds: int) -> dict[tuple[str, str], tuple[float, float]]:
    """(time of a training step over cross-entropy's, share of the step spent in the loss), one thread."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = resnet20(10)
    optimiser = torch.optim.SGD(network.parameters(), lr=1e-6, momentum=0.9)
    images, labels = torch.randn(128, 3, 32, 32), torch.randint(0, 10, (128,))
    losses: dict[tuple[str, str], Callable[[Tensor, Tensor], Tensor]] = {("F.cross_entropy", ""): F.cross_entropy}
    for name in SINGLE_LABEL:
        losses[name, "native" if name in NATIVE and _native.available() else "torch"] = LOSSES[name]()
    whole: dict[tuple[str, str], list[int]] = {key: [] for key in losses}
    alone: dict[tuple[str, str], list[int]] = {key: [] for key in losses}
    for turn in range(rounds + 1):
        for key, loss in losses.items():
            begin = time.thread_time_ns()
            optimiser.zero_grad()
            logits = network(images)
            leaf = logits.detach().requires_grad_()
            start = time.thread_time_ns()
            loss(leaf, labels).backward()
            spent = time.thread_time_ns() - start
            logits.backward(leaf.grad)
            optimiser.step()
            if turn:  # the first round warms the caches
                whole[key].append(time.thread_time_ns() - begin)
                alone[key].append(spent)
    medians = {key: statistics.median(values) for key, values in whole.items()}
    base = medians["F.cross_entropy", ""]
    return {key: (medians[key] / base, statistics.median(alone[key]) / medians[key]) for key in losses}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0, help="time for each shape (default 6)")
    parser.add_argument("--rounds", type=int, default=8, help="ResNet-20 steps for each objective (default 8)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads (default 1 2)")
    parser.add_argument("--json", type=Path, help="write the numbers here as well")
    arguments = parser.parse_args()
    print(f"torch {torch.__version__}, instruction sets {_native.instruction_sets()}\n")
    tables = {threads: shape_table(threads, arguments.seconds) for threads in arguments.threads}
    for threads, table in tables.items():
        clock = "one thread, CPU time" if threads == 1 else f"{threads} threads, wall clock"
        print(f"forward + backward / F.cross_entropy, {clock}\n")
        print_table(table)
        print()
    print("to reach, one thread:")
    for (name, engine), target in TARGETS.items():
        reached = [row[name, engine] for row in tables.get(1, {}).values() if (name, engine) in row]
        print(f"  {name} {engine}: {target}; measured {' '.join(f'{ratio:.2f}' for ratio in reached) or '-'}")
    shares = step_shares(arguments.rounds)
    print("\nResNet-20 training step, batch 128, 32x32 images, one thread\n")
    print("| objective | engine | step / cross-entropy's | share of the step |\n|---|---|---:|---:|")
    for key, (ratio, share) in shares.items():
        print(f"| {key[0]} | {key[1]} | {ratio:.3f} | {100 * share:.2f} % |")
    if arguments.json:
        flat = {
            "threads": {
                threads: {shape: {" ".join(k): v for k, v in row.items()} for shape, row in table.items()}
                for threads, table in tables.items()
            },
            "resnet20_step": {" ".join(k): v for k, v in shares.items()},
        }
        arguments.json.write_text(json.dumps(flat, indent=1))


if __name__ == "__main__":
    main()
