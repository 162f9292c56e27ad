"""How large a study's page is, and how soon it can be used.

    taskset -c 0 python benchmarks/page.py --runs 500

Writes a page of so many synthetic runs (ten seeds of ten objectives on as many settings as it takes, FCL over a grid on
the last one), opens it in headless Chromium by Playwright and measures, five times and by the median: from the start of
the navigation until both charts of the first screen are drawn, how much of that time the page's main thread computed,
and from a press on another metric until they are drawn again. `taskset` gives all processes one core; where other
programs use it too, the computing time is the number to compare.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from focalcal.lab.evidence.evidence import gather
from focalcal.lab.objectives import ORDER
from focalcal.lab.report.page_sections import study_page
from focalcal.lab.report.study_tables import all_tables
from focalcal.lab.store import Spec, Store
from focalcal.metrics import reliability, summary
from focalcal.predictions import Predictions

SEEDS, ROWS, CLASSES, EPOCHS = 10, 500, 10, 30
GRID = [(gamma, lam) for gamma in (1.0, 3.0, 5.0) for lam in (0.0, 0.5, 1.0)]
DRAWN = "['dots', 'pareto'].every((id) => document.querySelector(`#chart-${id} svg`)?.childElementCount > 5)"

WHEN_DRAWN = f"""() => new Promise((done) => {{
  const look = () => ({DRAWN} ? done(performance.now()) : requestAnimationFrame(look));
  look();
}})"""  # not `wait_for_function`, which needs eval
SWITCHED = """() => {
  const began = performance.now();
  document.querySelector("#metric input[value=nll]").click();
  return new Promise((done) => requestAnimationFrame(() => done(performance.now() - began)));
}"""


def specs(runs: int) -> Iterator[Spec]:
    training = {"recipe": "synthetic", "epochs": EPOCHS}
    for number in range(-(-runs // (SEEDS * 10))):
        for seed in range(SEEDS):
            for objective in ORDER:
                options = {"gamma": 3.0, "lam": 1.0} if objective == "fcl" else {}
                yield Spec(
                    data_set=f"data{number}", model="net", objective=objective, objective_options=options, seed=seed,
                    training=training,
                )  # fmt: skip
            gamma, lam = GRID[seed % len(GRID)]
            yield Spec(
                data_set="grid", model="net", objective="fcl", objective_options={"gamma": gamma, "lam": lam},
                seed=100 * number + seed // len(GRID), training=training,
            )  # fmt: skip


def stored(store: Store, spec: Spec) -> None:
    random = np.random.default_rng(spec.seed)
    sharpness = 0.6 + 0.2 * ORDER.index(spec.objective)
    logits = 2 * random.normal(size=(ROWS, CLASSES))
    labels = (logits + random.gumbel(size=logits.shape)).argmax(1)
    test = Predictions(logits=(sharpness * logits).astype(np.float32), labels=labels, split="test")
    metrics = {name: float(value) for name, value in summary(logits=test.logits, labels=test.labels).as_dict().items()}
    found = reliability(test.probs, test.labels)
    bins = {
        "count": found.count.astype(int).tolist(),
        "confidence": np.nan_to_num(found.count * found.confidence).tolist(),
        "correct": np.nan_to_num(found.count * found.accuracy).tolist(),
    }
    curve = ("error", "nll", "brier", "ece", "adaptive_ece", "smooth_ece")
    epochs = store.path / "epochs-to-store.jsonl"
    records = [
        {"epoch": at, "test": {name: metrics[name] * (1 + 1 / at) for name in curve}, "train": {"loss": 1 / at},
         "val": {name: metrics[name] * (1 + 2 / at) for name in curve}, "bins": bins}
        for at in range(1, EPOCHS + 1)
    ]  # fmt: skip
    epochs.write_text("".join(json.dumps(record) + "\n" for record in records))
    record = {"metrics": {"test": metrics}, "provenance": {"machine": "benchmark"}, "seconds": 1.0, "epochs": EPOCHS}
    store.add(spec, record=record, epochs=epochs, predictions=[test])


def measured(path: Path) -> dict[str, float]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        opened, computed, switched = [], [], []
        for _ in range(5):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            page.goto(path.resolve().as_uri(), wait_until="commit")
            opened.append(page.evaluate(WHEN_DRAWN))
            metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
            computed.append(1000 * metrics["TaskDuration"])
            switched.append(page.evaluate(SWITCHED))
            page.close()
        browser.close()
    times = {"interactive_ms": opened, "main_thread_ms": computed, "switch_ms": switched}
    return {name: statistics.median(several) for name, several in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=500, help="How many runs the page shows.")
    parser.add_argument("--out", type=Path, help="Where the page is kept.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store")
        for number, spec in enumerate(specs(options.runs)):
            if number < options.runs:
                stored(store, spec)
        began = time.perf_counter()
        evidence = gather(store.runs(), title=f"{options.runs} runs", details=True)
        gathered = time.perf_counter() - began
        began = time.perf_counter()
        text = study_page(evidence, tables=all_tables(evidence))
        written = time.perf_counter() - began
        path = options.out or Path(folder) / "page.html"
        path.write_text(text, encoding="utf-8")
        found = {
            "runs": options.runs,
            "megabytes": len(text.encode()) / 1e6,
            "gather_s": gathered,
            "write_s": written,
            **measured(path),
        }
    print(json.dumps({name: round(value, 3) for name, value in found.items()}))


if __name__ == "__main__":
    main()
