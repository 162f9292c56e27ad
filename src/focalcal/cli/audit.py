"""`focalcal audit`: can these probabilities be trusted, and what would fix them."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from focalcal.cli.options import Json, column_names, given
from focalcal.cli.output import json_text, plain_failures, print_json

if TYPE_CHECKING:
    from focalcal.auditing import Audit, Gate

FAILED = 1  # exit code of a gate that is not met


@plain_failures()
def audit(
    files: Annotated[
        list[Path],
        typer.Argument(help="Predictions with labels: .csv, .parquet, .npz or .npy files, or folders of parts."),
    ],
    probs: Annotated[
        str | None, typer.Option(help="The columns of probabilities: 'p_*' for p_0, p_1, ..., or names with commas.")
    ] = None,
    logits: Annotated[str | None, typer.Option(help="The columns of logits, in place of probabilities.")] = None,
    score: Annotated[
        str | None, typer.Option(help="For two classes: the one column with the probability of the positive class.")
    ] = None,
    labels: Annotated[str | None, typer.Option(help="The column of labels.")] = None,
    positive: Annotated[
        str | None, typer.Option(help="The label that the column of --score belongs to, where labels are names.")
    ] = None,
    confidence: Annotated[
        str | None,
        typer.Option(
            help="For rows without probabilities of all classes: the column with each prediction's confidence."
        ),
    ] = None,
    correct: Annotated[
        str | None, typer.Option(help="The column that says whether the prediction is right; goes with --confidence.")
    ] = None,
    groups: Annotated[str | None, typer.Option(help="A column whose values are audited apart, e.g. a site.")] = None,
    ids: Annotated[str | None, typer.Option(help="A column of names for rows, to list mistakes by.")] = None,
    classes: Annotated[Path | None, typer.Option(help="A text file with one class name per line.")] = None,
    calibrate: Annotated[
        str, typer.Option(help="Which calibrators to try: auto for all, none, or names with commas.")
    ] = "auto",
    trained_with: Annotated[
        tuple[float, float],
        typer.Option(help="The gamma and lam of the loss that the network was trained with; 0 0 is cross-entropy."),
    ] = (0.0, 0.0),
    baseline: Annotated[Path | None, typer.Option(help="Another model's predictions of the same rows.")] = None,
    fail_if: Annotated[
        list[str] | None, typer.Option(help="Exit with 1 if this holds, e.g. 'ece > 0.05'; may be repeated.")
    ] = None,
    fail_on: Annotated[
        str, typer.Option(help="What a gate compares: interval (the end that favours the model) or estimate.")
    ] = "interval",
    out: Annotated[
        Path | None, typer.Option(help="Write audit.html, metrics.json and calibrator.json into this folder.")
    ] = None,
    executor: Annotated[
        Literal["local", "ray"],
        typer.Option(help="Who reads the parts of Parquet files: threads of this process, or a Ray cluster."),
    ] = "local",
    address: Annotated[
        str | None, typer.Option(help="The address of a running Ray cluster; by default one is started here.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write the gates as a JUnit file for CI systems.")] = None,
    as_json: Json = False,
) -> None:
    """Say how far the confidences of a model can be trusted, with error bars, and what would fix them.

    Exit codes: 0 if every gate passes, 1 if one fails, 2 for input that cannot be used, 3 for any other error.

    Example: focalcal audit predictions.parquet --labels y --fail-if 'ece > 0.05' --out audit
    """
    from focalcal.auditing import Gate
    from focalcal.auditing.files import audit_files

    gates = [Gate.parse(text) for text in fail_if or ()]
    on = _judged(fail_on)
    if out is not None and out.is_file():
        raise ValueError(f"--out must be a folder, got the file {str(out)!r}; name another")
    if score is not None and probs is not None:
        raise ValueError(f"--score and --probs both say where probabilities are, got {score!r} and {probs!r}; give one")
    columns = given(
        probs=column_names(probs) if score is None else [score],
        logits=column_names(logits),
        labels=labels,
        positive=positive,
        confidence=confidence,
        correct=correct,
        groups=groups,
        ids=ids,
        classes=None if classes is None else classes.read_text(encoding="utf-8").splitlines(),
    )
    found = audit_files(
        files,
        baseline=baseline,
        columns=columns,
        calibrate=None if calibrate == "none" else calibrate if calibrate == "auto" else calibrate.split(","),
        trained_with=trained_with,
        gates=gates,
        executor=executor,
        address=address,
    )
    failed = [gate for gate in gates if gate.holds(found.metrics, on)]
    if out is not None:
        _write(found, out)
    if junit is not None:
        _write_junit(gates, failed, found, junit)
    if as_json:
        print_json({**found.record(), "gates": [{"gate": str(g), "failed": g in failed} for g in gates]})
    else:
        typer.echo(_text(found))
        for gate in gates:
            interval = found.metrics[gate.metric]
            typer.echo(f"{'FAILED' if gate in failed else 'passed'}: fail if {gate}; {gate.metric} is {interval}")
        if out is not None:
            typer.echo(out / "audit.html")
    if failed:
        raise typer.Exit(FAILED)


def _judged(text: str) -> Literal["interval", "estimate"]:
    if text not in ("interval", "estimate"):
        raise ValueError(f"--fail-on must be interval or estimate, got {text!r}")
    return text  # type: ignore[return-value]


def _text(found: Audit) -> str:
    from focalcal.auditing.tables import change_table, fix_table, metric_table, part_table, threshold_table

    parts = [_wrapped(found.verdict.sentence), "", metric_table(found).text()]
    for heading, rows in (("Groups, worst first", found.groups), ("Predicted classes, worst first", found.classes)):
        if rows:
            shown = part_table(rows[:10]).text()
            parts += [f"{heading}{f' (10 of {len(rows)})' if len(rows) > 10 else ''}:", shown]
    parts += ["What a threshold on the confidence buys:", threshold_table(found).text()]
    if found.fixes is not None:
        parts += [
            "Calibrators, on rows they were not fitted on:",
            fix_table(found.fixes).text(),
            _wrapped(found.fixes.sentence),
        ]
    if found.operating_point is not None:
        parts.append(_wrapped(f"For the next training: {found.operating_point.sentence}"))
    if found.changes:
        parts += ["", "Against the baseline:", change_table(found).text()]
    return "\n".join([*parts, *map(_wrapped, found.notes)])


def _wrapped(sentence: str) -> str:
    return textwrap.fill(sentence, 80, break_on_hyphens=False)


def _write(found: Audit, folder: Path) -> None:
    from focalcal.core.atomic import write_atomically

    folder.mkdir(parents=True, exist_ok=True)
    found.html(folder / "audit.html")
    write_atomically(folder / "metrics.json", json_text(found.record()).encode())
    if found.fixes is not None and found.fixes.calibrator is not None:
        found.fixes.calibrator.save(folder / "calibrator.json")


def _write_junit(gates: list[Gate], failed: list[Gate], found: Audit, path: Path) -> None:
    from xml.etree import ElementTree

    from focalcal.core.atomic import write_atomically

    suite = ElementTree.Element("testsuite", name="focalcal audit", tests=str(len(gates)), failures=str(len(failed)))
    for gate in gates:
        case = ElementTree.SubElement(suite, "testcase", classname="focalcal.audit", name=f"not {gate}")
        if gate in failed:
            message = f"{gate.metric} is {found.metrics[gate.metric]}"
            ElementTree.SubElement(case, "failure", message=message).text = found.verdict.sentence
    write_atomically(path, ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
