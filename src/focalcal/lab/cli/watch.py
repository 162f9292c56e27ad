"""`focalcal watch`: the page of a study while its cells are being run, in a browser on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from focalcal.cli.output import plain_failures
from focalcal.lab.cli.options import DataDir, Seeds, Stores, open_stores, report_options

if TYPE_CHECKING:
    from focalcal.lab.cli.progress import GridDisplay
    from focalcal.lab.report.live_report import Activity
    from focalcal.lab.report.live_server import LiveServer
    from focalcal.lab.store import Store
    from focalcal.lab.studies import Study

Port = Annotated[
    int,
    typer.Option(
        help="The port of this machine's loopback address; 0 stands for any free one.", min=0, max=65535, metavar="N"
    ),
]


@plain_failures()
def watch(
    name: Annotated[
        str | None, typer.Argument(help="Show this study's cells alone: a shipped study, or a .toml file.")
    ] = None,
    store: Stores = None,
    seeds: Seeds = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="Show the cells of the study's smallest size.")] = False,
    port: Port = 0,
    data_dir: DataDir = None,
) -> None:
    """Serve the report of runs that another process stores, renewed when a run is finished; Ctrl-C ends it.

    The page is that of `focalcal report`, with progress, failures and the time left.

    It can be opened on this machine alone, at the address that is printed; nothing can be changed through it.

    Example: focalcal watch digits --store my-runs
    """
    from threading import Event

    from focalcal.lab.studies import load_study

    stores = open_stores(store)
    study = load_study(name, seeds=seeds, data_dir=data_dir) if name else None
    with live_page(stores, study, smoke=smoke, port=port) as server:
        try:
            Event().wait()
        except KeyboardInterrupt:
            typer.echo(f"\nfocalcal: watched {server.report.folder}", err=True)


class StudyActivity:
    """What the display of a grid knows, as a live report asks for it; `interrupted` is set when the grid has ended."""

    display: GridDisplay | None = None
    interrupted: bool | None = None

    def __call__(self) -> Activity:
        """As it is now."""
        from focalcal.lab.report.live_report import Activity, CellShare

        if self.interrupted is not None:
            return Activity("interrupted" if self.interrupted else "finished")
        if self.display is None:
            return Activity("running")
        progress, name = self.display.progress, self.display.name
        cells = tuple(progress.running.values())
        running = tuple(CellShare(name(cell.spec), cell.share, cell.note) for cell in cells)
        return Activity("running", running, progress.seconds_left)


@contextmanager
def live_page(
    stores: list[Store], study: Study | None, *, smoke: bool, port: int = 0, **options: Any
) -> Iterator[LiveServer]:
    """A server for the time of the block, whose address is printed."""
    from focalcal.lab.report.live_report import LiveReport
    from focalcal.lab.report.live_server import serve
    from focalcal.lab.report.report_folder import check_packages

    check_packages(with_figures=False)
    report = LiveReport(stores, **report_options(study, smoke=smoke), **options)
    with serve(report, port) as server:
        typer.echo(f"focalcal: the page is at {server.url}", err=True)
        yield server
