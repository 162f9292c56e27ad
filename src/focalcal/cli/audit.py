"""`focalcal audit`: can these probabilities be trusted, and what would fix them."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from focalcal.cli.evaluation_logs import are_logs, audit_of_logs, right_answers
from focalcal.cli.options import (
    FILE_FLAGS,
    BadPart,
    Decimal,
    Delimiter,
    DropMissing,
    Encoding,
    Files,
    Json,
    column_names,
    given,
    sources,
    table_reading,
)
from focalcal.cli.output import json_text, plain_failures, print_json

if TYPE_CHECKING:
    from focalcal.auditing import Audit, Gate

FAILED = 1  # exit code of a gate that is not met
_SHOWN = 10  # groups and classes on the terminal


@plain_failures(flags=FILE_FLAGS)
def audit(
    files: Files,
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
    event: Annotated[
        str | None,
        typer.Option(
            help="The class whose probability is audited against the rest; of more classes names with commas."
        ),
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
    groups: Annotated[
        str | None,
        typer.Option(help="Columns whose values, and intersections, are audited apart, e.g. 'site' or 'site,age'."),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="The column of weights: how many rows of the population each row stands for.")
    ] = None,
    clusters: Annotated[
        str | None,
        typer.Option(help="The column of what rows share, e.g. a patient: intervals are over these, not over rows."),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option("--time", "--times", help="The column of dates: a panel by day, week, month, quarter or year."),
    ] = None,
    ids: Annotated[str | None, typer.Option(help="A column of names for rows, to list mistakes by.")] = None,
    classes: Annotated[Path | None, typer.Option(help="A text file with one class name per line.")] = None,
    drop_missing: DropMissing = False,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    on_bad_part: BadPart = "refuse",
    calibrate: Annotated[
        str, typer.Option(help="Which calibrators to try: auto for all, none, or names with commas.")
    ] = "auto",
    trained_with: Annotated[
        str | None,
        typer.Option(
            help="The network's loss, ce or gamma and lam as 3,1: the audit then says what to train with next."
        ),
    ] = None,
    cost: Annotated[
        str | None,
        typer.Option(help="What mistakes cost: fp=1,fn=20 of an event, or a file with a matrix, labels by decisions."),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Of an event: the probability from which on to act; by default by the costs.")
    ] = None,
    baseline: Annotated[str | None, typer.Option(help="Another model's predictions of the same rows.")] = None,
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
    title: Annotated[str | None, typer.Option(help="What stands above the page.")] = None,
    model: Annotated[str | None, typer.Option(help="The name of the model, for the page.")] = None,
    pdf: Annotated[
        Path | None, typer.Option(help="Write the page as PDF, by a Chromium, Chrome or Edge that is installed.")
    ] = None,
    report: Annotated[
        Literal["tripod"] | None,
        typer.Option(help="Print, as Markdown, the items of TRIPOD+AI on calibration with the numbers filled in."),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="In evaluation logs of JSON lines: the path of the task's name, e.g. meta.task.")
    ] = None,
    question: Annotated[
        str | None, typer.Option(help="In evaluation logs of JSON lines: the path of the question, which may repeat.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="In evaluation logs: the score that says whether an answer is right.")
    ] = None,
    right_from: Annotated[
        float | None, typer.Option(help="In evaluation logs: the least grade that counts as right.")
    ] = None,
    scale: Annotated[
        Literal["unit", "percent", "1", "100"] | None,
        typer.Option(help="Whether probabilities, or confidences in evaluation logs, are from 0 to 1 or percent."),
    ] = None,
    fallback: Annotated[
        float | None, typer.Option(help="In evaluation logs: the confidence of answers that state none.")
    ] = None,
    logprobs: Annotated[
        str | None, typer.Option(help="In JSON lines: the path of log-probabilities by option or token.")
    ] = None,
    answer: Annotated[str | None, typer.Option(help="Goes with --logprobs: the path of the right one.")] = None,
    normalize: Annotated[
        Literal["rows", "options", "none"] | None,
        typer.Option(
            help="rows: divide each row of probabilities by its sum, as for printed digits or counts. With --logprobs: "
            "options (divide by their sum) or none (take them as they are)."
        ),
    ] = None,
    missing: Annotated[
        float | None, typer.Option(help="Goes with --logprobs: the probability of an option without one.")
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(help="For batches: a .json file with the right answer by custom_id.")
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
    from focalcal.pages.pdf import find_browser

    gates = [Gate.parse(text) for text in fail_if or ()]
    on = _judged(fail_on)
    if out is not None and out.is_file():
        raise ValueError(f"--out must be a folder, got the file {str(out)!r}; name another")
    if pdf is not None:
        find_browser()
        if not pdf.absolute().parent.is_dir():
            raise ValueError(f"--pdf must be a file in a folder that exists, got {str(pdf)!r}; make the folder first")
    if score is not None and probs is not None:
        raise ValueError(f"--score and --probs both say where probabilities are, got {score!r} and {probs!r}; give one")
    calibrators = None if calibrate == "none" else calibrate if calibrate == "auto" else calibrate.split(",")
    reading = given(
        confidence=confidence,
        correct=correct,
        task=task,
        question=question,
        group=groups,
        metric=metric,
        right_from=right_from,
        scale=None if scale is None else 100 if scale in ("percent", "100") else 1,
        fallback=fallback,
        logprobs=logprobs,
        answer=answer,
        normalize=None if normalize == "rows" else normalize,
        missing=missing,
        answers=None if answers is None else right_answers(answers),
    )
    paths = [Path(file) for file in files if file != "-" and "://" not in file]
    if len(paths) == len(files) and are_logs(paths, reading):
        if normalize == "rows":
            raise ValueError(f"--normalize rows is for tables, got the evaluation log {files[0]}; leave it out")
        tables = given(
            probs=probs, logits=logits, score=score, labels=labels, positive=positive, event=event, weights=weights,
            clusters=clusters, time=time, ids=ids, classes=classes, drop_missing=drop_missing or None,
            delimiter=delimiter, decimal=decimal, encoding=encoding, trained_with=trained_with, cost=cost,
            threshold=threshold, pdf=pdf, report=report, junit=junit,
        )  # fmt: skip
        if tables:
            name = min(tables).replace("_", "-")
            raise ValueError(f"--{name} is for tables, got the evaluation log {files[0]}; leave it out")
        tried = {} if calibrate == "auto" else {"calibrate": calibrators}
        about = given(title=title, model=model)
        if audit_of_logs(
            paths, reading, gates=gates, on=on, out=out, as_json=as_json, baseline=baseline, about=about, **tried
        ):
            raise typer.Exit(FAILED)
        return
    if others := reading.keys() - {"confidence", "correct", "group", "scale"}:
        raise ValueError(
            f"--{min(others).replace('_', '-')} is for evaluation logs, got {files[0]}; leave it out, or name logs"
        )
    columns = given(
        probs=column_names(probs) if score is None else [score],
        logits=column_names(logits),
        labels=labels,
        positive=positive,
        confidence=confidence,
        correct=correct,
        groups=column_names(groups),
        weights=weights,
        clusters=clusters,
        times=time,
        ids=ids,
        classes=None if classes is None else classes.read_text(encoding="utf-8").splitlines(),
        **table_reading(scale, drop_missing, delimiter, decimal, encoding, normalize),
    )
    names = ["standard input" if file == "-" else Path(file).name for file in files]
    data = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    found = audit_files(
        sources(files),
        on_bad_part=on_bad_part,
        baseline=baseline,
        columns=columns,
        calibrate=calibrators,
        trained_with=trained_with,
        event=None if event is None else event.split(","),
        cost=cost,
        threshold=threshold,
        about=given(title=title, model=model, data=data),
        gates=gates,
        executor=executor,
        address=address,
    )
    failed = [gate for gate in gates if gate.holds(found.metrics, on)]
    if out is not None:
        _write(found, out)
    if pdf is not None:
        found.pdf(pdf)
    if junit is not None:
        _write_junit(gates, failed, found, junit)
    if report is not None:
        from focalcal.auditing.tripod import tripod_report

        typer.echo(tripod_report(found))
    elif as_json:
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
    from focalcal.auditing.tables import (
        change_table,
        cost_table,
        events_table,
        fix_table,
        flagged_table,
        metric_table,
        part_table,
        threshold_table,
        thresholds_say,
        trend_table,
    )

    parts = [_wrapped(found.headline), "", metric_table(found).text()]
    event = found.event
    groups = found.groups if event is None else event.groups
    classes = () if event is not None else found.classes
    for heading, rows in (("Groups, worst first", groups), ("Predicted classes, worst first", classes)):
        if rows:
            shown = part_table(rows[:_SHOWN], event=event is not None and rows is groups).text()
            more = f" ({_SHOWN} of {len(rows)})" if len(rows) > _SHOWN else ""
            parts += [f"{heading}{more}:", shown]
    if found.periods is not None:
        parts += [f"By {found.periods.unit}:", part_table(found.periods.parts, event=event is not None).text()]
        parts += [trend_table(found.periods).text()] if found.periods.trends else []
        parts += [_wrapped(found.periods.sentence), ""]
    if event is None and found.events:
        parts += ["Events, each class against the rest:", events_table(found.events).text()]
    if found.decisions is not None:
        parts += [cost_table(found.decisions).text()] if found.decisions.before is not None else []
        parts += ["What a threshold flags:", flagged_table(found.decisions).text()] if found.decisions.flagged else []
        parts += [_wrapped(found.decisions.sentence), ""] if found.decisions.sentence else []
    if event is None and thresholds_say(found):
        parts += ["What a threshold on the confidence buys:", threshold_table(found).text()]
    if found.abstention is not None and event is None:
        parts.append(_wrapped(found.abstention.sentence) + "\n")
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
