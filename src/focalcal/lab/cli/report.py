"""`focalcal report`: a page, tables and figures of the runs in a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from focalcal.cli.options import Json
from focalcal.cli.output import plain_failures, print_json
from focalcal.lab.cli.options import DataDir, Seeds, Stores, open_stores, report_options


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
    candidate: Annotated[
        str | None,
        typer.Option(
            help="The objective that the report is about, as the study or the loss calls it; default: what the study "
            "names, else fcl, else the first that is not ce."
        ),
    ] = None,
    section: Annotated[
        str | None,
        typer.Option(
            help="Add the section that this code makes, package.module:function; default: the one that the study names."
        ),
    ] = None,
    figures: Annotated[bool, typer.Option(help="Draw the figures, which takes longer than all the rest.")] = True,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Write report.html, which needs no network, with the tables (CSV, Markdown, LaTeX) and figures (PDF, PNG) of it.

    What is missing, failed or damaged is said, and the rest shown.

    Example: focalcal report --study digits --no-figures
    """
    from focalcal.lab.report.own_section import section_maker
    from focalcal.lab.report.report_folder import FOLDER, write_report
    from focalcal.lab.studies import load_study

    opened = open_stores(store)
    chosen = load_study(study, seeds=seeds, data_dir=data_dir) if study is not None else None
    options = report_options(chosen)
    if chosen is not None:
        out = out or opened[0].path / FOLDER / chosen.name
    if candidate is not None:
        options["candidate"] = candidate
    if section is not None:
        options["make_section"] = section_maker(section)
    made = write_report(opened, out=out, with_figures=figures, **options)
    if as_json:
        print_json(made.record())
        return
    from focalcal.lab.report.sentences import warning_sentences

    for sentence in warning_sentences(made.evidence):
        typer.echo(f"focalcal: {sentence}", err=True)
    for path in (*made.files, made.page):
        typer.echo(path)
