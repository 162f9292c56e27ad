"""About how long a cell takes, without loading data or allocating what the network computes."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import lru_cache
from statistics import median
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from focalcal.experiments.cells import recipe_of
from focalcal.experiments.data_sizes import crops, example_counts, input_shape
from focalcal.models import MODEL_INFO, build_model
from focalcal.results import Run, Spec, Store
from focalcal.training.recipe import Recipe

_BACKWARD = 3  # forward and backward cost about three times the forward pass
_MEASURED_SECONDS = 0.15
_LAYER_SECONDS = 1e-4  # what calling a layer, its gradient and its update costs whatever its size


class Work(NamedTuple):
    """Of a network: floating-point operations of a forward pass an example, and its layers."""

    operations: float
    layers: int


class Costs:
    """Estimates for many cells: the store is read once, each network counted once, the device measured once.

    A cell takes the median time of the stored runs with the same data set, network and training on such a device, if
    there are any. Else it is counted: operations of a forward pass x (3 x training examples + evaluated examples) x
    epochs, divided by the rate at which the device convolves, on one thread if it is a processor, plus 0.1 ms for each
    layer and step. That is within a factor of a few: caches, input and mixed precision are left out. Say "about".
    """

    def __init__(self, store: Store | None = None, device: str = "cpu") -> None:
        self._device = torch.device(device)
        self._runs: dict[tuple[str, str], list[Run]] = defaultdict(list)  # by data set and network
        for run in store.runs() if store is not None else ():
            seen = run.glance
            self._runs[seen["data_set"], seen["model"]].append(run)
        self._stored: dict[tuple[str, str], dict[str, list[float]]] = {}  # likewise, of those that were asked for

    def seconds(self, spec: Spec) -> float:
        """About how long the cell takes."""
        seen = self._seen(spec)
        return median(seen) if seen else self._counted(spec)

    def measured(self, spec: Spec) -> bool:
        """Whether the estimate comes from stored runs."""
        return bool(self._seen(spec))

    def _seen(self, spec: Spec) -> list[float]:
        pair = spec.data_set, spec.model
        if pair not in self._stored:
            self._stored[pair] = _stored_seconds(self._runs.get(pair, []), self._device)
        return self._stored[pair].get(_alike(spec.as_dict()), [])

    def _counted(self, spec: Spec) -> float:
        recipe = recipe_of(spec)
        work = network_work(recipe)
        counts = example_counts(recipe, spec.protocol)
        evaluations = -(-recipe.epochs // spec.protocol.evaluate_every)
        evaluated = (counts.val + counts.test * crops(recipe)) * evaluations + counts.shifted
        examples = _BACKWARD * counts.train * recipe.epochs + evaluated
        steps = -(-counts.train // recipe.batch_size) * recipe.epochs
        return work.operations * examples / _rate(self._device) + steps * work.layers * _LAYER_SECONDS


def estimated_seconds(spec: Spec, store: Store | None = None, device: str = "cpu") -> float:
    """About how long one cell takes; see `Costs`, which is quicker for many."""
    return Costs(store, device).seconds(spec)


def network_work(recipe: Recipe) -> Work:
    """The work of the recipe's network, counted on the meta device, where a tensor has a shape and no content."""
    return _work(recipe.model, recipe.classes, _build_options(recipe), input_shape(recipe))


@lru_cache(maxsize=256)
def _work(model: str, classes: int, options: tuple[tuple[str, Any], ...], shape: tuple[int, ...]) -> Work:
    kind = torch.long if MODEL_INFO[model].inputs == "tokens" else torch.float32
    with torch.device("meta"):
        network = build_model(model, classes=classes, **dict(options)).eval()
        batch = torch.empty((1, *shape), dtype=kind)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network(batch)
    layers = sum(1 for one in network.modules() if next(one.children(), None) is None)
    return Work(float(counter.get_total_flops()), layers)


def _build_options(recipe: Recipe) -> tuple[tuple[str, Any], ...]:
    chosen = {name: value for name, value in dict(recipe.model_options).items() if name != "train_embedding"}
    if recipe.word_vectors and (width := re.search(r"(\d+)d$", recipe.word_vectors)):
        chosen["dimension"] = int(width[1])
    return tuple(sorted(chosen.items()))


@lru_cache(maxsize=8)
def _rate(device: torch.device) -> float:
    """Floating-point operations a second of a 3x3 convolution; measured once a process."""
    width = 64 if device.type == "cpu" else 256
    layer = nn.Conv2d(width, width, 3, padding=1, bias=False, device=device)
    batch = torch.randn(16, width, 16, 16, device=device)
    operations = 2 * 9 * width**2 * batch[:, 0].numel()
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)  # as the cells have
        with torch.no_grad():
            return operations / _seconds_of(lambda: layer(batch), device)
    finally:
        torch.set_num_threads(threads)


def _seconds_of(call: Callable[[], object], device: torch.device) -> float:
    times: list[float] = []
    call()
    end = time.perf_counter() + _MEASURED_SECONDS
    while time.perf_counter() < end or len(times) < 3:
        begin = time.perf_counter()
        call()
        if device.type != "cpu":
            torch.accelerator.synchronize(device)
        times.append(time.perf_counter() - begin)
    return median(times)


def _stored_seconds(runs: Iterable[Run], device: torch.device) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        machine = run.record.get("provenance", {}).get("machine", {})
        on = str(machine.get("device", "cpu")).split(":")[0]
        seconds = run.record.get("seconds")
        if on == device.type and isinstance(seconds, int | float) and seconds > 0:
            found[_alike(dict(run.settings))].append(float(seconds))
    return dict(found)


def _alike(settings: dict[str, Any]) -> str:
    """What cells that take equally long have in common."""
    protocol = {name: value for name, value in settings["protocol"].items() if name not in ("keep_weights", "saliency")}
    return repr([settings["data_set"], settings["model"], _sorted(settings["training"]), _sorted(protocol)])


def _sorted(value: Any) -> Any:
    """The same for equal values, whatever their order and whether 2 is written 2.0."""
    if isinstance(value, dict):
        return sorted((key, _sorted(one)) for key, one in value.items())
    if isinstance(value, list):
        return [_sorted(one) for one in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
