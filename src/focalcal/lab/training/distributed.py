"""Several processes on one run, as `torchrun` starts them: each takes a share of every batch.

Every process computes the loss of the *whole* batch from the logits of all, and its gradient with respect to its own
logits; the sum over the processes is the gradient that one process would have had. That holds for every loss, for
shares of different sizes and for losses of the batch as a whole (MMCE), up to the rounding of the sum.

Batch norm is the exception: its statistics are of a process's own share on the CPU (the running ones are those of the
first process), and of the whole batch on GPUs, where every batch norm becomes a `SyncBatchNorm`.
"""

from __future__ import annotations

import atexit
import os
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

# The first process evaluates, or waits for its turn, while the others wait for it: longer than torch's ten minutes.
# That one of them has died is found out by torchrun, not by this.
_PATIENCE = timedelta(days=1)


def shard(count: int, rank: int, processes: int) -> slice:
    """The rows of a batch of `count` that process `rank` takes: consecutive, sizes differing by one at most."""
    return slice(rank * count // processes, (rank + 1) * count // processes)


@dataclass(frozen=True)
class Processes:
    """Those that share this run: how many, which of them this is, and where it computes."""

    device: torch.device
    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the one that writes files and reports."""
        return self.rank == 0

    def share(self, count: int) -> slice:
        """This process's rows of `count`."""
        return shard(count, self.rank, self.size)

    def wrapped(self, network: nn.Module) -> nn.Module:
        """The network to train with: itself, or in DDP, which averages the gradients."""
        if self.size == 1:
            return network
        ids = [self.device.index] if self.device.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(network, device_ids=ids)

    def whole(self, own: Tensor, count: int) -> Tensor:
        """The rows of all processes in order, `count` in all; only this process's own carry a gradient."""
        if self.size == 1:
            return own
        longest = -(-count // self.size)
        padded = own.new_zeros(longest, *own.shape[1:])
        padded[: len(own)] = own.detach()
        parts = [torch.empty_like(padded) for _ in range(self.size)]
        dist.all_gather(parts, padded)
        shares = [shard(count, rank, self.size) for rank in range(self.size)]
        rows = [part[: share.stop - share.start] for part, share in zip(parts, shares, strict=True)]
        rows[self.rank] = own
        return torch.cat(rows)

    def same_buffers(self, network: nn.Module) -> None:
        """Give every process the first one's buffers: batch norm's running statistics."""
        if self.size > 1:
            for buffer in network.buffers():
                dist.broadcast(buffer, 0)

    def from_first(self, value: Any) -> Any:
        """What the first process has, in all of them."""
        if self.size == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, 0, device=self.device)
        return box[0]


def joined_processes(device: str | torch.device) -> Processes:
    """This process alone, or all that `torchrun` (or the caller's own process group) has started.

    With several, "cuda" means the GPU of LOCAL_RANK. A group that is made here stays until the program ends, since
    it cannot be made twice under one `torchrun`.
    """
    place = torch.device(device)
    if not dist.is_available() or (not dist.is_initialized() and int(os.environ.get("WORLD_SIZE", "1")) == 1):
        return Processes(place)
    if place.type == "cuda" and place.index is None:
        place = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    if not dist.is_initialized():
        dist.init_process_group("nccl" if place.type == "cuda" else "gloo", timeout=_PATIENCE)
        atexit.register(_leave)
    return Processes(place, dist.get_rank(), dist.get_world_size())


def is_first_process() -> bool:
    """Whether this process is the one that should write files.

    Returns:
        True, but for all processes except one under `torchrun`.

    >>> is_first_process()
    True
    """
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank() == 0
    return int(os.environ.get("RANK", "0")) == 0


def _leave() -> None:
    if dist.is_initialized():
        # Gloo's threads, which outlive the group where DDP was used, may be waiting for the interpreter to drop the
        # last tensors. One that still waits when the interpreter ends aborts the program.
        time.sleep(0.05)
        dist.destroy_process_group()
