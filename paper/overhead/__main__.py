"""`python -m paper.overhead`: what the objectives cost on this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from focalcal.cli.options import Json
from focalcal.cli.output import plain_failures, print_json

if TYPE_CHECKING:
    from focalcal.pages.tables import Table
    from paper.overhead.measure import Overhead, Timing


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
@plain_failures()
def overhead(
    model: Annotated[str, typer.Option(help="The network whose training step is timed.")] = "resnet8",
    batch: Annotated[int, typer.Option(help="The number of examples per batch.")] = 128,
    classes: Annotated[int, typer.Option(help="The number of classes.")] = 10,
    device: Annotated[str, typer.Option(help="What torch runs on: cpu, cuda, mps.")] = "cpu",
    threads: Annotated[int, typer.Option(help="How many threads torch uses on a CPU.")] = 1,
    seconds: Annotated[float, typer.Option(help="How long to measure, about; more is more precise.")] = 40.0,
    as_json: Json = False,
) -> None:
    """Time every objective against cross-entropy: the loss alone, and within a training step.

    Cross-entropy is timed again at the end of each round: how far that control is from 1 is how far the noise reaches.

    Example: python -m paper.overhead --model resnet20 --seconds 120
    """
    from focalcal.lab.cli.options import check_device
    from focalcal.lab.cli.progress import bar
    from paper.overhead.measure import overhead as measured
    from paper.record import here

    with bar("timing") as progress:
        costs = measured(
            model=model,
            batch=batch,
            classes=classes,
            device=check_device(device),
            threads=threads,
            seconds=seconds,
            progress=progress,
        )
    if as_json:
        print_json(asdict(costs) | here())
    else:
        typer.echo(overhead_text(costs), nl=False)


def overhead_text(costs: Overhead) -> str:
    """Two tables, with the paper's ratios beside ours where it states them for this shape; theirs are from an A100."""
    from paper.overhead.measure import PAPER_LOSS, PAPER_STEP, PAPER_STEP_MEMORY

    papers_shape = (costs.batch, costs.classes) == (128, 10)
    threads = f", {costs.threads} thread{'s' if costs.threads > 1 else ''}" if costs.device.startswith("cpu") else ""
    shape = f"{costs.batch} x {costs.classes} logits"
    loss = _table(costs.loss, {"paper: time": PAPER_LOSS} if papers_shape else {})
    step = _table(costs.step, {"paper: time": PAPER_STEP, "paper: memory": PAPER_STEP_MEMORY} if papers_shape else {})
    text = (
        f"{costs.device}{threads}\n\n"
        f"loss alone, forward and backward of {shape}; medians of {costs.rounds[0]} rounds\n\n{loss.text()}\n"
        f"a training step of {costs.model}; medians of {costs.rounds[1]} rounds\n\n{step.text()}"
    )
    if papers_shape:
        text += (
            "\nThe paper's columns are what it prints for an A100, a step being ResNet-50's;\n"
            "nothing of it was measured here. Its control agrees with cross-entropy to 0.6 %\n"
            "in time and 0.1 % in memory.\n"
        )
    return text


def _table(timings: tuple[Timing, ...], paper: dict[str, dict[str, float]]) -> Table:
    from focalcal.pages.tables import Table

    columns: dict[str, list[object]] = {
        "objective": [timing.name for timing in timings],
        "ms": [1000 * timing.seconds for timing in timings],
        "time": [timing.ratio for timing in timings],
        "MB": [None if timing.memory is None else timing.memory / 1e6 for timing in timings],
        "memory": [timing.memory_ratio for timing in timings],
    }
    printed: dict[str, list[object]] = {
        title: [of.get(timing.name) for timing in timings] for title, of in paper.items()
    }
    return Table(columns | printed, headings={"time": "x time", "memory": "x memory"}, digits=4)


if __name__ == "__main__":
    app()
