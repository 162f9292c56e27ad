"""`focalcal theory study`: the paper's controlled validation on exact solutions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from focalcal.cli.failures import plain_failures


def study(
    out: Annotated[Path, typer.Option(help="The folder for tables, figure and page.")] = Path("runs/theory"),
    cross_check: Annotated[bool, typer.Option(help="Solve everything again with SLSQP, which takes minutes.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files there that are not a study's.")] = False,
) -> None:
    """Check the paper's predictions on exact solutions, and write tables, a figure and a page."""
    with plain_failures():
        from focalcal.cli.progress import bar
        from focalcal.reports.theory_study import check_folder, check_packages, write_study
        from focalcal.theory.study import run_study

        check_packages()
        check_folder(out, force=force, name="--out")
        with bar("cross-checking") as progress:
            solved = run_study(cross_check=cross_check, progress=progress)
        paths = write_study(solved, out)
        for path in paths:
            typer.echo(path)
        typer.echo(f"open {paths[0]} in a browser, or read {paths[-1]}")
