"""`focalcal report`: a page, tables and figures of the runs in a store."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from focalcal.cli.options import DataDir, Json, Seeds, Stores, open_stores
from focalcal.cli.output import plain_failures, print_json

if TYPE_CHECKING:
    from focalcal.reports.study_report import Report


class Against(StrEnum):
    """Whose numbers stand beside ours."""

    paper = "paper"


@plain_failures()
def report(
    store: Stores = None,
    study: Annotated[
        str | None,
        typer.Option(help="Show this study's cells alone and say which are missing: a shipped study, or a .toml file."),
    ] = None,
    seeds: Seeds = None,
    out: Annotated[
        Path | None, typer.Option(help="The folder to write to; default: report, or report/STUDY, in the store.")
    ] = None,
    against: Annotated[
        Against | None, typer.Option(help="Put the paper's numbers beside ours, marked as such.")
    ] = None,
    figures: Annotated[bool, typer.Option(help="Draw the figures, which takes longer than all the rest.")] = True,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Write report.html, which needs no network, with the tables (CSV, Markdown, LaTeX) and figures (PDF, PNG) of it.

    What is missing, failed or damaged is said, and the rest shown.

    Example: focalcal report --study digits --against paper
    """
    from focalcal.reports.study_report import FOLDER, write_report
    from focalcal.training.recipes import operating_points

    opened = open_stores(store)
    options: dict[str, Any] = {"operating_points": operating_points()}
    if study is not None:
        from focalcal.experiments import load_study

        chosen = load_study(study, seeds=seeds, data_dir=data_dir)
        out = out or opened[0].path / FOLDER / chosen.name
        options |= {"specs": chosen.specs(), "title": chosen.title, "temperature": chosen.temperature}
    made = write_report(opened, out=out, against_paper=against is Against.paper, with_figures=figures, **options)
    if as_json:
        print_json(_record(made))
        return
    from focalcal.analysis.contenders import constant_guesses
    from focalcal.reports.study_summary import flag_sentences, gap_sentences

    for sentence in (*gap_sentences(made.evidence.missing), *flag_sentences(constant_guesses(made.evidence))):
        typer.echo(f"focalcal: {sentence}", err=True)
    for path in (*made.files, made.page):
        typer.echo(path)


def _record(made: Report) -> dict[str, Any]:
    from focalcal.reports.study_summary import gap_sentences, summary

    in_words = summary(made.evidence)
    return {
        "page": str(made.page),
        "files": [str(path) for path in made.files],
        "runs": len(made.evidence.runs),
        "missing": gap_sentences(made.evidence.missing),
        **{name: list(getattr(in_words, name)) for name in ("flags", "best", "significant", "unknown")},
    }
