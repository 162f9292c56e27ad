"""What an objective costs on the device at hand: alone, and within a training step. The paper's section 7.4.

A round times every contender once, in random order, and torch's cross-entropy once more at its end: how far that
control is from 1 is how far the noise of the machine reaches. A ratio is the median over rounds of the time over
cross-entropy's in the same round, so that a machine that slows down for a while slows down both. Everything is called
before anything is timed, and a device that works on its own is waited for on both sides of what is timed.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from statistics import median

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from focalcal.core.checks import one_of, positive, whole
from focalcal.lab.models import MODEL_INFO, build_model
from focalcal.lab.training.determinism import possible_threads
from focalcal.losses import LOSSES

BASELINE, CONTROL = "cross-entropy", "cross-entropy again"
OBJECTIVES = tuple(name for name in LOSSES if not name.startswith("multilabel"))
MODELS = tuple(name for name, info in MODEL_INFO.items() if info.shape is not None and not info.multilabel)
# Times and peaks of memory over cross-entropy's that the paper prints: A100, batches of 128, 10 classes; a step is
# ResNet-50's. Of its control it prints only how well it agrees.
PAPER_LOSS = {BASELINE: 1.0, "focal": 3.2, "mmce": 5.0, "fcl": 4.9}
PAPER_STEP = {BASELINE: 1.0, "fcl": 1.016}
PAPER_STEP_MEMORY = {BASELINE: 1.0, "fcl": 0.999}
_SHORTEST = 0.002  # seconds: what is quicker is called several times
_FEWEST_ROUNDS = 3
Call = Callable[[], None]


@dataclass(frozen=True)
class Timing:
    """One contender: median seconds of a call, its median ratio to the baseline's, and its peak of allocated bytes.

    Memory is None where the device does not tell.
    """

    name: str
    seconds: float
    ratio: float
    memory: int | None
    memory_ratio: float | None


@dataclass(frozen=True)
class Overhead:
    """`loss`: forward and backward of the loss alone; `step`: a whole training step. Cross-entropy first and last."""

    device: str
    model: str
    batch: int
    classes: int
    threads: int
    rounds: tuple[int, int]
    loss: tuple[Timing, ...]
    step: tuple[Timing, ...]


def overhead(
    *,
    model: str = "resnet8",
    batch: int = 128,
    classes: int = 10,
    objectives: Sequence[str] = OBJECTIVES,
    device: str = "cpu",
    threads: int = 1,
    seconds: float = 40.0,
    progress: Callable[[float, float], None] | None = None,
) -> Overhead:
    """Time every objective for about `seconds`, a fifth of them for the losses alone; at least three rounds of each."""
    one_of("model", model, MODELS)
    for name in objectives:
        one_of("objectives", name, OBJECTIVES)
    batch, classes = whole("batch", batch, 2), whole("classes", classes, 2)
    threads, seconds = possible_threads(threads), positive("seconds", seconds)
    place = torch.device(device)
    tell = progress or (lambda done, of: None)
    with _torch_threads(threads):
        alone, first = _time_rounds(
            _losses(objectives, batch, classes, place), place, seconds / 5, lambda t: tell(t, seconds)
        )
        steps = _steps(objectives, model, batch, classes, place)
        whole_step, second = _time_rounds(steps, place, seconds * 0.8, lambda t: tell(seconds / 5 + t, seconds))
    tell(seconds, seconds)
    return Overhead(_name(place), model, batch, classes, threads, (first, second), alone, whole_step)


@contextmanager
def _torch_threads(count: int) -> Iterator[None]:
    """Within it torch computes with so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class _Contender:
    clear: Call  # frees the gradients
    work: Call
    held: int  # bytes that are allocated between the two

    def call(self) -> None:
        self.clear()
        self.work()

    def peak(self, device: torch.device) -> int | None:
        self.clear()
        return peak_bytes(self.work, self.held, device)


def _modules(objectives: Sequence[str], device: torch.device) -> dict[str, nn.Module]:
    chosen = {BASELINE: nn.CrossEntropyLoss(), **{name: LOSSES[name]() for name in objectives}}
    return {name: module.to(device) for name, module in {**chosen, CONTROL: nn.CrossEntropyLoss()}.items()}


def _losses(objectives: Sequence[str], batch: int, classes: int, device: torch.device) -> dict[str, _Contender]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(batch, classes, generator=generator).to(device).requires_grad_()
    labels = torch.randint(classes, (batch,), generator=generator).to(device)

    def contender(loss: nn.Module) -> _Contender:
        def clear() -> None:
            logits.grad = None

        return _Contender(clear, lambda: loss(logits, labels).backward(), logits.nbytes + labels.nbytes)

    return {name: contender(loss) for name, loss in _modules(objectives, device).items()}


def _steps(
    objectives: Sequence[str], model: str, batch: int, classes: int, device: torch.device
) -> dict[str, _Contender]:
    generator = torch.Generator().manual_seed(0)
    shape = MODEL_INFO[model].shape
    assert shape is not None
    network = build_model(model, classes=classes).to(device).train()
    tokens = MODEL_INFO[model].inputs == "tokens"
    made = torch.randint(1, 1000, (batch, *shape), generator=generator) if tokens else None
    inputs = (torch.randn(batch, *shape, generator=generator) if made is None else made).to(device)
    labels = torch.randint(classes, (batch,), generator=generator).to(device)
    trained = [weight for weight in network.parameters() if weight.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=1e-4, momentum=0.9)
    tensors: list[Tensor] = [*network.parameters(), *network.buffers(), *trained, inputs, labels]  # with the momentum
    held = sum(tensor.nbytes for tensor in tensors)

    def contender(loss: nn.Module) -> _Contender:
        def work() -> None:
            loss(network(inputs), labels).backward()
            optimizer.step()

        return _Contender(optimizer.zero_grad, work, held)

    return {name: contender(loss) for name, loss in _modules(objectives, device).items()}


def _time_rounds(
    contenders: dict[str, _Contender], device: torch.device, seconds: float, tell: Callable[[float], None]
) -> tuple[tuple[Timing, ...], int]:
    """A timing of each contender, and the number of rounds."""
    begin = time.perf_counter()
    for contender in contenders.values():
        contender.call()
    calls = max(1, round(_SHORTEST / _call_seconds(contenders[BASELINE].call, 1, device)))
    # afterwards the first tensors of every kind are there, such as the momentum
    memory = {name: contender.peak(device) for name, contender in contenders.items()}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    order = [name for name in contenders if name != CONTROL]
    shuffle = random.Random(0).shuffle
    while time.perf_counter() - begin < seconds or len(times[CONTROL]) < _FEWEST_ROUNDS:
        shuffle(order)
        for name in (*order, CONTROL):
            times[name].append(_call_seconds(contenders[name].call, calls, device))
            measured = sum(map(len, times.values())) / (_FEWEST_ROUNDS * len(times))
            tell(seconds * min((time.perf_counter() - begin) / seconds, measured, 1.0))
    return tuple(_timing(name, times, memory) for name in contenders), len(times[CONTROL])


def _timing(name: str, times: dict[str, list[float]], memory: dict[str, int | None]) -> Timing:
    used, first = memory[name], memory[BASELINE]
    ratio = None if used is None or not first else used / first
    return Timing(name, median(times[name]), median_ratio(times[name], times[BASELINE]), used, ratio)


def median_ratio(times: Sequence[float], baseline: Sequence[float]) -> float:
    """Of the times over the baseline's, round by round.

    >>> median_ratio([2.0, 4.0, 40.0], [1.0, 2.0, 20.0])
    2.0
    """
    return median(time / other for time, other in zip(times, baseline, strict=True))


def _call_seconds(call: Call, calls: int, device: torch.device) -> float:
    _wait(device)
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    _wait(device)
    return (time.perf_counter() - begin) / calls


def _wait(device: torch.device) -> None:
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def _name(device: torch.device) -> str:
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return f"{device.type}, {torch.backends.cpu.get_cpu_capability()}" if device.type == "cpu" else device.type


def peak_bytes(call: Callable[[], object], held: int, device: torch.device) -> int | None:
    """Bytes allocated at the peak; None where the device does not tell.

    A GPU's allocator keeps count. A processor's does not, but the profiler sees every allocation: the highest of their
    running sums is added to `held`, what is known to be allocated before the call. The call should free nothing that
    it did not allocate.
    """
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        call()
        torch.cuda.synchronize(device)
        return int(torch.cuda.max_memory_allocated(device))
    if device.type != "cpu":
        return None
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else the profiler writes two lines to stderr for every use
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        call()
    results = getattr(recorded.profiler, "kineto_results", None)
    if results is None:
        return None
    changes = sorted((event.start_ns(), event.nbytes()) for event in results.events() if event.name() == "[memory]")
    return held + int(max(accumulate((size for _, size in changes), initial=0)))
