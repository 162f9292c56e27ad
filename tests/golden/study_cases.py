"""What the laboratory makes of stored runs: evidence, comparisons, tables, sentences, and judgements of a search."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from golden.command_cases import run
from golden.inputs import single_label, softmax
from golden.values import Case
from support import synthetic_study

from focalcal.lab.evidence import findings
from focalcal.lab.evidence.cell_means import leaders
from focalcal.lab.evidence.comparisons import comparisons
from focalcal.lab.evidence.evidence import Evidence
from focalcal.lab.report.sentences import study_sentences
from focalcal.lab.report.study_tables import all_tables
from focalcal.lab.report.study_tables.run_lists import leaders_table, runs_table
from focalcal.lab.store import Store
from focalcal.lab.studies.tuning import judge
from focalcal.predictions import Predictions

MEASURED = (1e-6, 1e-7)  # stored logits are float32


def _study(store: Store) -> None:
    """Two settings of three objectives and six seeds, with a shift, and true posteriors in one of them."""
    for objective in ("ce", "focal", "fcl"):
        for seed in range(6):
            one = synthetic_study.spec(objective, seed)
            synthetic_study.add(store, one, rows=200, shifts=("noise",), known=True)
            other = synthetic_study.spec(objective, seed, data_set="svhn")
            synthetic_study.add(store, other, rows=200, signal=1.0)


def _sweep(store: Store) -> None:
    """FCL with several lam beside cross-entropy."""
    synthetic_study.add(store, synthetic_study.spec("ce", 0))
    for at, lam in enumerate((0.1, 1.0, 10.0)):
        one = synthetic_study.spec("fcl", 0, gamma=3.0, lam=lam)
        synthetic_study.add(store, one, sharpness=1.0 + 0.2 * at)


def _several_labels(store: Store) -> None:
    for objective in ("multilabel_bce", "multilabel_fcl"):
        for seed in (0, 1):
            one = synthetic_study.spec(objective, seed, data_set="chestxray14", gamma=1.0)
            synthetic_study.add_multilabel(store, one, ["oedema", "hernia"])


def _of(fill: Callable[[Store], None], made: Callable[[Evidence], Any], **options: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store")
        fill(store)
        return made(synthetic_study.evidence_of(store, **options))


def _tables(evidence: Evidence) -> dict[str, Any]:
    made = {name: (one.text(), one.table) for name, one in all_tables(evidence).items()}
    rest = {"runs": runs_table(evidence), "leaders": leaders_table(leaders(evidence))}
    made |= {name: (table.text(), table) for name, table in rest.items() if table is not None}
    return {name: {"text": text.splitlines(), "csv": _cells(table.csv())} for name, (text, table) in made.items()}


def _cells(text: str) -> list[list[float | str]]:
    """Numbers as numbers, whose last digits depend on the order of sums."""
    return [[_number(cell) for cell in row] for row in csv.reader(text.splitlines())]


def _number(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell


def _numbers(evidence: Evidence) -> dict[str, Any]:
    families = findings.study_families(evidence)
    return {
        "metrics": {f"{one.setting} {one.objective} {one.seed}": one.metrics for one in evidence.runs if one.seed < 2},
        "families": families,
        "two metrics": comparisons(evidence, "focal", ["ce"], metrics=("nll", "error")),
        "significance": findings.significance(families),
        "headline": findings.headline(evidence),
        "summary": study_sentences(evidence),
    }


def _compared(*arguments: str) -> Any:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _study(Store(folder / "store"))
        return run(folder, "compare", *arguments, "--store", "FOLDER/store")


def _judged(kind: str, temperature: float | None) -> Any:
    logits, labels = single_label(500, 5)
    scores: Any = {"logits": 2 * logits}
    if kind == "probs":
        scores = {"probs": softmax(2 * logits).round(9)}
    found = judge(Predictions(labels=labels, split="val", **scores), temperature=temperature)
    return {
        "temperature": found.temperature,
        "error": found.error,
        "means": {f"{name} {scaled}": found.mean(name, scaled=scaled) for name in ("nll", "brier")
                  for scaled in (False, True)},
        "best": {name: found.best(name) for name in ("nll", "brier")},
        "helps": found.mean("nll", scaled=True) < found.mean("nll", scaled=False),
    }  # fmt: skip


def cases() -> dict[str, Case]:
    """By name."""
    return {
        "tables of a study": Case(partial(_of, _study, _tables), *MEASURED),
        "numbers of a study": Case(partial(_of, _study, _numbers), *MEASURED),
        "tables with validation temperatures": Case(partial(_of, _study, _tables, temperature="validation"), *MEASURED),
        "tables of a sweep": Case(partial(_of, _sweep, _tables), *MEASURED),
        "tables of several labels": Case(partial(_of, _several_labels, _tables), *MEASURED),
        "compare": Case(partial(_compared, "fcl", "ce")),
        "compare by other metrics": Case(partial(_compared, "fcl", "--metrics", "nll,error")),
        "judgement of logits": Case(partial(_judged, "logits", None), 1e-9, 1e-11),
        "judgement at a temperature": Case(partial(_judged, "logits", 2.0)),
        "judgement of probabilities": Case(partial(_judged, "probs", None), 1e-9, 1e-11),
    }
