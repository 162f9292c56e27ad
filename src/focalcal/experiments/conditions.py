"""The settings of torch that change a run's last bits, fixed for a run and given back to the caller afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from focalcal.core.primitives import whole


@contextmanager
def fixed_conditions(threads: int) -> Iterator[None]:
    """So many threads, float32 by default, exact float32 products, gradients on, and cuDNN's reproducible kernels.

    The order of a sum depends on the number of threads, so a run's numbers do: one thread is the usual choice, and
    parallel jobs then change nothing. Random streams need no protection: nothing in a run draws from a global one.
    """
    threads = whole("threads", threads, 1)
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
