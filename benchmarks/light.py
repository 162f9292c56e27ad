"""What people wait for: imports, an audit from file to page, an error message, fits, large vocabularies, one row.

    python benchmarks/light.py

CPU seconds of one thread, user and system, medians of fresh processes or of calls; and their share of what
`python -c "import numpy, scipy.optimize, sklearn.base"` takes on the same machine, the least that any of it costs.
A read is the time of `array.sum()`.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LEAST = "import numpy, scipy.optimize, sklearn.base"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
os.environ |= ONE_THREAD
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode

import numpy as np  # noqa: E402


def of_process(*arguments: str | Path, rounds: int = 5) -> float:
    """Median CPU seconds of a fresh Python."""
    found = []
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(found)


def of_call(call: Callable[[], Any], rounds: int = 3, calls: int = 1) -> float:
    """Median CPU seconds of a call."""
    call()
    found = []
    for _ in range(rounds):
        began = time.process_time()
        for _ in range(calls):
            call()
        found.append((time.process_time() - began) / calls)
    return statistics.median(found)


def overconfident(rows: int, classes: int, dtype: str = "float64") -> tuple[Any, Any]:
    """Logits, and labels drawn from softmax(logits / 1.6)."""
    draws = np.random.default_rng(0)
    logits, labels = np.empty((rows, classes), dtype), np.empty(rows, np.int64)
    for first in range(0, rows, 1000):
        part = 2 * draws.normal(size=logits[first : first + 1000].shape)
        logits[first : first + 1000] = part
        labels[first : first + 1000] = np.argmax(part / 1.6 + draws.gumbel(size=part.shape), axis=1)
    return logits, labels


def processes(folder: Path) -> list[tuple[str, float, float]]:
    """What is waited for, CPU seconds, and the target of them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    logits, labels = overconfident(5000, 10)
    probs = np.exp(logits - logits.max(1, keepdims=True))
    probs /= probs.sum(1, keepdims=True)
    table = {f"p_{k}": probs[:, k] for k in range(10)} | {"y": labels}
    pq.write_table(pa.table(table), folder / "scores.parquet")
    run = ("-m", "focalcal.cli", "audit", folder / "scores.parquet", "--labels")
    return [
        ("import focalcal.metrics", of_process("-c", "import focalcal.metrics"), 0.5),
        ("audit of 5,000 x 10, Parquet to page", of_process(*run, "y", "--out", folder / "audit"), 2.0),
        ("a column that is not there", of_process(*run, "z"), 0.6),
    ]


def calls() -> list[tuple[str, float, float]]:
    """The same of calls."""
    from focalcal.metrics import ece
    from focalcal.posthoc import MatrixScaling, TemperatureScaling

    small, small_labels = overconfident(128, 10)
    probs = np.exp(small) / np.exp(small).sum(1, keepdims=True)
    medium, medium_labels = overconfident(5000, 100)
    large, large_labels = overconfident(3000, 50_000, "float16")
    fitted, row = TemperatureScaling().fit(small, small_labels), small[:1]
    return [
        ("ECE, 128 x 10", of_call(lambda: ece(probs, small_labels), calls=500), 80e-6),
        ("one row through a fitted temperature", of_call(lambda: fitted.predict_proba(row), calls=500), 60e-6),
        ("matrix scaling, 5,000 x 100", of_call(lambda: MatrixScaling().fit(medium, medium_labels), rounds=1), 1.0),
        ("ECE, 3,000 x 50,000 float16", of_call(lambda: ece(logits=large, labels=large_labels)), 1.0),
        ("temperature there", of_call(lambda: TemperatureScaling().fit(large, large_labels), rounds=1), 5.0),
    ]


def reads() -> list[tuple[str, float, float]]:
    """ECE of large arrays, in reads of them."""
    from focalcal.metrics import ece

    found = []
    for rows, classes, target in ((1_000_000, 10, 3.0), (100_000, 100, 2.0)):
        probs = np.random.default_rng(0).dirichlet(np.ones(classes), rows).astype(np.float32)
        labels = np.zeros(rows, np.int64)
        share = of_call(lambda p=probs, y=labels: ece(p, y), 7) / of_call(probs.sum, 7)  # type: ignore[misc]
        found.append((f"ECE, {rows:,} x {classes}, reads", share, target))
    return found


def main() -> None:
    least = of_process("-c", LEAST)
    print(f"{LEAST}: {least:.2f} s\n\n| what | CPU s | of that import | at most |\n|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for what, seconds, target in [*processes(Path(folder)), *calls()]:
            print(f"| {what} | {seconds:.3g} | {seconds / least:.2g} | {target:g} |", flush=True)
    for what, share, target in reads():
        print(f"| {what} | {share:.1f} | | {target:g} |")


if __name__ == "__main__":
    main()
