"""What decides a run's numbers: torch's random streams, and its global switches while a run lasts."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from focalcal.core.checks import whole
from focalcal.core.rng import stream_key

_MERSENNE_WORDS = 624
_MERSENNE_OFFSET = 24  # bytes before the words in the state of torch's CPU generator: seed, left, seeded, next


def stream(seed: int, *names: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """A torch generator for the stream (seed, *names), as `core.rng` addresses it.

    On the CPU the whole state of the Mersenne twister comes from the key (SHAKE-256 of it): torch's `manual_seed`
    keeps 32 bits there, which already collide among a hundred thousand streams. Other devices take 64 bits of the key.
    """
    key = stream_key(seed, *names)
    generator = torch.Generator(device)
    generator.manual_seed(int.from_bytes(key[:8], "little"))
    if generator.device.type != "cpu":
        return generator
    words = np.frombuffer(hashlib.shake_256(key).digest(4 * _MERSENNE_WORDS), dtype="<u4").astype(np.uint64)
    words[0] |= 0x80000000  # the twister must not start from zero
    state = generator.get_state()
    room = state.numpy()[_MERSENNE_OFFSET : _MERSENNE_OFFSET + 8 * _MERSENNE_WORDS]
    room[:] = words.view(np.uint8)
    generator.set_state(state)
    return generator


@contextmanager
def deterministic(device: torch.device) -> Iterator[None]:
    """The same bits every time on one machine; the caller's random numbers and settings are as before afterwards."""
    cudnn = torch.backends.cudnn
    kept = {"enabled": cudnn.enabled, "allow_tf32": cudnn.allow_tf32}
    devices = [device.index or 0] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), cudnn.flags(deterministic=True, benchmark=False, **kept):
        yield


def possible_threads(threads: int) -> int:
    """`threads`, checked: OpenMP ends the process when it is asked for far more of them than there is room for."""
    count, most = whole("threads", threads, 1), max(64, 2 * (os.cpu_count() or 1))
    if count > most:
        raise ValueError(f"threads must be at most {most} on this machine, got {threads}; as many as cores is plenty")
    return count


@contextmanager
def fixed_conditions(threads: int) -> Iterator[None]:
    """So many threads, float32 by default, exact float32 products, gradients on, and cuDNN's reproducible kernels.

    The order of a sum depends on the number of threads, so a run's numbers do: one thread is the usual choice, and
    parallel jobs then change nothing. Random streams need no protection: nothing in a run draws from a global one.
    """
    threads = possible_threads(threads)
    before = torch.get_num_threads(), torch.get_default_dtype(), torch.get_float32_matmul_precision()
    torch.set_num_threads(threads)
    torch.set_default_dtype(torch.float32)
    torch.set_float32_matmul_precision("highest")
    try:
        with (
            torch.enable_grad(),
            torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False),
        ):
            yield
    finally:
        torch.set_num_threads(before[0])
        torch.set_default_dtype(before[1])
        torch.set_float32_matmul_precision(before[2])


def seed_epoch(seed: int, epoch: int, rank: int, device: torch.device) -> None:
    """Set torch's global generators, which dropout and drop-path draw from, by (seed, epoch) and the process.

    So the numbers of an epoch do not depend on what was drawn before it, and a resumed run needs no stored state.
    """
    names: tuple[str | int, ...] = ("dropout", epoch) if rank == 0 else ("dropout", epoch, rank)
    torch.set_rng_state(stream(seed, *names).get_state())
    if device.type == "cuda":
        torch.cuda.manual_seed(int.from_bytes(stream_key(seed, *names)[:8], "little"))
