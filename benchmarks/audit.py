"""How often is the verdict right, and how fast is an audit of files?

    python benchmarks/audit.py verdicts [--draws N]
    python benchmarks/audit.py speed [--rows N]

Verdicts: logits of 10 classes, 5,000 rows, labels drawn from softmax(logits / T): with T = 1 the model is calibrated,
with T = 1.3 it is over-confident. Speed: CPU seconds of one pass over a Parquet file of 10 probabilities, and what
pandas, scikit-learn and torchmetrics need to read it and compute error, NLL, Brier score and ECE; peak memory.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

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
    import pandas
    import torch
    from sklearn.metrics import log_loss
    from torchmetrics.functional.classification import multiclass_calibration_error

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        given = sample(rows, 1.3, 0)
        Predictions(probs=given.probs.float(), labels=given.labels, split="test").save(path)
        del given
        start = time.process_time()
        read_rows(part_files([path]), {})
        ours = time.process_time() - start
        start = time.process_time()
        audit_files(path, calibrate=None, trained_with=None)
        whole = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start = time.process_time()
        table = pandas.read_parquet(path)
        probs = table[[name for name in table if name.startswith("prob_")]].to_numpy()
        labels = table["label"].to_numpy()
        log_loss(labels, probs)
        ((probs - np.eye(10)[labels]) ** 2).sum(1).mean()
        (probs.argmax(1) != labels).mean()
        multiclass_calibration_error(torch.from_numpy(probs), torch.from_numpy(labels), num_classes=10)
        peers = time.process_time() - start
    print(f"rows {rows:,}: one pass {ours:.2f} s, audit {whole:.2f} s, peers {peers:.2f} s, ratio {peers / ours:.1f}")
    print(f"peak memory {peak:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", choices=("verdicts", "speed"))
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--rows", type=int, default=1_000_000)
    arguments = parser.parse_args()
    if arguments.question == "verdicts":
        verdicts(arguments.draws)
    else:
        speed(arguments.rows)


if __name__ == "__main__":
    main()
