"""`focalcal theory`: what the theory of Focal Calibration Loss promises, in numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from focalcal.cli.distributions import given_rows
from focalcal.cli.failures import plain_failures

app = typer.Typer(
    help="What the theory of Focal Calibration Loss promises, in numbers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_Posterior = Annotated[
    list[float] | None, typer.Argument(help="The class probabilities, for example 0.7 0.2 0.1", show_default=False)
]
_File = Annotated[
    Path | None, typer.Option(help="Take the rows of this .csv or .npy file instead.", show_default=False)
]
_Gamma = Annotated[float, typer.Option(help="The focusing of the focal term, >= 0.")]
_Lam = Annotated[float, typer.Option(help="The weight of the Brier anchor, >= 0.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON; null stands for infinity.")]


@app.command()
def solve(
    eta: _Posterior = None, gamma: _Gamma = 3.0, lam: _Lam = 1.0, file: _File = None, as_json: _Json = False
) -> None:
    """What a perfect model learns, q*, when the class probabilities are eta."""
    with plain_failures():
        from focalcal.reports.theory_facts import posterior_facts

        facts = [posterior_facts(row, gamma=gamma, lam=lam) for row in given_rows("eta", eta, file)]
        if as_json:
            _print_json([one.record() for one in facts])
            return
        for i, one in enumerate(facts):
            of = f"posterior {i + 1} of {len(facts)}, " if len(facts) > 1 else ""
            typer.echo(f"{of}gamma = {gamma:g}, lam = {lam:g}\n\n{one.classes().text()}\n{one.figures().text()}")


@app.command()
def bound(
    eta: _Posterior = None,
    gamma: _Gamma = 3.0,
    lam: _Lam = 1.0,
    classes: Annotated[int | None, typer.Option(help="Bound all posteriors of so many classes instead.")] = None,
    file: _File = None,
    as_json: _Json = False,
) -> None:
    """Bounds on |q* - eta|_2, without solving for q*."""
    with plain_failures():
        if classes is not None and (eta or file):
            raise ValueError("--classes bounds every posterior: give it without eta and --file")
        from focalcal.reports.tables import Table
        from focalcal.reports.theory_facts import posterior_bounds
        from focalcal.theory.bounds import log_classes_bound
        from focalcal.theory.sharp_bounds import simplex_bound

        if classes is not None:
            sharp = float(simplex_bound(gamma=gamma, lam=lam))  # for any number of classes
            bounds = [{"log_classes": float(log_classes_bound(classes, lam=lam)), "simplex": sharp}]
        else:
            bounds = [posterior_bounds(row, gamma=gamma, lam=lam) for row in given_rows("eta", eta, file)]
        if as_json:
            _print_json(bounds)
        else:
            columns = {name.replace("_", " "): [row[name] for row in bounds] for name in bounds[0]}
            typer.echo(Table(columns, digits=4).text(), nl=False)


@app.command()
def recover(
    q: Annotated[list[float] | None, typer.Argument(help="The predicted probabilities.", show_default=False)] = None,
    gamma: _Gamma = 3.0,
    lam: _Lam = 1.0,
    file: _File = None,
    as_json: _Json = False,
) -> None:
    """The class probabilities eta that a perfect model turns into these predictions q."""
    with plain_failures():
        from focalcal.reports.tables import Table
        from focalcal.theory.recovery import recover as recovered

        rows = given_rows("q", q, file)
        eta = recovered(rows, gamma=gamma, lam=lam)
        if as_json:
            _print_json([{"q": a, "eta": b} for a, b in zip(rows.tolist(), eta.tolist(), strict=True)])
        else:
            for before, after in zip(rows, eta, strict=True):
                table = Table({"class": range(1, len(after) + 1), "q": before, "eta": after}, digits=4)
                typer.echo(table.text())


@app.command()
def lam(
    tolerance: Annotated[
        float, typer.Option(help="The largest |q* - eta|_2 that is allowed, > 0.", show_default=False)
    ],
    eta: _Posterior = None,
    gamma: _Gamma = 3.0,
    classes: Annotated[int | None, typer.Option(help="For all posteriors of so many classes instead.")] = None,
    file: _File = None,
    as_json: _Json = False,
) -> None:
    """The smallest lam that keeps q* within a tolerance of these posteriors, or of all."""
    with plain_failures():
        from focalcal.reports.tables import number
        from focalcal.theory.tolerance import lam_for

        posteriors = given_rows("eta", eta, file) if classes is None or eta or file else None
        found = float(lam_for(tolerance, posteriors, gamma=gamma, classes=classes))
        if as_json:
            _print_json({"tolerance": tolerance, "gamma": gamma, "lam": found})
        else:
            typer.echo(f"lam = {number(found, digits=6)}")


@app.command()
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
            found = run_study(cross_check=cross_check, progress=progress)
        paths = write_study(found, out)
        for path in paths:
            typer.echo(path)
        typer.echo(f"open {paths[0]} in a browser, or read {paths[-1]}")


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(_null_for_infinity(value), indent=2, allow_nan=False))


def _null_for_infinity(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _null_for_infinity(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_null_for_infinity(one) for one in value]
    return None if isinstance(value, float) and value in (float("inf"), float("-inf")) else value
