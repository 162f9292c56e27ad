"""`focalcal theory population`: the exact calibration of a population that a file describes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from focalcal.cli.options import Json
from focalcal.cli.output import plain_failures, print_json


@plain_failures()
def population(
    file: Annotated[
        Path,
        typer.Argument(
            help="The states: a .csv file with the headings eta_1, eta_2, ..., and if wanted weight and q_1, q_2, ...; "
            "or a .json file with a list of objects that have eta, and if wanted weight and q, such as "
            "`focalcal theory solve --json` prints."
        ),
    ],
    gamma: Annotated[
        float | None,
        typer.Option(help="The focusing at which q* is solved for where the file has no q, >= 0; 3 by default."),
    ] = None,
    lam: Annotated[float | None, typer.Option(help="The weight of the Brier anchor there, >= 0; 1 by default.")] = None,
    bins: Annotated[int, typer.Option(help="The number of bins of the population ECE.")] = 15,
    tolerance: Annotated[
        float,
        typer.Option(help="States whose confidences differ by no more than this have the same; 1e-6 suits float32."),
    ] = 1e-12,
    as_json: Json = False,
) -> None:
    """Print how well calibrated predictions over a population of states are: exactly, without sampling.

    A state has a posterior eta, a prediction q, and a weight: weights are divided by their sum, and equal by default.

    Where the file has no q, the states are solved for q*, what a perfect model learns with FCL at gamma and lam.

    Printed are Cal2^2, the population ECE, what bounds them, Murphy's decomposition and the Brier score.

    Example: focalcal theory population states.csv --gamma 3 --lam 1
    """
    from focalcal.cli.distributions import read_states
    from focalcal.cli.theory_facts import population_table
    from focalcal.theory.facts import population_facts

    states = read_states(file)
    if states.q is not None and (gamma is not None or lam is not None):
        raise ValueError(f"{file} gives predictions q: leave out --gamma and --lam, or take q out of the file")
    if states.q is None:
        gamma, lam = 3.0 if gamma is None else gamma, 1.0 if lam is None else lam
    facts = population_facts(
        states.eta, states.weights, probs=states.q, gamma=gamma, lam=lam, n_bins=bins, tolerance=tolerance
    )
    if as_json:
        print_json(facts.record())
        return
    what = "the predictions of the file" if states.q is not None else f"q* at gamma = {gamma:g}, lam = {lam:g}"
    many = "1 state" if facts.states == 1 else f"{facts.states} states"
    typer.echo(f"{many}, {facts.classes} classes; {what}\n\n{population_table(facts).text()}", nl=False)
