"""What the store costs: adding a run, and listing ten thousand of them.

    python benchmarks/store.py [--runs 10000] [--folder /tmp]

A run here has the size of one on the digits: two splits of 360 rows and 10 classes, 20 epochs.
Targets: adding a run takes under 50 ms, listing 10,000 under 1 s with what an earlier listing left in the cache.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from focalcal.cli.runs import _table
from focalcal.predictions import Predictions
from focalcal.results import Spec, Store
from focalcal.training import recipe

METRICS = ("error", "nll", "brier", "ece", "adaptive_ece", "classwise_ece", "mce", "smooth_ece", "confidence_gap")


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def spec() -> Spec:
    training = recipe("cifar10_resnet50").settings()
    for name in ("data_set", "model", "fcl_gamma", "fcl_lam"):
        del training[name]
    options = {"gamma": 3, "lam": 1}
    return Spec(
        data_set="cifar10", model="resnet50", objective="fcl", objective_options=options, seed=0, training=training
    )


def add(store: Store, one: Spec, epochs: Path) -> None:
    logits = torch.randn(360, 10)
    labels = torch.randint(0, 10, (360,))
    predictions = [
        Predictions(logits=logits, labels=labels, split=split, ids=list(range(360))) for split in ("val", "test")
    ]
    values = dict.fromkeys(METRICS, 0.123456789)
    record = {
        "metrics": {"val": values, "test": values, "test/temperature": values},
        "provenance": {"focalcal": "0.1.0", "torch": torch.__version__, "host": "a", "threads": 1, "device": "cpu"},
        "seconds": 12.3,
        "epochs": 20,
    }
    store.add(one, record=record, epochs=epochs, predictions=predictions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, default=None, help="on the disk to measure")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir=asked.folder) as made:
        folder = Path(made)
        epochs = folder / "epochs.jsonl"
        line = {"epoch": 1, "lr": 0.1, "seconds": 0.6, "train": dict.fromkeys(METRICS[:3], 0.1)}
        line |= {"val": dict.fromkeys(METRICS, 0.1), "test": dict.fromkeys(METRICS, 0.1)}
        epochs.write_text("".join(json.dumps(line | {"epoch": at}) + "\n" for at in range(1, 21)))
        store = Store(folder / "store")
        base = spec()
        times = [seconds(lambda seed=seed: add(store, replace(base, seed=seed), epochs)) for seed in range(asked.runs)]
        times.sort()
        print(f"add one of {asked.runs} runs: median {1e3 * statistics.median(times):.1f} ms, "
              f"99 % under {1e3 * times[int(0.99 * len(times))]:.1f} ms, worst {1e3 * times[-1]:.1f} ms")  # fmt: skip

        def table() -> None:
            runs, problems = store.survey()
            assert len(runs) == asked.runs
            assert not problems
            print(f"  a table of {len(_table(runs)):,} characters")

        print(f"list, cold (no cache, files in memory): {seconds(lambda: store.survey()):.2f} s")
        warm = min(seconds(lambda: store.survey()) for _ in range(3))
        size = sum(one.stat().st_size for one in os.scandir(store.path / "cache"))
        print(f"list, warm (a cache of {size / 1e6:.0f} MB): {warm:.2f} s")
        print(f"list, warm, as the table that the command prints: {seconds(table):.2f} s")
        specs = [replace(base, seed=seed) for seed in range(asked.runs)]
        print(f"which of {asked.runs} specs are missing: {seconds(lambda: store.missing(specs)):.2f} s")
        query = "select metric, avg(value) from metrics join runs using (key) where split = 'test' group by metric"
        print(f"a query over their metrics: {seconds(lambda: store.sql(query).fetchall()):.2f} s")
        shutil.rmtree(store.path / "cache")
        print(f"list, cold again: {seconds(lambda: store.runs()):.2f} s")


if __name__ == "__main__":
    main()
