"""The tables of the audited models, from records/audits.jsonl."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from focalcal.pages.numbers import Rounded
from focalcal.pages.tables import Table
from paper.audits import SHOWN
from paper.record import RECORDS


def audits() -> dict[str, dict[str, Any]]:
    """By name, in order of the titles."""
    lines = [json.loads(line) for line in (RECORDS / "audits.jsonl").read_text().splitlines()]
    return {line["name"]: line for line in sorted(lines, key=lambda line: line["title"].lower())}


def verdicts() -> str:
    """One row per audited model, with a link to its page if it has one."""
    rows = []
    for name, found in audits().items():
        metrics, fixes = found["metrics"], found["fixes"]
        ece, chosen = metrics["ece"], fixes["recommended"]
        after = next((fix["ece"] for fix in fixes["tried"] if fix["name"] == chosen), None)
        cells = (
            f"[{found['title']}](audits/{name}.html)" if name in SHOWN else found["title"],
            f"{found['rows']:,}",
            f"{100 * metrics['error']['estimate']:.1f}",
            found["verdict"]["finding"],
            f"{100 * found['verdict']['gap']:+.1f}",
            f"{100 * ece['estimate']:.1f} [{100 * ece['low']:.1f}, {100 * ece['high']:.1f}]",
            chosen or "none",
            "-" if after is None else f"{100 * after:.1f}",
        )
        rows.append(f"| {' | '.join(cells)} |")
    head = "| model | rows | error % | verdict | gap, points | ECE %, 95 % interval | fix | ECE % with it |"
    return "\n".join([head, "| --- | --: | --: | --- | --: | --- | --- | --: |", *rows])


def calibrators(names: Sequence[str], metric: str) -> str:
    """A metric of models before and after every calibrator, cross-fitted, those of lowest mean NLL first."""
    found = audits()
    tried = {name: {fix["name"]: fix for fix in found[name]["fixes"]["tried"]} for name in names}
    everywhere = set.intersection(*(set(fixes) for fixes in tried.values()))
    finite = {
        fix: [tried[name][fix]["nll"] for name in names if tried[name][fix]["nll"] is not None] for fix in everywhere
    }
    order = sorted(everywhere, key=lambda fix: (len(names) - len(finite[fix]), sum(finite[fix]), fix))
    columns: dict[str, list[Any]] = {"calibrator": ["none", *order]}
    for name in names:
        values = [found[name]["metrics"][metric]["estimate"], *(tried[name][fix][metric] for fix in order)]
        factor, digits = (100, ".2f") if metric == "ece" else (1, ".4f")
        columns[found[name]["title"].partition(",")[0]] = [
            None if value is None else Rounded(factor * value, digits) for value in values
        ]
    return Table(columns, missing="infinite").markdown()
