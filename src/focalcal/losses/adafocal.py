"""AdaFocal: a gamma for each confidence bin, steered by the calibration gap measured on validation data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from focalcal.core.arrays import as_array
from focalcal.core.binning import bin_sums, equal_mass_edges, equal_width_edges
from focalcal.core.checks import on_simplex, whole_number
from focalcal.losses.checks import finite_at_least, holds_probabilities, labels_in_range, vector
from focalcal.losses.engines import focal_family
from focalcal.losses.formula import Terms
from focalcal.losses.module import CommonOptions, FocalFamilyLoss
from focalcal.losses.settings import Setting, not_negative
from focalcal.losses.targets import refuse_probabilities
from focalcal.losses.torch_state import traced


def adafocal(
    logits: Tensor, labels: Tensor, *, edges: Tensor | Sequence[float], gammas: Tensor | Sequence[float]
) -> Tensor:
    """-(1 - p_y)^g log p_y of each example, or -(1 + p_y)^|g| log p_y where g < 0.

    g is the gamma of the bin [lo, hi) that holds p_y (the first open below, the last above) and carries no gradient.
    Ghosh et al. (2022), "AdaFocal: calibration-aware adaptive focal loss"; the reference's 1e-20 inside the power is
    not needed, 1 - p_y being a sum here.

    Args:
        logits: (N, K) or (N, K, d1, ...).
        labels: class indices, (N, d1, ...).
        edges: (B + 1,), rising, of the bins of p_y.
        gammas: (B,), one per bin, of either sign.

    Returns:
        One value per example, (N, d1, ...).

    >>> import torch
    >>> adafocal(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([0]), edges=[0.0, 0.5, 1.0], gammas=[1.0, 3.0])
    tensor([0.0420])
    """
    edges, gammas = vector("edges", edges), vector("gammas", gammas)
    if len(edges) != len(gammas) + 1:
        raise ValueError(
            f"edges must have one entry more than gammas, got {tuple(edges.shape)} and {tuple(gammas.shape)}"
        )
    if not traced() and not bool((edges.diff() >= 0).all()):
        raise ValueError(f"edges must not fall, got {edges.tolist()}; sort them")
    return focal_family(logits, labels, Terms(edges=edges, gammas=gammas), reduction="none")


class AdaFocalLoss(FocalFamilyLoss):
    """AdaFocal. Call `update(probs, labels)` or `update(logits=logits, labels=labels)` after each validation pass.

    `gammas` and `edges` are its state, buffers that `state_dict` saves. Log `loss.gammas.tolist()` after each update
    for their history. Bins are known by their index, although their edges move.

    Args:
        bins: how many confidence bins.
        gamma_init: every bin's gamma at the start, when the bins are of equal width.
        step: the rate in gamma <- gamma exp(+-step * gap).
        switch: a gamma that falls below this in size changes sign: focal becomes inverse-focal and back.
        gamma_min: the lowest gamma. The method's text names none; its code uses -2, the FCL paper -20. Below
            -3.6 the inverse-focal loss is not monotone in p_y and can push the true class down.
        gamma_max: the highest gamma.
        weight, ignore_index, reduction: as in every loss.

    >>> loss = AdaFocalLoss(bins=1)
    >>> loss.update(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
    >>> loss.gammas  # over-confident by 0.4: times exp(0.4)
    tensor([1.4918])
    """

    step = Setting[float](not_negative)
    switch = Setting[float](not_negative)
    gamma_min = Setting[float](partial(finite_at_least, lowest=-1000.0))
    gamma_max = Setting[float](partial(finite_at_least, lowest=-1000.0))
    edges: Tensor
    gammas: Tensor

    def __init__(
        self,
        bins: int = 15,
        gamma_init: float = 1.0,
        step: float = 1.0,
        switch: float = 0.2,
        gamma_min: float = -20.0,
        gamma_max: float = 20.0,
        **common: Unpack[CommonOptions],
    ) -> None:
        bins = whole_number("bins", bins, least=1, most=1_000_000, remedy="15 is usual")
        super().__init__(step=step, switch=switch, gamma_min=gamma_min, gamma_max=gamma_max, **common)
        finite_at_least("gamma_max", gamma_max, self.gamma_min)
        initial = finite_at_least("gamma_init", gamma_init, self.gamma_min)
        if initial > self.gamma_max:
            raise ValueError(f"gamma_init must be at most gamma_max = {self.gamma_max:g}, got {gamma_init!r}")
        self.register_buffer("edges", torch.from_numpy(equal_width_edges(bins)).float())
        self.register_buffer("gammas", torch.full((bins,), initial))

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The reduced loss, with the present gammas."""
        terms = Terms(edges=self._buffers["edges"], gammas=self._buffers["gammas"])
        weight = self._buffers["weight"]
        return focal_family(logits, target, terms, weight, self.ignore_index, self.reduction, self.engine)

    @torch.no_grad()
    def update(self, probs: Any = None, labels: Any = None, *, logits: Any = None) -> None:
        """Set bins and gammas from validation probabilities or logits, (N, K) or (N, K, d1, ...), and class indices.

        Tensors, or NumPy arrays as `Predictions` hold them.

        Bins of equal mass over the top-label confidence; per bin gap = mean confidence - accuracy, and
        gamma <- gamma exp(step gap) if gamma > 0 else gamma exp(-step gap), then the switch of sign, then the
        limits. Over-confidence raises gamma.

        Under `torch.distributed` every process must call this, each with its own rows, which may be none. All of them
        are gathered, so that every process gets the gammas that one process with all rows would get. Processes that
        all have the same rows, because each has evaluated the whole split, count as one.
        """
        name, scores = ("logits", logits) if probs is None else ("probs", probs)
        if labels is None or scores is None or (probs is not None and logits is not None):
            raise TypeError("update must be given labels and either probs or logits; call update(probs, labels)")
        scores, labels = (
            torch.from_numpy(given) if isinstance(given, np.ndarray) else given for given in (scores, labels)
        )
        refuse_probabilities("AdaFocalLoss.update", labels)
        holds_probabilities(scores, labels, None)
        if scores.dim() < 2:
            raise ValueError(f"{name} must be (N, K) or (N, K, d1, ...), got shape {tuple(scores.shape)}")
        probs = scores if logits is None else torch.softmax(scores.double(), 1)
        labels = labels.long()
        labels_in_range(labels, probs.shape[1], self.ignore_index)
        keep = labels != self.ignore_index
        labels, probs = labels[keep], probs.movedim(1, -1)[keep]
        on_simplex(name, as_array(name, probs))
        confidence, predicted = probs.double().max(1)
        confidence, right = _of_all_processes(confidence, predicted == labels)
        if not len(right):
            raise ValueError("labels must hold at least one example that is not ignored, got none")
        rows = as_array(name, confidence)
        edges = equal_mass_edges(rows, self.gammas.numel())
        gap = torch.from_numpy(bin_sums(rows, as_array("right", right), edges).gap)
        gammas = self.gammas.double()
        gammas = gammas * torch.exp(self.step * gap.to(gammas.device) * torch.where(gammas > 0, 1.0, -1.0))
        small = gammas.abs() < self.switch
        gammas = torch.where(small, self.switch * torch.where(gammas > 0, -1.0, 1.0).to(gammas), gammas)
        self.gammas.copy_(gammas.clamp(self.gamma_min, self.gamma_max))
        self.edges.copy_(torch.from_numpy(edges))

    def extra_repr(self) -> str:
        """How many bins, then the settings; the state is in `gammas` and `edges`."""
        return f"bins={self.gammas.numel()}, {super().extra_repr()}"


def _of_all_processes(confidence: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of every process of `torch.distributed`, in the order of their ranks; these alone without a group."""
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return confidence, right
    parts: list[tuple[Tensor, Tensor]] = [(confidence, right)] * dist.get_world_size()
    dist.all_gather_object(parts, (confidence.cpu(), right.cpu()))
    first = parts[0]
    if all(torch.equal(part[0], first[0]) and torch.equal(part[1], first[1]) for part in parts):
        return first  # a validation set that each process has evaluated whole
    return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])
