"""Options that several commands of the laboratory have."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from focalcal.cli.options import given, name_values

if TYPE_CHECKING:
    from focalcal.lab.store import Store as RunStore
    from focalcal.lab.studies import Study
    from focalcal.lab.studies.grid import Executor
    from focalcal.lab.training import Recipe

_DEFAULT_STORE = "default: $FOCALCAL_STORE, else focalcal-runs."
Store = Annotated[  # of commands that write runs
    Path | None, typer.Option(help=f"The folder that runs are kept in, made if it is not there; {_DEFAULT_STORE}")
]
StoredRuns = Annotated[Path | None, typer.Option("--store", help=f"The folder that runs are kept in; {_DEFAULT_STORE}")]
Stores = Annotated[
    list[Path] | None,
    typer.Option(
        "--store", help=f"A folder that runs are kept in; may be repeated, for several as one; {_DEFAULT_STORE}"
    ),
]
DataDir = Annotated[Path | None, typer.Option(help="The folder of the data sets; default: $FOCALCAL_DATA.")]
DataSet = Annotated[
    str | None,
    typer.Option(
        help="The data set instead of the recipe's, by name or as package.module:function; a file of your own is csv, "
        "parquet, npz, texts or images, with --data-option path=FILE."
    ),
]
DataOption = Annotated[list[str] | None, typer.Option(help="An option of the data set, NAME=VALUE; may be repeated.")]
Classes = Annotated[int | None, typer.Option(help="The number of classes of that data set.", min=2, metavar="N")]
Model = Annotated[
    str | None, typer.Option(help="The network instead of the recipe's, by name or as package.module:Class.")
]
Mean = Annotated[
    str | None,
    typer.Option(help="The mean of the channels of an image between 0 and 1, such as 0.49,0.48,0.45; or one number."),
]
Std = Annotated[str | None, typer.Option(help="Likewise the standard deviation.")]
Epochs = Annotated[int | None, typer.Option(help="The number of epochs instead of the recipe's.", min=1, metavar="N")]
Device = Annotated[str, typer.Option(help="The device that torch uses: cpu, cuda, cuda:1, mps.")]
Jobs = Annotated[
    int,
    typer.Option("--jobs", "-j", help="How many cells run at a time; 0 stands for one per core.", min=0, metavar="N"),
]
Threads = Annotated[
    int, typer.Option(help="How many threads a run has. Another number can change the last bits.", min=1, metavar="N")
]
TensorBoard = Annotated[Path | None, typer.Option(help="Write the epochs for TensorBoard into this folder as well.")]
Seeds = Annotated[
    int | None, typer.Option(help="The number of seeds, from 0, in place of the study's.", min=1, metavar="N")
]


class Engine(StrEnum):
    """What runs the cells."""

    local = "local"
    ray = "ray"


Executors = Annotated[
    Engine, typer.Option("--executor", help="Run the cells in processes of this machine, or on a Ray cluster.")
]
Address = Annotated[
    str | None, typer.Option(help="The address of a running Ray cluster; by default one is started here.")
]
CpusPerCell = Annotated[float, typer.Option(help="Processors that Ray reserves for a cell.", min=0, metavar="N")]
GpusPerCell = Annotated[float, typer.Option(help="GPUs that Ray reserves for a cell.", min=0, metavar="N")]


def chosen_executor(
    engine: Engine, jobs: int, address: str | None, cpus: float, gpus: float, **options: Any
) -> Executor:
    """What runs cells with these options, `jobs` at a time in processes of this machine, or where Ray has room."""
    from focalcal.core.processors import available_processors
    from focalcal.lab.studies import LocalExecutor, RayExecutor

    if address is not None and engine is Engine.local:
        raise ValueError(f"--address names a Ray cluster, got {address!r} without it; add --executor ray")
    if engine is Engine.ray:
        return RayExecutor(address, cpus_per_cell=cpus, gpus_per_cell=gpus, options=options)
    return LocalExecutor(jobs or available_processors(), options=options)


def open_store(folder: Path | None, *, create: bool = False) -> RunStore:
    """The store in that folder, or in the one that is used by default; made if `create` says so."""
    from focalcal.lab.store import Store as RunStore
    from focalcal.lab.store.layout import store_folder

    return RunStore(store_folder(folder), create=create)


def open_stores(folders: list[Path] | None) -> list[RunStore]:
    """Those in the folders, each once, or the one that is used by default."""
    return [open_store(folder) for folder in dict.fromkeys(folders)] if folders else [open_store(None)]


def report_options(study: Study | None, *, smoke: bool = False) -> dict[str, Any]:
    """What a report is told: the recipes' operating points, and of a study its cells, names, candidate and section."""
    from focalcal.lab.report.own_section import section_maker
    from focalcal.lab.studies.study_file import check_untuned
    from focalcal.lab.training.recipes import operating_points

    if study is None:
        return {"operating_points": operating_points()}
    check_untuned(study)
    return {
        "operating_points": operating_points(),
        "specs": study.specs(smoke),
        "title": f"{study.title} (smallest size)" if smoke else study.title,
        "temperature": study.temperature,
        "candidate": study.candidate,
        "labels": study.labels(smoke),
        "make_section": section_maker(study.section) if study.section else None,
    }


def chosen_recipe(name: str, data_option: list[str] | None, model_option: list[str] | None, **changes: Any) -> Recipe:
    """The recipe of that name or file, with the options and fields that are given in place of its own."""
    from focalcal.lab.studies.spec_builder import override_recipe
    from focalcal.lab.training import recipe

    changed = given(**changes)
    for field, flag, words in (
        ("data_options", "--data-option", data_option),
        ("model_options", "--model-option", model_option),
    ):
        changed |= {field: name_values(flag, words)} if words else {}
    return override_recipe(recipe(name), changed)


def normalisation(mean: str | None, std: str | None) -> dict[str, list[float] | None]:
    """The fields of a recipe for these options."""
    fields: dict[str, list[float] | None] = {}
    for name, words in (("mean", mean), ("std", std)):
        try:
            fields[name] = None if words is None else [float(part) for part in words.split(",")]
        except ValueError:
            raise ValueError(f"--{name} must be numbers with commas between, got {words!r}") from None
    return fields


def check_device(name: str) -> str:
    """`name`, if torch can use such a device here."""
    import torch

    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:  # torch's ways of saying no
        reason = str(error).splitlines()[0]
        raise ValueError(f"--device must be one that torch can use here, got {name!r} ({reason}); use cpu") from None
    return name
