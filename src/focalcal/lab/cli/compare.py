"""`focalcal compare`: one objective against others, paired by seed, from stored runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from focalcal.cli.options import Json
from focalcal.cli.output import plain_failures, print_json
from focalcal.lab.cli.options import DataDir, Stores, open_stores

if TYPE_CHECKING:
    from focalcal.lab.evidence.evidence import Evidence
    from focalcal.lab.store import Spec

NOT_TESTED = 1  # exit code where no test at all could be made


@plain_failures()
def compare(
    candidate: Annotated[
        str | None,
        typer.Argument(
            help="The objective to judge: fcl, or of a sweep 'fcl lam=0.5', or a pattern such as 'fcl*'; default: what "
            "the study names, else fcl, else the first that is not ce."
        ),
    ] = None,
    baselines: Annotated[
        list[str] | None, typer.Argument(help="What to compare it with, names or patterns; default: every other.")
    ] = None,
    store: Stores = None,
    study: Annotated[str | None, typer.Option(help="Only the cells of this study, by name or .toml file.")] = None,
    metrics: Annotated[
        str, typer.Option(help="The metrics to test, separated by commas; they are one family.")
    ] = "ece,adaptive_ece,nll,brier",
    split: Annotated[str, typer.Option(help="The split that is compared.")] = "test",
    alpha: Annotated[float, typer.Option(help="The chance of a false verdict in one family.")] = 0.05,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Test whether an objective is better than others, setting by setting, over the seeds that both have.

    Exact sign-flip tests, Holm's correction over the metrics of each setting and baseline.

    With few seeds no test can be significant: "cannot show", and how many seeds could.

    Of a pattern every match is judged, each by tests of its own: the best of many is no fair candidate.

    Example: focalcal compare 'fcl*' ce --metrics nll,brier
    """
    from focalcal.lab.evidence.comparisons import chosen_comparisons
    from focalcal.lab.report.sentences import warning_sentences
    from focalcal.lab.report.study_tables.paired import PairedTests

    evidence = _evidence(store, study, data_dir)
    wanted = [name.strip() for name in metrics.split(",") if name.strip()]
    families = chosen_comparisons(evidence, candidate, baselines or [], metrics=wanted, alpha=alpha, split=split)
    tests = PairedTests(tuple(families), alpha)
    if as_json:
        print_json(tests.record())
    else:
        typer.echo(tests, nl=False)
    for sentence in warning_sentences(evidence):
        typer.echo(f"focalcal: {sentence}", err=True)
    if not tests.made:
        raise typer.Exit(NOT_TESTED)


def _evidence(folders: list[Path] | None, study: str | None, data_dir: Path | None) -> Evidence:
    from focalcal.lab.evidence.evidence import collected, gather_metrics

    stores = open_stores(folders)
    told: dict[str, Any] = {"title": ", ".join(str(store.path) for store in stores)}
    specs: list[Spec] = []
    if study is not None:
        from focalcal.lab.studies import load_study

        chosen = load_study(study, data_dir=data_dir)
        specs = chosen.specs()
        told = {"title": chosen.title, "candidate": chosen.candidate, "labels": chosen.labels()}
    runs, missing = collected(stores, specs, told.get("labels", {}))
    if not runs:
        named, what = (
            ", ".join(str(store.path) for store in stores),
            f"a run of the study {study}" if study else "a run",
        )
        raise ValueError(f"store must hold {what}, got none in {named}; run `focalcal study {study or 'digits'}` first")
    return gather_metrics(runs, missing=missing, known=specs, **told)
