"""Predict lam from cross-entropy runs, train FCL there, and see whether it holds.

    python -m paper.operating_point [STUDY ...] [--seeds N] [--jobs N] [--store FOLDER] [--out FILE]

The cross-entropy cells of the studies, by default operating-point.toml and operating-point-real.toml of paper/studies,
make the predictions. Cells that are stored are not trained again, and stopped at any moment, the same command goes on.
Every cell goes to FILE as a line of .csv; what temperature each then needs is printed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from focalcal.lab.cli.progress import grid_display
from focalcal.lab.evidence.labels import run_labels
from focalcal.lab.store import Spec, Store
from focalcal.lab.store.layout import store_folder
from focalcal.lab.studies import LocalExecutor, load_study
from paper import STUDIES
from paper.operating_point.study import run_operating_points
from paper.operating_point.trial import Trial, TrialVerdict, verdict
from paper.record import origin, write_table
from paper.trials import Trials

_SHOWN = ("lam", "temperature", "miss", "ece", "nll", "scaled_nll", "error")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", metavar="STUDY")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    chosen = asked.studies or [STUDIES / f"{name}.toml" for name in ("operating-point", "operating-point-real")]
    studies = [load_study(name, seeds=asked.seeds) for name in chosen]
    baselines = [spec for study in studies for spec in study.specs() if spec.objective == "ce"]
    store = Store(store_folder(asked.store))
    with grid_display() as display:
        trials, interrupted = run_operating_points(baselines, store, LocalExecutor(asked.jobs), on_event=display)
    rows = rows_of(trials, baselines)
    if asked.out is not None:
        write_table(asked.out, [row | origin(store.run(row["key"])) for row in rows])
    print(Trials(tuple(rows)).table(["setting", "role", "gamma"], *_SHOWN))
    print(verdict_text(verdict(trials)))
    if interrupted:
        raise SystemExit(f"interrupted; {len(trials)} cells are stored; the same command goes on")


def rows_of(trials: list[Trial], baselines: list[Spec]) -> list[dict[str, Any]]:
    """One row per cell."""
    if not trials:
        raise SystemExit("no cell of the studies is stored, so there is nothing to show; see what failed above")
    labels = run_labels(baselines)
    return [{"setting": labels[trial.baseline].setting, **trial.record()} for trial in trials]


def verdict_text(counts: TrialVerdict) -> str:
    within, kept = f"{counts.within} of {counts.helped}", f"{counts.right} of {counts.kept}"
    return (
        f"|log T| <= {counts.tolerance:g} in {within} predicted cells where FCL is said to help\n"
        f"cross-entropy no farther from T = 1 than FCL(3, 1) in {kept} cells where it is said to be kept"
    )


if __name__ == "__main__":
    main()
