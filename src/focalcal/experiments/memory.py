"""The most memory that torch's tensors take while something runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import accumulate

import torch
from torch.profiler import ProfilerActivity, profile


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
    changes = sorted((one.start_ns(), one.nbytes()) for one in results.events() if one.name() == "[memory]")
    return held + int(max(accumulate((size for _, size in changes), initial=0)))
