"""The processors that this process may use."""

from __future__ import annotations

import os


def available_processors() -> int:
    """How many: fewer than the machine has in a container or under `taskset`."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
