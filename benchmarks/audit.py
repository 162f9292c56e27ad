"""How often is the verdict right, and how fast is an audit of files?

    python benchmarks/audit.py verdicts [--draws N]
    python benchmarks/audit.py speed [--rows N]
    python benchmarks/audit.py size [--rows N] [--top1-rows N]

Verdicts: logits of 10 classes, 5,000 rows, labels drawn from softmax(logits / T): with T = 1 the model is calibrated,
with T = 1.3 it is over-confident. Speed: CPU seconds of one pass over a Parquet file of 10 probabilities, and what
pandas, scikit-learn and torchmetrics need to read it and compute error, NLL, Brier score, ECE and classwise ECE (the
pass gives AdaECE and smECE besides). Size: seconds of the pass and peak memory of the audit of large files, a quarter
of the rows and all, on one processor and on all.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow
from pyarrow import parquet
from scipy.special import softmax

from focalcal.auditing import audit
from focalcal.auditing.files import audit_files, part_files, read_rows
from focalcal.predictions import Predictions


def sample(rows: int, temperature: float, seed: int) -> Predictions:
    draws = np.random.default_rng(seed)
    logits = 2 * draws.normal(size=(rows, 10))
    labels = np.argmax(logits / temperature + draws.gumbel(size=logits.shape), axis=1)
    return Predictions(logits=logits, labels=labels, split="test")


def verdicts(draws: int) -> None:
    print("| truth | " + "verdicts of so many draws |\n|---|---|")
    for name, temperature in (("calibrated", 1.0), ("T = 1.3", 1.3)):
        found = Counter(
            str(
                audit(sample(5000, temperature, seed), calibrate=None, trained_with=None, resamples=200).verdict.finding
            )
            for seed in range(draws)
        )
        print(f"| {name} | {', '.join(f'{kind}: {count}' for kind, count in found.most_common())} |", flush=True)


def speed(rows: int) -> None:
    """CPU seconds of one pass, and of what peers need for the same metrics."""
    import pandas
    import torch
    from sklearn.metrics import log_loss
    from torchmetrics.functional.classification import binary_calibration_error, multiclass_calibration_error

    with tempfile.TemporaryDirectory() as folder:
        path = write_probs(Path(folder), rows)
        files = part_files([path])
        ours = min(cpu_seconds(lambda: read_rows(files, {}).sketch.frame()) for _ in range(3))

        def peers() -> None:
            table = pandas.read_parquet(path)
            probs = table[[name for name in table if name.startswith("prob_")]].to_numpy()
            labels = table["label"].to_numpy()
            log_loss(labels, probs)
            ((probs - np.eye(10)[labels]) ** 2).sum(1).mean()
            (probs.argmax(1) != labels).mean()
            scores, index = torch.from_numpy(probs.copy()), torch.from_numpy(labels.copy())
            multiclass_calibration_error(scores, index, num_classes=10)
            for k in range(10):
                binary_calibration_error(scores[:, k].contiguous(), (index == k).long())

        theirs = min(cpu_seconds(peers) for _ in range(3))
    print(f"rows {rows:,}: one pass {ours:.2f} s, peers {theirs:.2f} s, ratio {theirs / ours:.1f}")


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def size(rows: int, top1_rows: int) -> None:
    """Seconds and peak memory of a process that audits large files, on one processor and on all, at two sizes."""
    print("| file | rows | processors | seconds | of CPU | peak MB |\n|---|---|---|---|---|---|")
    for write, most in ((write_probs, rows), (write_top1, top1_rows)):
        for count in (most // 4, most):
            with tempfile.TemporaryDirectory() as folder:
                path = write(Path(folder), count)
                for processors in (1, len(os.sched_getaffinity(0))):
                    seconds, cpu, peak = in_a_process(path, processors)
                    print(
                        f"| {path.name} | {count:,} | {processors} | {seconds:.1f} | {cpu:.1f} | {peak:.0f} |",
                        flush=True,
                    )


def in_a_process(path: Path, processors: int) -> tuple[float, float, float]:
    """Seconds and CPU seconds of the pass alone, and the peak memory of the whole audit."""
    chosen = sorted(os.sched_getaffinity(0))[:processors]
    done = subprocess.run(
        [sys.executable, __file__, "one", "--file", str(path)],
        stdout=subprocess.PIPE, text=True, check=True, preexec_fn=lambda: os.sched_setaffinity(0, chosen),
    )  # fmt: skip
    seconds, cpu, peak = map(float, done.stdout.split())
    return seconds, cpu, peak


def one(path: Path) -> None:
    """What the process does."""
    start, cpu = time.perf_counter(), time.process_time()
    read_rows(part_files([path]), {})
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    audit_files(path, calibrate=["temperature", "isotonic"])
    print(seconds, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def write_probs(folder: Path, rows: int) -> Path:
    """Ten float32 probabilities per row, in row groups of 65,536 rows."""
    draws, path = np.random.default_rng(0), folder / "probs.parquet"

    def table(count: int) -> pyarrow.Table:
        logits = 2 * draws.normal(size=(count, 10)).astype(np.float32)
        labels = np.argmax(logits / 1.3 + draws.gumbel(size=logits.shape), axis=1)
        probs = softmax(logits, axis=1)
        return pyarrow.table({"label": labels} | {f"prob_{k}": np.ascontiguousarray(probs[:, k]) for k in range(10)})

    return write_table(path, table, rows)


def write_top1(folder: Path, rows: int) -> Path:
    """A float32 confidence and a bool per row."""
    draws, path = np.random.default_rng(0), folder / "top1.parquet"

    def table(count: int) -> pyarrow.Table:
        confidence = draws.uniform(0.5, 1, count).astype(np.float32)
        return pyarrow.table({"confidence": confidence, "correct": draws.random(count) < confidence - 0.02})

    return write_table(path, table, rows)


def write_table(path: Path, table: Callable[[int], pyarrow.Table], rows: int) -> Path:
    with parquet.ParquetWriter(path, table(1).schema, compression="none") as writer:
        for start in range(0, rows, 65536):
            writer.write_table(table(min(65536, rows - start)))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", choices=("verdicts", "speed", "size", "one"))
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--top1-rows", type=int, default=100_000_000)
    parser.add_argument("--file", type=Path, help="of `one`, which `size` starts")
    arguments = parser.parse_args()
    match arguments.question:
        case "verdicts":
            verdicts(arguments.draws)
        case "speed":
            speed(arguments.rows or 1_000_000)
        case "size":
            size(arguments.rows or 5_000_000, arguments.top1_rows)
        case "one":
            one(arguments.file)


if __name__ == "__main__":
    main()
