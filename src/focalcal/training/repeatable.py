"""The global switches that training depends on, set while it runs and put back afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from focalcal.core.rng import stream, stream_key


@contextmanager
def repeatable(device: torch.device) -> Iterator[None]:
    """The same bits every time on one machine; the caller's random numbers and settings are as before afterwards."""
    cudnn = torch.backends.cudnn
    before = cudnn.deterministic, cudnn.benchmark
    devices = [device.index or 0] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        try:
            cudnn.deterministic, cudnn.benchmark = True, False
            yield
        finally:
            cudnn.deterministic, cudnn.benchmark = before


def seed_epoch(seed: int, epoch: int, rank: int, device: torch.device) -> None:
    """Set torch's global generators, which dropout and drop-path draw from, by (seed, epoch) and the process.

    So the numbers of an epoch do not depend on what was drawn before it, and a resumed run needs no stored state.
    """
    names: tuple[str | int, ...] = ("dropout", epoch) if rank == 0 else ("dropout", epoch, rank)
    torch.set_rng_state(stream(seed, *names).get_state())
    if device.type == "cuda":
        torch.cuda.manual_seed(int.from_bytes(stream_key(seed, *names)[:8], "little"))
