"""`focalcal audit`: can these probabilities be trusted, and what would fix them."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from focalcal.cli.evaluation_logs import AuditColumns, LogFlags, are_logs, audit_of_logs
from focalcal.cli.options import FILE_FLAGS, BadPart, Files, Json, given, sources, takes
from focalcal.cli.output import json_text, plain_failures, print_json

if TYPE_CHECKING:
    from focalcal.auditing import Audit, Gate

FAILED = 1  # exit code of a gate that is not met
_SHOWN, _WIDEST = 10, 40  # groups and classes on the terminal, and the characters of their names


@plain_failures(flags=FILE_FLAGS)
@takes(table=AuditColumns, logs=LogFlags)
def audit(
    files: Files,
    table: AuditColumns,
    logs: LogFlags,
    event: Annotated[
        str | None,
        typer.Option(
            help="The class whose probability is audited against the rest; of more classes names with commas."
        ),
    ] = None,
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
        Path | None,
        typer.Option(help="Write audit.html, metrics.json and calibrator.json into this folder, which may be new."),
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
    if out is not None and (out.is_file() or out.suffix == ".html"):
        raise ValueError(f"--out must be a folder, got the file {str(out)!r}; name a folder, which gets audit.html")
    if pdf is not None:
        find_browser()
        if not pdf.absolute().parent.is_dir():
            raise ValueError(f"--pdf must be a file in a folder that exists, got {str(pdf)!r}; make the folder first")
    calibrators = None if calibrate == "none" else calibrate if calibrate == "auto" else calibrate.split(",")
    reading = logs.reading(table)
    paths = [Path(file) for file in files if file != "-" and "://" not in file]
    if len(paths) == len(files) and are_logs(paths, reading):
        of_tables = table.given("confidence", "correct", "groups", "scale") | given(
            event=event, trained_with=trained_with, cost=cost, threshold=threshold, pdf=pdf, report=report, junit=junit
        )
        if of_tables.pop("normalize", None) == "rows":
            raise ValueError(f"--normalize rows is for tables, got the evaluation log {files[0]}; leave it out")
        if of_tables:
            name = min(of_tables).replace("_", "-")
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
    names = ["standard input" if file == "-" else Path(file).name for file in files]
    data = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    found = audit_files(
        sources(files),
        on_bad_part=on_bad_part,
        baseline=baseline,
        columns=table.reading(),
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

    parts = [_wrapped(f"{found.headline} {found.where}".rstrip()), "", metric_table(found).text()]
    event = found.event
    groups = found.shown_groups
    classes = () if event is not None else found.classes
    for heading, rows in (("Groups, worst first", groups), ("Predicted classes, worst first", classes)):
        if rows:
            by_event = event is not None and rows is groups
            shown = part_table(rows[:_SHOWN], event=by_event, widest=_WIDEST).text()
            more = f" ({_SHOWN} of {len(rows)})" if len(rows) > _SHOWN else ""
            parts += [f"{heading}{more}:", shown]
    if found.periods is not None:
        parts += [f"By {found.periods.unit}:", part_table(found.periods.parts, event=event is not None).text()]
        parts += [trend_table(found.periods, widest=_WIDEST).text()] if found.periods.trends else []
        parts += [_wrapped(found.periods.sentence), ""]
    if event is None and found.events:
        parts += ["Events, each class against the rest:", events_table(found.events, widest=_WIDEST).text()]
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
