"""`focalcal theory`: what the theory of Focal Calibration Loss promises, in numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from focalcal.cli.distributions import given_rows, numbers
from focalcal.cli.options import Json
from focalcal.cli.output import plain_failures, print_json
from focalcal.cli.theory_operating_point import operating_point_command
from focalcal.cli.theory_population import population

app = typer.Typer(
    help="What the theory of Focal Calibration Loss promises, in numbers.",
    epilog="Example: focalcal theory solve 0.7 0.2 0.1 --gamma 3 --lam 1",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_NEGATIVE = {"ignore_unknown_options": True}  # so that -0.1 reaches the check that says what is wrong with it
_EVERY_POSTERIOR = ", or --classes 3 for every posterior of three classes"
_Posterior = Annotated[list[str] | None, typer.Argument(help="The class probabilities, for example 0.7 0.2 0.1")]
_File = Annotated[
    Path | None,
    typer.Option(
        help="Take the rows of this .csv or .npy file instead; rows that sum to 1 within 1e-3, as those of a softmax "
        "in float32, are divided by their sums."
    ),
]
_Gamma = Annotated[float, typer.Option(help="The focusing of the focal term, >= 0.")]
_Lam = Annotated[float, typer.Option(help="The weight of the Brier anchor, >= 0.")]
_PositiveLam = Annotated[float, typer.Option(help="The weight of the Brier anchor, > 0.")]


@app.command(context_settings=_NEGATIVE)
@plain_failures()
def solve(
    eta: _Posterior = None,
    gamma: _Gamma = 3.0,
    lam: _Lam = 1.0,
    anchor: Annotated[
        str,
        typer.Option(
            help="The anchor: l2 is FCL's, the Brier score |q - e_y|_2^2; l1 is |q - e_y|_1, which for a large lam "
            "puts all probability on the most probable class."
        ),
    ] = "l2",
    file: _File = None,
    as_json: Json = False,
) -> None:
    """Print what a perfect model learns, q*, when the class probabilities are eta.

    Example: focalcal theory solve 0.7 0.2 0.1 --gamma 3 --lam 1 --anchor l1
    """
    from focalcal.cli.theory_facts import class_table, posterior_table
    from focalcal.theory.facts import posterior_facts

    given = given_rows("eta", eta, file)
    facts = posterior_facts(given.rows, gamma=gamma, lam=lam, anchor=anchor, place=given.place)
    if as_json:
        print_json([posterior.record() for posterior in facts])
        return
    for i, posterior in enumerate(facts):
        of = f"posterior {i + 1} of {len(facts)}, " if len(facts) > 1 else ""
        absolute = ", l1 anchor" if anchor == "l1" else ""
        tables = f"{class_table(posterior).text()}\n{posterior_table(posterior).text()}"
        typer.echo(f"{of}{_at(gamma, lam)}{absolute}\n\n{tables}")


@app.command(context_settings=_NEGATIVE)
@plain_failures()
def bound(
    eta: _Posterior = None,
    gamma: _Gamma = 3.0,
    lam: _PositiveLam = 1.0,
    classes: Annotated[int | None, typer.Option(help="Bound all posteriors of so many classes instead.")] = None,
    file: _File = None,
    as_json: Json = False,
) -> None:
    """Print bounds on |q* - eta|_2, without solving for q*.

    Example: focalcal theory bound 0.7 0.2 0.1 --gamma 3 --lam 10
    """
    if classes is not None and (eta or file):
        raise ValueError("--classes bounds every posterior: give it without eta and --file")
    from focalcal.cli.theory_facts import bound_texts
    from focalcal.pages.tables import Table
    from focalcal.theory.bounds import log_classes_bound, simplex_bound
    from focalcal.theory.facts import posterior_bounds

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
@plain_failures()
def recover(
    q: Annotated[list[str] | None, typer.Argument(help="The predicted probabilities.")] = None,
    gamma: _Gamma = 3.0,
    lam: _Lam = 1.0,
    file: _File = None,
    as_json: Json = False,
) -> None:
    """Print the class probabilities eta that a perfect model turns into these predictions q.

    Example: focalcal theory recover 0.567 0.2666 0.1664 --gamma 3 --lam 1
    """
    from focalcal.pages.tables import Table
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
@plain_failures()
def lam(
    tolerance: Annotated[float, typer.Option(help="The largest |q* - eta|_2 that is allowed, > 0.")],
    eta: _Posterior = None,
    gamma: _Gamma = 3.0,
    classes: Annotated[
        int | None, typer.Option(help="A lam that suffices for every posterior of so many classes instead.")
    ] = None,
    file: _File = None,
    as_json: Json = False,
) -> None:
    """Print the smallest lam that keeps q* within a tolerance of these posteriors, or one that does so for all.

    The latter, with --classes, comes from a bound: a smaller lam may do, too.

    Example: focalcal theory lam 0.7 0.2 0.1 --gamma 3 --tolerance 0.01
    """
    from focalcal.pages.tables import number
    from focalcal.theory.tolerance import lam_for

    wanted = classes is None or eta or file
    posteriors = given_rows("eta", eta, file, instead=_EVERY_POSTERIOR).rows if wanted else None
    smallest = float(lam_for(tolerance, posteriors, gamma=gamma, classes=classes))
    if as_json:
        asked = {"classes": classes} if posteriors is None else {"posteriors": len(posteriors)}
        print_json({"tolerance": tolerance, "gamma": gamma, **asked, "lam": smallest})
        return
    if posteriors is None:
        what = f"suffices for every posterior of {classes} classes"
    else:
        many = "this posterior" if len(posteriors) == 1 else f"these {len(posteriors)} posteriors"
        what = f"is the smallest that suffices for {many}"
    typer.echo(f"lam = {number(smallest, digits=6)} {what}: |q* - eta|_2 <= {tolerance:g} at gamma = {gamma:g}")


@app.command(context_settings=_NEGATIVE)
@plain_failures()
def gap(
    eta: _Posterior = None, gamma: _Gamma = 3.0, lam: _Lam = 1.0, file: _File = None, as_json: Json = False
) -> None:
    """Print the risk by which every prediction with a wrong decision exceeds the least, when the posterior is eta.

    A decision is wrong if the most probable class is not alone on top. The gap is 0 where two classes tie for it.

    Example: focalcal theory gap 0.5 0.3 0.2 --gamma 3 --lam 1
    """
    from focalcal.pages.tables import Table
    from focalcal.theory.consistency import decision_gap

    rows = given_rows("eta", eta, file).rows
    gaps = decision_gap(rows, gamma=gamma, lam=lam)
    if as_json:
        pairs = zip(rows.tolist(), gaps.tolist(), strict=True)
        print_json([{"gamma": gamma, "lam": lam, "eta": row, "gap": risk} for row, risk in pairs])
        return
    ranked = (-rows).argsort(1, kind="stable") + 1
    columns: dict[str, Any] = {"posterior": range(1, len(rows) + 1), "most probable class": ranked[:, 0]}
    if rows.shape[1] > 1:
        columns["runner-up"] = ranked[:, 1]
    typer.echo(f"{_at(gamma, lam)}\n\n{Table(columns | {'decision gap': gaps}, digits=4).text()}", nl=False)


@app.command(context_settings=_NEGATIVE)
@plain_failures()
def gradients(
    eps: Annotated[
        list[str] | None,
        typer.Argument(
            help="The probability that the true class lacks, 1 - p_t, between 0 and 1. Default: 0.5 0.1 0.01 0.001."
        ),
    ] = None,
    gamma: _Gamma = 3.0,
    lam: _Lam = 1.0,
    classes: Annotated[int, typer.Option(help="The number of classes; the others share eps equally.")] = 10,
    as_json: Json = False,
) -> None:
    """Print how the parts of FCL pull at the true class's logit of an example that becomes easy.

    Given are the gradients of the focal term, of both anchors and of cross-entropy, and the l2 anchor's share of FCL's.

    The second table says with which power of eps = 1 - p_t each of them vanishes.

    Example: focalcal theory gradients 0.1 0.01 --gamma 3 --lam 1 --classes 10
    """
    from focalcal.cli.theory_facts import exponent_table, gradient_table
    from focalcal.theory.gradients import gradient_facts

    at = numbers("eps", eps or ["0.5", "0.1", "0.01", "0.001"], example="0.1 0.01")
    facts = gradient_facts(at, gamma=gamma, lam=lam, classes=classes)
    if as_json:
        print_json(facts.record())
        return
    head = f"{_at(gamma, lam)}, {classes} classes; d loss / d z_y at p_t = 1 - eps"
    typer.echo(f"{head}\n\n{gradient_table(facts).text()}")
    typer.echo(
        f"over eps from {facts.fitted[0]:.2g} to {facts.fitted[1]:.2g}\n\n{exponent_table(facts).text()}", nl=False
    )


app.command(name="operating-point", context_settings=_NEGATIVE)(operating_point_command)
app.command()(population)


def _at(gamma: float, lam: float) -> str:
    return f"gamma = {gamma:g}, lam = {lam:g}"
