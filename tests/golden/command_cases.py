"""What the library's commands print and write: audits of files, calibrated files, theory."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from golden.calibrator_cases import SEARCHED, without_steps
from golden.inputs import masked, multi_label, outcomes, positive_class, posteriors, probabilities, single_label
from golden.values import Case
from typer.testing import CliRunner

from focalcal.cli.app import app
from focalcal.predictions import Predictions

ROUNDING = ("stationarity", "feasibility")  # what is left of zero, of which only the name is kept
ROWS, FEWER = 3000, 300
FEW = "temperature,vector,isotonic"


def run(folder: Path, *arguments: str) -> dict[str, Any]:
    """Exit code and lines, in which FOLDER stands for the folder."""
    done = CliRunner().invoke(app, [argument.replace("FOLDER", str(folder)) for argument in arguments])
    said = {"exit": done.exit_code, "printed": _lines(done.stdout, folder), "warned": _lines(done.stderr, folder)}
    return {name: value for name, value in said.items() if value or name == "exit"}


def _lines(text: str, folder: Path) -> list[str]:
    lines = [line.rstrip() for line in text.replace(str(folder), "FOLDER").splitlines()]
    lines = [line for line in lines if not line.startswith("structured ")]  # of another machine in its last digits
    return [next((name for name in ROUNDING if line.startswith(name)), line) for line in lines]


def _columns(scores: Any, prefix: str = "p_", first: int = 0) -> dict[str, list[Any]]:
    return {f"{prefix}{k}": column.tolist() for k, column in enumerate(scores.T, first)}


def _write(path: Path, columns: dict[str, list[Any]]) -> None:
    if path.suffix == ".parquet":
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.table(columns), path, row_group_size=700)
        return
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _table(name: str, rows: int = ROWS) -> dict[str, list[Any]]:
    probs, labels = probabilities(rows, 5)
    names = np.array(["ant", "bee", "cat", "dog", "elk"])
    logits, truth = single_label(rows, 5)
    score, answer = positive_class(rows)
    confidence, correct = outcomes(rows)
    sites = [f"site {row * row % 3}" for row in range(rows)]
    tables: dict[str, dict[str, list[Any]]] = {
        "probs": _columns(probs) | {"y": labels.tolist(), "site": sites, "id": list(range(100, 100 + rows))},
        "logits": _columns(2 * logits, "logit_") | {"y": truth.tolist()},
        "named": {f"p_{name}": column.tolist() for name, column in zip(names, probs.T, strict=True)}
        | {"y": names[labels].tolist()},
        "binary": {"score": score.tolist(), "y": np.where(answer == 1, "yes", "no").tolist()},
        "top1": {"confidence": confidence.tolist(), "correct": correct.tolist(), "site": sites},
    }
    return tables[name]


def _audited(table: str, suffix: str, options: Iterable[str]) -> Any:
    """What is printed, and the files beside the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder / f"rows.{suffix}", _table(table))
        done = run(folder, "audit", f"FOLDER/rows.{suffix}", *options, "--out", "FOLDER/audit")
        found = _without_calibrator(json.loads((folder / "audit" / "metrics.json").read_text()))
        calibrator = folder / "audit" / "calibrator.json"
        kept = without_steps(json.loads(calibrator.read_text())) if calibrator.exists() else None
        return {"said": done, "metrics": found, "calibrator": kept}


def _audited_as_json(table: str, suffix: str, options: Iterable[str]) -> Any:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder / f"rows.{suffix}", _table(table, FEWER))
        said = _json(run(folder, "audit", f"FOLDER/rows.{suffix}", *options, "--json"))
        return said | {"printed": _without_calibrator(said["printed"])}


def _without_calibrator(record: Any) -> Any:
    """An audit's record without what calibrator.json has, too, and without the points of decision curves.

    Nor with what no two machines share to the last digit: structured scaling, which is held to fewer digits in the file
    of the calibrators, and the formula of what is recommended.
    """
    if record["decisions"] is not None:
        record["decisions"].pop("net_benefit")
        record["decisions"].pop("net_benefit_after")
    if record["fixes"] is not None:
        record["fixes"] = {
            name: value for name, value in record["fixes"].items() if name not in ("calibrator", "formula")
        }
        record["fixes"]["tried"] = [one for one in record["fixes"]["tried"] if one["name"] != "structured"]
    return record


def _gates() -> Any:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder / "rows.csv", _table("probs", FEWER))
        gates = ("--fail-if", "ece > 0.02", "--fail-if", "error > 90 %", "--fail-if", "nll > 1")
        none = ("audit", "FOLDER/rows.csv", "--labels", "y", "--calibrate", "none", *gates)
        done = run(folder, *none, "--junit", "FOLDER/gates.xml")
        return {"said": done, "junit": (folder / "gates.xml").read_text()}


def _against_a_baseline() -> Any:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logits, labels = single_label(FEWER, 5)
        for file, factor in (("new", 0.7), ("old", 1.6)):
            Predictions(logits=factor * logits, labels=labels, split="test").save(folder / f"{file}.npz")
        return run(folder, "audit", "FOLDER/new.npz", "--baseline", "FOLDER/old.npz", "--calibrate", "none")


def _multilabel() -> Any:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logits, labels = multi_label(150, 3)
        Predictions(logits=logits, labels=labels, split="test", multilabel=True).save(folder / "rows.npz")
        return run(folder, "audit", "FOLDER/rows.npz", "--calibrate", "none")


def _refused() -> Any:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = _table("probs", FEWER)
        table["p_0"][7] = 1.5
        _write(folder / "rows.csv", table)
        logits, labels = masked(50)
        _write(folder / "few.csv", _columns(np.where(np.isinf(logits), -1e9, logits), "logit_") | {"y": labels})
        return [
            run(folder, "audit", "FOLDER/rows.csv", "--labels", "y"),
            run(folder, "audit", "FOLDER/missing.csv"),
            run(folder, "audit", "FOLDER/few.csv", "--labels", "z"),
            run(folder, "audit", "FOLDER/few.csv", "--fail-if", "ece ~ 3"),
            run(folder, "theory", "solve", "0.7", "0.7"),
        ]


def _calibrated() -> Any:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder / "rows.csv", _table("logits", FEWER))
        options = ("--logits", "logit_*", "--labels", "y")
        run(folder, "audit", "FOLDER/rows.csv", *options, "--calibrate", "temperature", "--out", "FOLDER/audit")
        apply = ("calibrate", "FOLDER/audit/calibrator.json", "FOLDER/rows.csv")
        said = [run(folder, *apply, f"FOLDER/out.{form}", *options) for form in ("npz", "csv", "parquet")]
        named = {"probs": "prob", "labels": "y"}
        written = [Predictions.load(folder / f"out.{form}", **named) for form in ("csv", "parquet")]
        written.insert(0, Predictions.load(folder / "out.npz"))
        heads = [{"probs": one.probs[:5], "labels": one.labels[:5], "rows": one.n, "of": dict(one.provenance)}
                 for one in written]  # fmt: skip
        return {"said": said, "written": heads, "csv": (folder / "out.csv").read_text().splitlines()[0]}


def _theory(*arguments: str) -> Any:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        eta = posteriors()
        np.savetxt(folder / "eta.csv", eta, delimiter=",", fmt="%.9f")
        states = {
            "weight": [1 / len(eta)] * len(eta),
            **{f"eta_{k + 1}": column.tolist() for k, column in enumerate(eta.round(9).T)},
        }
        _write(folder / "states.csv", states)
        logits, labels = single_label(800, 5)
        Predictions(logits=3 * logits, labels=labels, split="val").save(folder / "val.npz")
        return [run(folder, "theory", *arguments), _json(run(folder, "theory", *arguments, "--json"))]


def _json(said: dict[str, Any]) -> Any:
    return said | {"printed": json.loads("\n".join(said["printed"]))} if said["exit"] == 0 else said


THEORY = (
    "solve 0.7 0.2 0.1 --gamma 3 --lam 1",
    "solve 0.7 0.2 0.1 --gamma 3 --lam 1 --anchor l1",
    "solve --file FOLDER/eta.csv --gamma 2 --lam 0.5",
    "bound 0.7 0.2 0.1 --gamma 3 --lam 10",
    "bound --classes 10 --gamma 3 --lam 10",
    "recover 0.567 0.2666 0.1664 --gamma 3 --lam 1",
    "lam 0.7 0.2 0.1 --gamma 3 --tolerance 0.01",
    "lam --classes 10 --gamma 3 --tolerance 0.01",
    "gap 0.5 0.3 0.2 --gamma 3 --lam 1",
    "gradients 0.1 0.01 --gamma 3 --lam 1 --classes 10",
    "operating-point FOLDER/val.npz --gamma 3",
    "population FOLDER/states.csv --gamma 3 --lam 1",
)


def cases() -> dict[str, Case]:
    """By name."""
    labelled = ("--labels", "y")
    audits = {
        "probs.parquet": ("--probs", "p_*", *labelled, "--groups", "site", "--ids", "id", "--calibrate", FEW),
        "logits.csv": ("--logits", "logit_*", *labelled, "--calibrate", "temperature,dirichlet"),
        "named.csv": (*labelled, "--calibrate", "histogram"),
        "binary.parquet": ("--score", "score", "--positive", "yes", *labelled, "--calibrate", "auto"),
        "binary.csv": ("--score", "score", "--positive", "yes", *labelled, "--calibrate", "none"),
        "top1.parquet": ("--confidence", "confidence", "--correct", "correct", "--groups", "site"),
        "top1.csv": ("--confidence", "confidence", "--correct", "correct"),
    }
    found = {
        f"audit of {file}": Case(
            partial(_audited if file.endswith("parquet") else _audited_as_json, *file.split("."), options), *SEARCHED
        )
        for file, options in audits.items()
    }
    found["audit with gates"] = Case(_gates)
    found["audit against a baseline"] = Case(_against_a_baseline)
    found["audit of several labels"] = Case(_multilabel)
    found["refused"] = Case(_refused)
    found["calibrate"] = Case(_calibrated, 1e-9, 1e-11)
    return found | {f"theory {line}": Case(partial(_theory, *line.split()), *SEARCHED) for line in THEORY}
