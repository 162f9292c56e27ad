"""What the store costs: adding a run, and listing ten thousand of them.

    python benchmarks/store.py [--runs 10000] [--folder /tmp]

A run here has the size of one on the digits: two splits of 360 rows and 10 classes, 20 epochs.
Targets: adding a run takes under 50 ms, listing 10,000 under 1 s with what an earlier listing left in the index.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from focalcal.lab.cli.runs import list_text, rows_of
from focalcal.lab.store import Spec, Store
from focalcal.lab.training import recipe
from focalcal.predictions import Predictions

METRICS = ("error", "nll", "brier", "ece", "adaptive_ece", "classwise_ece", "mce", "smooth_ece", "confidence_gap")


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Time that passed, and processor time, which other programs disturb less."""
    start, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - used


def told(what: str, times: tuple[float, float]) -> None:
    print(f"{what}: {times[0]:.2f} s, of which processor {times[1]:.2f} s", flush=True)


def spec() -> Spec:
    training = {k: v for k, v in recipe("cifar10_resnet50").as_dict().items() if k not in ("data_set", "model")}
    options = {"gamma": 3, "lam": 1}
    return Spec(
        data_set="cifar10",
        model="resnet50",
        objective="fcl",
        objective_options=tuple(options.items()),
        seed=0,
        training=training,
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
        passed, used = (sorted(1e3 * one for one in column) for column in zip(*times, strict=True))
        middle, rare = statistics.median(passed), passed[int(0.99 * len(passed))]
        print(f"add a run: median {middle:.1f} ms (processor {statistics.median(used):.1f} ms)", end="")
        print(f", 99 % under {rare:.1f} ms, worst {passed[-1]:.1f} ms", flush=True)
        told(f"list {asked.runs} runs without an index", seconds(store.survey))
        size = os.path.getsize(store.path / "runs.parquet")
        for _ in range(3):
            told(f"list them with an index of {size / 1e6:.0f} MB", seconds(store.survey))
        told(
            "the table that `focalcal runs list` prints, listing included",
            seconds(lambda: list_text(rows_of(store.survey()[0]))),
        )
        specs = [replace(base, seed=seed) for seed in range(asked.runs)]
        told("which of as many specs are missing", seconds(lambda: store.missing(specs)))
        query = "select metric, avg(value) from metrics join runs using (key) where split = 'test' group by metric"
        told("a query over their metrics", seconds(lambda: store.sql(query).fetchall()))
        means = "select objective, avg(ece), avg(nll) from test_metrics group by all"
        told("a query over their test metrics", seconds(lambda: store.sql(means).fetchall()))


if __name__ == "__main__":
    main()
