"""Who reads the partitions of files: threads of this process, or the tasks of a Ray cluster, with the same numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Literal

from focalcal._native import limit_threads
from focalcal.auditing.partitions import Collected, Partition, Reading, merge, partitions_of, read_partition
from focalcal.core.checks import one_of
from focalcal.core.extras import required
from focalcal.core.processors import available_processors
from focalcal.core.ray_cluster import connection
from focalcal.predictions.locations import Source

Executor = Literal["local", "ray"]
_RETRIES = 3  # of a partition whose worker or node dies


def collect(files: Sequence[Source], reading: Reading, executor: Executor, address: str | None) -> Collected:
    """Read all files; the result does not depend on who reads what."""
    one_of("executor", executor, ("local", "ray"))
    partitions, total = partitions_of(files, reading.like, reading.on_bad_part)
    if total is not None:  # ten standard deviations above the number wanted
        below = min(1.0, (reading.most + 10 * math.sqrt(reading.most)) / total)
        reading = replace(reading, below=below)
    read = partial(read_partition, reading)
    if executor == "ray":
        return merge(collect_on_ray(read, partitions, address), reading.most)
    # Alone, each thread adds in the same order everywhere.
    with ThreadPoolExecutor(available_processors()) as pool:
        return merge(pool.map(partial(_read_with_one_thread, read), partitions), reading.most)


def collect_on_ray(
    read: Callable[[Partition], Collected], partitions: Sequence[Partition], address: str | None
) -> Iterator[Collected]:
    """Each partition a task, which is started again if its worker or node dies; results in order."""
    ray = required("ray", purpose="The executor ray", extra="ray")
    with connection(ray, address, _RETRIES):
        task = ray.remote(_read_with_one_thread).options(num_cpus=1, max_retries=_RETRIES, retry_exceptions=False)
        waiting = [task.remote(read, partition) for partition in partitions]
        try:
            for reference in waiting:
                yield ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)  # without effect on what has ended


def _read_with_one_thread(read: Callable[[Partition], Collected], partition: Partition) -> Collected:
    with limit_threads(1):
        return read(partition)
