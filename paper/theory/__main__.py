"""`python -m paper.theory`: the paper's numerical study, solved again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from focalcal.cli.output import plain_failures
from focalcal.lab.cli.options import Store, open_store

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
@plain_failures()
def study(
    out: Annotated[
        Path | None, typer.Option(help="The folder for tables, figure and page; default: report/theory in the store.")
    ] = None,
    store: Store = None,
    cross_check: Annotated[bool, typer.Option(help="Solve everything again with SLSQP, which takes minutes.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files there that are not a study's.")] = False,
) -> None:
    """Check the paper's predictions on exact solutions, and write tables, a figure and a page.

    Example: python -m paper.theory --no-cross-check --out theory-study
    """
    from focalcal.lab.cli.progress import bar
    from focalcal.lab.report.report_folder import FOLDER
    from paper.theory.result_files import check_folder, check_theory_packages, write_study
    from paper.theory.theory_study import run_study

    check_theory_packages()
    if out is None:
        out = open_store(store, create=True).path / FOLDER / "theory"  # beside the reports of studies
    check_folder(out, force=force, name="--out")
    with bar("cross-checking") as progress:
        solved = run_study(cross_check=cross_check, progress=progress)
    paths = write_study(solved, out)
    for path in paths:
        typer.echo(path)
    typer.echo(f"open {paths[0]} in a browser, or read {paths[-1]}")


if __name__ == "__main__":
    app()
