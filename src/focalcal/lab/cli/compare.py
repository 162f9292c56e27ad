"""`focalcal compare`: one objective against others, paired by seed, from stored runs."""

from __future__ import annotations

from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from focalcal.cli.options import Json
from focalcal.cli.output import plain_failures, print_json
from focalcal.lab.cli.options import DataDir, Stores, open_stores, told_by

if TYPE_CHECKING:
    from focalcal.lab.evidence.comparisons import Family
    from focalcal.lab.evidence.evidence import Evidence

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
    from focalcal.lab.evidence.comparisons import candidate_of, comparisons
    from focalcal.lab.evidence.contenders import constant_guesses
    from focalcal.lab.report.sentences import flag_sentences, gap_sentences

    evidence = _evidence(store, study, data_dir)
    wanted = [name.strip() for name in metrics.split(",") if name.strip()]
    candidate = candidate or candidate_of(evidence)
    _check(evidence, candidate, wanted, split)
    families = [
        family
        for name, others in _pairings(evidence, candidate or "", baselines or [])
        for family in comparisons(evidence, name, others, metrics=wanted, alpha=alpha, split=split)
    ]
    if as_json:
        print_json([asdict(family) for family in families])
    else:
        _print(families, alpha)
    for sentence in (*gap_sentences(evidence.missing), *flag_sentences(constant_guesses(evidence))):
        typer.echo(f"focalcal: {sentence}", err=True)
    if not any(family.comparisons for family in families):
        raise typer.Exit(NOT_TESTED)


def _evidence(folders: list[Path] | None, study: str | None, data_dir: Path | None) -> Evidence:
    from focalcal.lab.evidence.evidence import measured, reading_order
    from focalcal.lab.evidence.gaps import gaps_of_stores
    from focalcal.lab.store.merge import runs_of

    stores = open_stores(folders)
    runs, findings = runs_of(stores)
    named = ", ".join(str(store.path) for store in stores)
    told: dict[str, Any] = {"title": named}
    if study is not None:
        from focalcal.lab.studies import load_study

        told = told_by(load_study(study, data_dir=data_dir))
        told["known"] = told.pop("specs")
        keys = {spec.key for spec in told["known"]}
        runs = [run for run in runs if run.key in keys]
    if not runs:
        what = f"a run of the study {study}" if study else "a run"
        raise ValueError(f"store must hold {what}, got none in {named}; run `focalcal study {study or 'digits'}` first")
    return measured(reading_order(runs), missing=gaps_of_stores(findings), **told)


def _pairings(evidence: Evidence, candidate: str, baselines: list[str]) -> list[tuple[str, list[str] | None]]:
    """Each candidate with its baselines; None stands for every other objective of its setting."""
    candidates = _matching(evidence, candidate)
    if candidate in baselines:
        raise ValueError(f"baselines must not hold the candidate, got {candidate!r}; compare it with another")
    others = list(dict.fromkeys(name for baseline in baselines for name in _matching(evidence, baseline)))
    if not others:
        return [(name, None) for name in candidates]
    return [(name, [other for other in others if other != name]) for name in candidates]


def _matching(evidence: Evidence, pattern: str) -> list[str]:
    """The objectives of that name, or that a pattern with * and ? matches; the error says which there are."""
    points = evidence.named(pattern)
    if (
        matches := points[:1]
        if len(points) == 1
        else [name for name in evidence.objectives if fnmatchcase(name, pattern)]
    ):
        return matches
    known = ", ".join(map(repr, points or evidence.objectives))
    remedy = f"name one of them, or all with {f'{pattern}*'!r}" if points else "name one of them, or a pattern"
    raise ValueError(f"objectives must be among those of the runs, {known}, got {pattern!r}; {remedy}")


def _check(evidence: Evidence, candidate: str | None, metrics: list[str], split: str) -> None:
    """Refuse what no run has, and name what there is."""
    from focalcal.core.checks import one_of
    from focalcal.lab.evidence.metric_names import UNDIRECTED

    if len(evidence.objectives) < 2:
        raise ValueError(
            f"the store must hold two objectives to compare, got {evidence.objectives[0]!r} alone; train another"
        )
    if candidate is None:
        known = ", ".join(map(repr, evidence.objectives))
        raise ValueError(f"candidate must be given where none is chosen by default, got none; name one of {known}")
    one_of("split", split, dict.fromkeys(name for run in evidence.runs for name in run.metrics))
    measured = dict.fromkeys(name for run in evidence.runs for name in run.metrics.get(split, {}))
    whole = [name for name in measured if "/" not in name and name not in UNDIRECTED]  # not ece/Hernia
    for metric in metrics:
        if metric not in measured:
            one_of("metrics", metric, whole)


def _print(families: list[Family], alpha: float) -> None:
    from focalcal.lab.evidence.comparisons import seeds_needed
    from focalcal.lab.report.study_tables.paired import comparison_table, limits_of_comparisons, verdict_table

    table, verdicts = comparison_table(families, alpha=alpha), verdict_table(families, alpha=alpha)
    if table is None or verdicts is None:
        for sentence in limits_of_comparisons(families, alpha) or [
            "no setting has the candidate and another objective"
        ]:
            typer.echo(sentence)
        typer.echo("no test could be made")
        return
    typer.echo(table.text())
    typer.echo(verdicts.text(), nl=False)
    if not any(family.reachable for family in families):
        tests = max(len(family.comparisons) for family in families)
        typer.echo(f"\nNo comparison can be significant: {tests} tests need {seeds_needed(tests, alpha)} seeds.")
