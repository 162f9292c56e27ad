"""What several commands read in the same way."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

if TYPE_CHECKING:
    from focalcal.predictions.locations import Location

Files = Annotated[
    list[str],
    typer.Argument(
        help="Predictions with labels: .csv, .tsv, .jsonl, .parquet, .npz or .npy files, also compressed (.csv.gz), "
        "folders of parts, addresses (s3://, gs://, https://), or - for standard input; or evaluation logs of language "
        "models: .jsonl, .eval or .json files, or folders of them."
    ),
]


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """Where a table has its scores, and how it is read: what every command has that reads one."""

    probs: Annotated[
        str | None, typer.Option(help="The columns of probabilities: 'p_*' for p_0, p_1, ..., or names with commas.")
    ] = None
    logits: Annotated[str | None, typer.Option(help="The columns of logits, in place of probabilities.")] = None
    score: Annotated[
        str | None, typer.Option(help="For two classes: the one column with the probability of the positive class.")
    ] = None
    labels: Annotated[str | None, typer.Option(help="The column of labels.")] = None
    scale: Annotated[
        Literal["unit", "percent", "1", "100"] | None,
        typer.Option(help="Whether probabilities, or confidences in evaluation logs, are from 0 to 1 or percent."),
    ] = None
    normalize: Annotated[
        Literal["rows"] | None,
        typer.Option(help="rows: divide each row of probabilities by its sum, as for printed digits or counts."),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(
            help="The character between the columns of text: comma, semicolon, tab, bar or itself; found if absent."
        ),
    ] = None
    decimal: Annotated[
        Literal["point", "comma"] | None, typer.Option(help="The decimal sign in the numbers of text; found if absent.")
    ] = None
    encoding: Annotated[
        str | None, typer.Option(help="The encoding of text, such as utf-8 or cp1252 (Windows); found if absent.")
    ] = None

    def reading(self) -> dict[str, Any]:
        """The keywords of `Predictions.load`, of what was given."""
        if self.score is not None and self.probs is not None:
            raise ValueError(
                f"--score and --probs both say where probabilities are, got {self.score!r} and {self.probs!r}; give one"
            )
        return given(
            probs=column_names(self.probs) if self.score is None else [self.score],
            logits=column_names(self.logits),
            labels=self.labels,
            scale="percent" if self.scale in ("percent", "100") else None,
            normalize=self.normalize == "rows" or None,
            delimiter=None if self.delimiter is None else _DELIMITERS.get(self.delimiter, self.delimiter),
            decimal=_DECIMALS[self.decimal],
            encoding=self.encoding,
        )


@dataclass(frozen=True, kw_only=True)
class RowOptions(ScoreOptions):
    """And where it has what is known of each row."""

    positive: Annotated[
        str | None, typer.Option(help="The label that the column of --score belongs to, where labels are names.")
    ] = None
    confidence: Annotated[
        str | None,
        typer.Option(
            help="For rows without probabilities of all classes: the column with each prediction's confidence."
        ),
    ] = None
    correct: Annotated[
        str | None, typer.Option(help="The column that says whether the prediction is right; goes with --confidence.")
    ] = None
    groups: Annotated[
        str | None,
        typer.Option(
            help="Columns whose values are looked at apart, e.g. 'site' or 'site,age'; an audit takes their "
            "intersections, too."
        ),
    ] = None
    clusters: Annotated[
        str | None,
        typer.Option(help="The column of what rows share, e.g. a patient: intervals are over these, not over rows."),
    ] = None
    times: Annotated[
        str | None,
        typer.Option("--time", "--times", help="The column of dates: day, week, month, quarter or year are looked at."),
    ] = None
    ids: Annotated[
        str | None, typer.Option(help="The column of names of rows: mistakes are listed by it, overlaps found.")
    ] = None
    classes: Annotated[Path | None, typer.Option(help="A text file with one class name per line.")] = None
    drop_missing: Annotated[
        bool,
        typer.Option("--drop-missing", help="Leave out rows without a value, and say how many, in place of an error."),
    ] = False

    def reading(self) -> dict[str, Any]:
        """The keywords of `Predictions.load`, of what was given."""
        return super().reading() | given(
            positive=self.positive,
            confidence=self.confidence,
            correct=self.correct,
            groups=self.groups.split(",") if self.groups and "," in self.groups else self.groups,
            clusters=self.clusters,
            times=self.times,
            ids=self.ids,
            classes=None if self.classes is None else self.classes.read_text(encoding="utf-8").splitlines(),
            drop_missing=self.drop_missing or None,
        )


def takes(**shared: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options that classes declare as fields; it is called with an object of each, by its name."""

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True)
        added = [
            inspect.Parameter(
                each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=hint[each.name]
            )
            for kind in shared.values()
            for hint in [get_type_hints(kind, include_extras=True)]
            for each in fields(kind)
        ]

        @wraps(command)
        def run(**values: Any) -> None:
            objects = {
                name: kind(**{each.name: values.pop(each.name) for each in fields(kind)})
                for name, kind in shared.items()
            }
            command(**objects, **values)

        rest = [each.replace(kind=each.KEYWORD_ONLY) for name, each in own.parameters.items() if name not in shared]
        named = [each for each in rest if each.default is each.empty]  # the arguments, before all options
        signature = own.replace(parameters=[*named, *added, *(each for each in rest if each not in named)])
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {name: each.annotation for name, each in signature.parameters.items()}
        return run

    return with_options


# What an error says in Python's words, as the command's options.
FILE_FLAGS = {
    'scale="percent"': "--scale percent",
    "logits= or normalize=True": "--logits or --normalize rows",
    "normalize=True": "--normalize rows",
    "drop_missing=True, of a command --drop-missing": "--drop-missing",
    "drop_missing=True": "--drop-missing",
}
_DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|"}
_DECIMALS = {"point": ".", "comma": ",", None: None}

BadPart = Annotated[
    Literal["refuse", "skip"],
    typer.Option("--on-bad-part", help="Stop at a part that cannot be read, or leave it out and name it."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON; null stands for NaN and infinity.")]


def sources(files: list[str]) -> list[str | Path | Location]:
    """What the arguments name; - is standard input."""
    from focalcal.predictions.locations import standard_input

    if files.count("-") > 1:
        raise ValueError(f"standard input can be read once, got - {files.count('-')} times; name it once")
    return [standard_input(sys.stdin.buffer) if file == "-" else file for file in files]


def given(**values: Any) -> dict[str, Any]:
    """Those of the options that were given."""
    return {name: value for name, value in values.items() if value is not None}


def column_names(text: str | None) -> str | list[str] | None:
    """The names with commas, or the prefix of 'p_*'."""
    if text and "," in text:
        return text.split(",")
    return text and text.removesuffix("*").removesuffix("_")


def name_values(flag: str, pairs: list[str] | None) -> dict[str, Any]:
    """NAME=VALUE, the value a number where it reads as one."""
    values: dict[str, Any] = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not name or not equals or not value:
            raise ValueError(f"{flag} must be NAME=VALUE, got {pair!r}; for example {flag} epsilon=0.1")
        try:
            values[name] = float(value)
        except ValueError:
            values[name] = value
    return values
