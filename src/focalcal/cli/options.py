"""What several commands read in the same way."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from focalcal.predictions.locations import Location

# How files are read; see `sources` and `table_reading`.
Files = Annotated[
    list[str],
    typer.Argument(
        help="Predictions with labels: .csv, .tsv, .jsonl, .parquet, .npz or .npy files, also compressed (.csv.gz), "
        "folders of parts, addresses (s3://, gs://, https://), or - for standard input; or evaluation logs of language "
        "models: .jsonl, .eval or .json files, or folders of them."
    ),
]
Scale = Annotated[
    Literal["unit", "percent"], typer.Option(help="Whether probabilities are from 0 to 1, or percent from 0 to 100.")
]
Normalize = Annotated[
    Literal["rows"] | None,
    typer.Option(help="rows: divide each row of probabilities by its sum, as for printed digits or counts."),
]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out rows without a value, and say how many, in place of an error.")
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        help="The character between the columns of text: comma, semicolon, tab, bar or itself; found if absent."
    ),
]
Decimal = Annotated[
    Literal["point", "comma"] | None, typer.Option(help="The decimal sign in the numbers of text; found if absent.")
]
Encoding = Annotated[
    str | None, typer.Option(help="The encoding of text, such as utf-8 or cp1252 (Windows); found if absent.")
]
BadPart = Annotated[
    Literal["refuse", "skip"],
    typer.Option("--on-bad-part", help="Stop at a part that cannot be read, or leave it out and name it."),
]
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

Json = Annotated[bool, typer.Option("--json", help="Print JSON; null stands for NaN and infinity.")]


def sources(files: list[str]) -> list[str | Path | Location]:
    """What the arguments name; - is standard input."""
    from focalcal.predictions.locations import standard_input

    if files.count("-") > 1:
        raise ValueError(f"standard input can be read once, got - {files.count('-')} times; name it once")
    return [standard_input(sys.stdin.buffer) if file == "-" else file for file in files]


def table_reading(
    scale: str | None = None,
    drop_missing: bool = False,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    normalize: str | None = None,
) -> dict[str, Any]:
    """The options of the command line as keywords of `Predictions.load`; nothing for those that were not given."""
    return given(
        scale="percent" if scale in ("percent", "100") else None,
        drop_missing=drop_missing or None,
        delimiter=None if delimiter is None else _DELIMITERS.get(delimiter, delimiter),
        decimal=_DECIMALS[decimal],
        encoding=encoding,
        normalize=normalize == "rows" or None,
    )


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
