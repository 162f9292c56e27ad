"""`focalcal data`: which data sets there are, fetching them, and whether they are what they should be."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from focalcal.cli.options import Json
from focalcal.cli.output import plain_failures, print_json
from focalcal.lab.cli.options import DataDir

app = typer.Typer(
    help="Which data sets there are, fetching them, and whether they are what they should be.",
    epilog="Example: focalcal data list",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_Name = Annotated[str, typer.Argument(help="The data set, as `focalcal data list` names it.")]


@app.command("list")
@plain_failures()
def list_data_sets(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Every data set: whether it is here, what it is, and its licence.

    Example: focalcal data list
    """
    from focalcal.lab.data.catalogue import CATALOGUE
    from focalcal.lab.data.source_files import state

    rows = [
        {"name": name, "here": state(name, data_dir), "what": entry.description, "licence": entry.licence}
        for name, entry in CATALOGUE.items()
    ]
    if as_json:
        print_json(rows)
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        typer.echo(f"{row['name']:{width}}  {row['here']:8}  {row['what']} [{row['licence']}]")


@app.command()
@plain_failures()
def get(name: _Name, data_dir: DataDir = None) -> None:
    """Download and unpack a data set, or say what to put where; an interrupted download is continued.

    Example: focalcal data get cifar10
    """
    from focalcal.lab.cli.progress import bar
    from focalcal.lab.data.catalogue import catalogue_entry
    from focalcal.lab.data.fetch import fetch_data_set
    from focalcal.lab.data.source_files import data_folder, state

    entry = catalogue_entry(name)
    if entry.folder is None:
        typer.echo(f"{name} needs no file")
        return
    folder = data_folder(data_dir)
    typer.echo(f"licence: {entry.licence}", err=True)
    if state(name, folder) == "here":
        typer.echo(f"it is here already; `focalcal data verify {name}` checks it", err=True)
    with bar(f"fetching {name}, bytes") as progress:
        typer.echo(fetch_data_set(name, folder, progress=progress))


@app.command()
@plain_failures()
def verify(
    name: _Name,
    data_dir: DataDir = None,
    allow_partial: Annotated[bool, typer.Option("--allow-partial", help="Accept a part of the data set.")] = False,
    as_json: Json = False,
) -> None:
    """Read a data set, check its content, and print its counts and fingerprints.

    Example: focalcal data verify digits
    """
    from focalcal.lab.data import load_data
    from focalcal.lab.data.glove import glove_contents

    if name == "glove":
        files = glove_contents(data_dir, allow_partial=allow_partial)
        lines = (f"{file}: {facts['words']} words  sha256 {facts['sha256']}" for file, facts in files.items())
        typer.echo(json.dumps(files, indent=2) if as_json else "\n".join(lines))
        return
    data = load_data(name, data_dir, allow_partial=allow_partial)
    if as_json:
        print_json(data.provenance)
        return
    partial = ", a part of it" if data.provenance["partial"] else ""
    typer.echo(f"{name}: {len(data.classes)} classes{partial}; {data.provenance['split']}")
    for split, count in data.provenance["counts"].items():
        sha256 = data.provenance["fingerprints"][split]
        typer.echo(f"{split:5} {count:7}" + (f"  sha256 {sha256}" if count else ""))
