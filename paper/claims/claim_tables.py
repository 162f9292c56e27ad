"""Our numbers beside the paper's, its tables cell by cell and its text number by number, and how the runs differ."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from focalcal.lab.evidence.cell_means import label_means
from focalcal.lab.evidence.evidence import Evidence, RunEvidence
from focalcal.lab.evidence.metric_names import title
from focalcal.pages.numbers import Mean, Printed, Rounded
from focalcal.pages.tables import CaptionedTable, Table
from paper.claims.paper_runs import PaperRuns, spec_differences
from paper.claims.printed_numbers import LITERATURE, PaperNumber, literature_auroc, paper_number, study_of, table_cells
from paper.claims.queries import ClaimAnswer
from paper.claims.text import READ_INTO_IT, TEXT_NUMBERS, TextNumber

NOT_RUN = "not run"
_ELSEWHERE = "The paper's other numbers stand beside ours in python -m paper.theory and python -m paper.overhead."


def against_paper(
    evidence: Evidence, operating_points: Mapping[str, tuple[float, float]] | None = None
) -> dict[str, CaptionedTable]:
    """By name: the paper's tables, if any of their settings was run, and its text; nothing without runs.

    operating_points  (gamma, lam) by setting: which of several points of FCL stands for the paper's
    """
    if not evidence.runs:
        return {}
    runs = PaperRuns(evidence, operating_points)
    tables = {
        "against_paper": paper_tables(runs),
        "against_paper_text": paper_text(runs),
        "literature_auroc": literature_table(evidence),
    }
    return {name: table for name, table in tables.items() if table is not None}


def paper_tables(runs: PaperRuns) -> CaptionedTable | None:
    """One row per cell of the paper's tables, of the settings of which something was run; None if nothing was."""
    rows: list[dict[str, Any]] = []
    compared: dict[str, RunEvidence] = {}
    absent: dict[str, None] = {}
    for protocol, setting, objective, metric in table_cells():
        grid = runs.grid(protocol)
        if setting not in grid.settings:
            absent[f"{setting} ({study_of(protocol, setting)})"] = None
            continue
        theirs = paper_number(setting, objective, metric, protocol=protocol)
        assert theirs is not None
        cell = grid.of(setting, objective)
        ours = _ours(cell, metric, theirs)
        rows.append(_row(setting, objective, metric, ours, theirs))
        compared |= {run.key: run for run in cell if ours is not None}
    if not compared:
        return None
    shown = list(compared.values())
    note = (
        "The paper's numbers are copied from it and come from other runs. Differences of protocol: "
        f"{'; '.join(protocol_differences(shown))}.{_points(shown)}"
    )
    if absent:
        note += f" Of these settings, with the study that has them, nothing was run: {', '.join(absent)}."
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    headings = {"value": "this study", "paper": "the paper's", "paper_std": "its std", "source": "in the paper"}
    return CaptionedTable("Beside the paper's tables", Table(columns, headings=headings), note)


def paper_text(runs: PaperRuns) -> CaptionedTable:
    """One row per number of the paper's text that stored runs can answer."""
    answered = [(number, number.ours(runs)) for number in TEXT_NUMBERS]
    columns: dict[str, list[Any]] = {
        "what": [number.what for number, _ in answered],
        "unit": [number.unit for number, _ in answered],
        "value": [NOT_RUN if ours is None else _value_text(number, ours) for number, ours in answered],
        "paper": [number.printed if " of " in number.printed else Printed(number.printed) for number, _ in answered],
        "difference": [_difference(number, ours) for number, ours in answered],
        "source": [number.section for number, _ in answered],
        "study": [number.study for number, _ in answered],
    }
    headings = {"value": "this study", "paper": "the paper's", "source": "section"}
    missing = sum(ours is None for _, ours in answered)
    note = (
        f"Test split. {missing} of {len(answered)} numbers have no runs here; the study in the last column makes them. "
        "Counts are of what was run; lowest and highest are means as printed, whatever the error; a tie is none. "
        f"Significant is as in the comparisons, where seeds suffice. {READ_INTO_IT} {_ELSEWHERE}"
    )
    return CaptionedTable("Beside the numbers of the paper's text", Table(columns, headings=headings), note)


def literature_table(evidence: Evidence) -> CaptionedTable | None:
    """One row per finding of chest X-rays: our mean AUROC, and what others printed; None without such runs."""
    rows: list[dict[str, Any]] = []
    for setting in evidence.settings:
        for objective, means in label_means(evidence, setting, "auroc").items():
            rows += [
                {"setting": setting, "objective": objective, "finding": finding, "auroc": ours} | printed
                for finding, ours in means.items()
                if (printed := literature_auroc(finding))
            ]
    if not rows:
        return None
    note = "Columns of the literature are as printed there, on other splits of the data: context, not a comparison."
    headings = {"auroc": "this study's AUROC"} | {author: f"{author} (literature)" for author in LITERATURE}
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return CaptionedTable("AUROC of findings in the literature", Table(columns, headings=headings), note)


def protocol_differences(runs: list[RunEvidence]) -> list[str]:
    """How these runs differ from the paper's, as far as their specs say; the machine and the seeds always do."""
    sentences = ["other seeds, software and machines"]
    seeds = {(run.setting, run.objective, run.seed) for run in runs}
    counts = sorted(set(Counter((setting, objective) for setting, objective, _ in seeds).values()))
    if counts != [3]:
        shown = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        sentences.append(f"{shown} seed{'s' * (counts != [1])} per cell instead of three")
    for setting in dict.fromkeys(run.setting for run in runs):
        own = dict.fromkeys(text for run in runs if run.setting == setting for text in spec_differences(run))
        if own:
            sentences.append(f"{setting}: {', '.join(own)}")
    return sentences


def _points(runs: list[RunEvidence]) -> str:
    """Which gamma and lam these runs of FCL have; most of the paper's are in its supplement and not known here."""
    settings: dict[str, list[str]] = {}
    for run in runs:
        if run.objective in ("fcl", "multilabel_fcl"):
            point = ", ".join(f"{name} = {run.options[name]:g}" for name in ("gamma", "lam") if name in run.options)
            settings.setdefault(point, []).append(run.setting)
    points = [f"{point} ({', '.join(dict.fromkeys(there))})" for point, there in settings.items()]
    return f" FCL here has {'; '.join(points)}; the paper's points are in its supplement." if points else ""


def _ours(runs: list[RunEvidence], metric: str, theirs: PaperNumber) -> Mean | None:
    """In the paper's unit and with its digits."""
    values = [run.metrics.get("test", {}).get(metric, math.nan) * (100 if theirs.percent else 1) for run in runs]
    there = [value for value in values if not math.isnan(value)]
    return Mean(there, decimals=_decimals(theirs.value.text)) if there else None


def _row(setting: str, objective: str, metric: str, ours: Mean | None, theirs: PaperNumber) -> dict[str, Any]:
    form = f"+.{_decimals(theirs.value.text)}f"
    return {
        "setting": setting,
        "objective": objective,
        "metric": title(metric) + " %" * theirs.percent,
        "value": NOT_RUN if ours is None else ours,
        "paper": theirs.value,
        "paper_std": theirs.deviation,
        "difference": None if ours is None else Rounded(float(ours) - float(theirs.value), form),
        "source": theirs.source,
    }


def _in_unit(number: TextNumber, ours: ClaimAnswer) -> float:
    return 100 * ours.value if number.unit else ours.value


def _value_text(number: TextNumber, ours: ClaimAnswer) -> Rounded | str:
    if ours.of is not None:
        return str(ours)
    return Rounded(_in_unit(number, ours), f".{max(2, _decimals(number.printed))}f")


def _difference(number: TextNumber, ours: ClaimAnswer | None) -> Rounded | None:
    if ours is None or ours.of is not None:
        return None
    return Rounded(_in_unit(number, ours) - float(number.printed), f"+.{max(2, _decimals(number.printed))}f")


def _decimals(printed: str) -> int:
    return len(printed.partition(".")[2])
