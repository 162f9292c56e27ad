"""`focalcal theory`: what the theory of Focal Calibration Loss promises, in numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from focalcal.cli.distributions import given_rows
from focalcal.cli.failures import plain_failures
from focalcal.cli.plain_json import Json, print_json

app = typer.Typer(
    help="What the theory of Focal Calibration Loss promises, in numbers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_NEGATIVE = {"ignore_unknown_options": True}  # so that -0.1 reaches the check that says what is wrong with it
_EVERY_POSTERIOR = ", or --classes 3 for every posterior of three classes"
_Posterior = Annotated[
    list[str] | None,
    typer.Argument(help="The class probabilities, for example 0.7 0.2 0.1", show_default=False),
]
_File = Annotated[
    Path | None,
    typer.Option(
        help="Take the rows of this .csv or .npy file instead; rows that sum to 1 within 1e-5, as those of a softmax "
        "in float32, are divided by their sums.",
        show_default=False,
    ),
]
_Gamma = Annotated[float, typer.Option(help="The focusing of the focal term, >= 0.")]
_Lam = Annotated[float, typer.Option(help="The weight of the Brier anchor, >= 0.")]
_PositiveLam = Annotated[float, typer.Option(help="The weight of the Brier anchor, > 0.")]


@app.command(context_settings=_NEGATIVE)
def solve(
    eta: _Posterior = None, gamma: _Gamma = 3.0, lam: _Lam = 1.0, file: _File = None, as_json: Json = False
) -> None:
    """What a perfect model learns, q*, when the class probabilities are eta."""
    with plain_failures():
        from focalcal.reports.theory_facts import posterior_facts

        given = given_rows("eta", eta, file)
        facts = posterior_facts(given.rows, gamma=gamma, lam=lam, place=given.place)
        if as_json:
            print_json([one.record() for one in facts])
            return
        for i, one in enumerate(facts):
            of = f"posterior {i + 1} of {len(facts)}, " if len(facts) > 1 else ""
            typer.echo(f"{of}{_at(gamma, lam)}\n\n{one.classes().text()}\n{one.figures().text()}")


@app.command(context_settings=_NEGATIVE)
def bound(
    eta: _Posterior = None,
    gamma: _Gamma = 3.0,
    lam: _PositiveLam = 1.0,
    classes: Annotated[int | None, typer.Option(help="Bound all posteriors of so many classes instead.")] = None,
    file: _File = None,
    as_json: Json = False,
) -> None:
    """Bounds on |q* - eta|_2, without solving for q*."""
    with plain_failures():
        if classes is not None and (eta or file):
            raise ValueError("--classes bounds every posterior: give it without eta and --file")
        from focalcal.reports.tables import Table
        from focalcal.reports.theory_facts import bound_texts, posterior_bounds
        from focalcal.theory.bounds import log_classes_bound
        from focalcal.theory.sharp_bounds import simplex_bound

        if classes is not None:
            sharp = float(simplex_bound(gamma=gamma, lam=lam))  # for any number of classes
            bounds = [{"log_classes": float(log_classes_bound(classes, lam=lam)), "simplex": sharp}]
            columns: dict[str, list[Any]] = {"log classes": [bounds[0]["log_classes"]], "simplex": [sharp]}
        else:
            given = given_rows("eta", eta, file, instead=_EVERY_POSTERIOR)
            bounds = posterior_bounds(given.rows, gamma=gamma, lam=lam)
            texts = [bound_texts(row) for row in bounds]
            columns = {name: [row[name] for row in texts] for name in texts[0]}
        if as_json:
            asked = {"gamma": gamma, "lam": lam} | ({} if classes is None else {"classes": classes})
            print_json([asked | row for row in bounds])
        else:
            typer.echo(f"{_at(gamma, lam)}\n\n{Table(columns, digits=4).text()}", nl=False)


@app.command(context_settings=_NEGATIVE)
def recover(
    q: Annotated[list[str] | None, typer.Argument(help="The predicted probabilities.", show_default=False)] = None,
    gamma: _Gamma = 3.0,
    lam: _Lam = 1.0,
    file: _File = None,
    as_json: Json = False,
) -> None:
    """The class probabilities eta that a perfect model turns into these predictions q."""
    with plain_failures():
        from focalcal.reports.tables import Table
        from focalcal.theory.recovery import recover as recovered

        rows = given_rows("q", q, file).rows
        eta = recovered(rows, gamma=gamma, lam=lam)
        if as_json:
            pairs = zip(rows.tolist(), eta.tolist(), strict=True)
            print_json([{"gamma": gamma, "lam": lam, "q": a, "eta": b} for a, b in pairs])
        else:
            for i, (before, after) in enumerate(zip(rows, eta, strict=True)):
                of = f"prediction {i + 1} of {len(rows)}, " if len(rows) > 1 else ""
                table = Table({"class": range(1, len(after) + 1), "q": before, "eta": after}, digits=4)
                typer.echo(f"{of}{_at(gamma, lam)}\n\n{table.text()}")


@app.command(context_settings=_NEGATIVE)
def lam(
    tolerance: Annotated[
        float, typer.Option(help="The largest |q* - eta|_2 that is allowed, > 0.", show_default=False)
    ],
    eta: _Posterior = None,
    gamma: _Gamma = 3.0,
    classes: Annotated[
        int | None, typer.Option(help="A lam that suffices for every posterior of so many classes instead.")
    ] = None,
    file: _File = None,
    as_json: Json = False,
) -> None:
    """The smallest lam that keeps q* within a tolerance of these posteriors; or one that suffices for every posterior.

    The latter, with --classes, comes from a bound: a smaller lam may do, too.
    """
    with plain_failures():
        from focalcal.reports.tables import number
        from focalcal.theory.tolerance import lam_for

        wanted = classes is None or eta or file
        posteriors = given_rows("eta", eta, file, instead=_EVERY_POSTERIOR).rows if wanted else None
        found = float(lam_for(tolerance, posteriors, gamma=gamma, classes=classes))
        if as_json:
            asked = {"classes": classes} if posteriors is None else {"posteriors": len(posteriors)}
            print_json({"tolerance": tolerance, "gamma": gamma, **asked, "lam": found})
            return
        if posteriors is None:
            what = f"suffices for every posterior of {classes} classes"
        else:
            many = "this posterior" if len(posteriors) == 1 else f"these {len(posteriors)} posteriors"
            what = f"is the smallest that suffices for {many}"
        typer.echo(f"lam = {number(found, digits=6)} {what}: |q* - eta|_2 <= {tolerance:g} at gamma = {gamma:g}")


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


def _at(gamma: float, lam: float) -> str:
    return f"gamma = {gamma:g}, lam = {lam:g}"
