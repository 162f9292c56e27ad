"""The torchmetrics adapters with the functions they stand for, and a process group that runs them all."""

from __future__ import annotations

import pickle
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from focalcal import metrics as functions
from focalcal.integrations import torchmetrics as adapters

K, L = 4, 3
SINGLE: dict[str, tuple[Any, Any]] = {
    metric.adapter: (partial(getattr(adapters, metric.adapter), K), metric)
    for metric in functions.METRICS.values()
    if metric.adapter
}
SINGLE |= {
    "ECE in 7 bins": (partial(adapters.ECE, K, n_bins=7), partial(functions.ece, n_bins=7)),
    "DebiasedECE l2": (partial(adapters.DebiasedECE, K, norm="l2"), partial(functions.debiased_ece, norm="l2")),
    "TopKAccuracy": (partial(adapters.TopKAccuracy, K, k=2), partial(functions.top_k_accuracy, k=2)),
}
MULTI: dict[str, tuple[Any, Any]] = {
    f"Multilabel{entry.metric.adapter}": (partial(getattr(adapters, f"Multilabel{entry.metric.adapter}"), L), entry)
    for entry in functions.MULTILABEL_METRICS.values()
    if entry.metric.source.holds == "bins"
}


def single_label(rows: int = 203, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Overconfident logits (rows, K) and labels."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(rows, K, generator=generator, dtype=torch.float64)
    return logits, (logits / 2).softmax(1).multinomial(1, generator=generator).squeeze(1)


def multi_label(rows: int = 203, seed: int = 1) -> tuple[Tensor, Tensor]:
    """Logits (rows, L) and labels of 0 and 1."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(rows, L, generator=generator, dtype=torch.float64)
    return logits, (torch.rand(rows, L, generator=generator) < (logits / 3).sigmoid()).long()


def every_adapter() -> dict[str, tuple[Any, Tensor, Tensor]]:
    """Name -> factory, probabilities, labels."""
    logits, labels = single_label()
    made = {name: (make, logits.softmax(1), labels) for name, (make, _) in SINGLE.items()}
    made["CalibrationSummary"] = (partial(adapters.CalibrationSummary, K), logits.softmax(1), labels)
    logits, labels = multi_label()
    return made | {name: (make, logits.sigmoid(), labels) for name, (make, _) in MULTI.items()}


def run_rank(rank: int, world: int, folder: str) -> None:
    """What each of the processes does: every adapter on its rows in batches of 20, values to a file.

    The first two have every second row, the others none.
    """
    dist.init_process_group(
        "gloo",
        init_method=(Path(folder) / "meeting").as_uri(),
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=60),
    )
    values = {}
    for name, (make, probs, labels) in every_adapter().items():
        metric = make()
        mine = slice(rank, None, 2) if rank < 2 else slice(0, 0)
        for p, y in zip(probs[mine].split(20), labels[mine].split(20), strict=True):
            metric.update(p, y)
        values[name] = metric.compute()
        assert not metric._is_synced, name
    Path(folder, f"{rank}.pickle").write_bytes(pickle.dumps(values))
    dist.destroy_process_group()
