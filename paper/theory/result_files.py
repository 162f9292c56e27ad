"""The theory study as a folder: records, tables, a figure, a page, and a README that says what was found."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow
from pyarrow import parquet

from focalcal.core.atomic import write_atomically
from focalcal.pages.style import rendered
from focalcal.pages.tables import Table
from paper.theory.figure import theory_figure
from paper.theory.theory_findings import findings
from paper.theory.theory_page import theory_page
from paper.theory.theory_tables import (
    STANDARD_ERROR,
    cases_csv,
    cases_note,
    cases_table,
    injection_note,
    injection_table,
    paper_note,
    paper_table,
    slopes_table,
)

if TYPE_CHECKING:
    import numpy as np

    from paper.theory.frames import Columns
    from paper.theory.theory_study import TheoryStudy

TITLE = "# The theory of Focal Calibration Loss, checked on exact solutions"
FILES = {
    "index.html": "the interactive page; open it in a browser, it needs no network",
    "figure.pdf": "distortion, first-order constant and exact calibration error against lam",
    "figure.png": "the same figure as an image",
    "cases.csv": "each posterior and gamma: constant, slopes, worst figures, with every digit",
    "cases.md": "the same, to read",
    "paper.csv": "the paper's figures beside ours",
    "paper.md": "the same, to read",
    "injection.csv": "what a residual or an error of 3e-6 does to the slopes at K = 100, with every digit",
    "injection.md": "the same, to read",
    "records.parquet": "every solve: eta, q*, figures, bounds, predictions and cross-check",
    "states.parquet": "every solve of the population: eta, figures and cross-check",
    "calibration.parquet": "the exact calibration error of the population, its chain and its bounds",
    "README.md": "this file",
}


def write_study(study: TheoryStudy, folder: str | os.PathLike[str]) -> list[Path]:
    """Everything in `FILES`, into `folder`, which is made if need be; returns the paths.

    All of it is made before the first file is written, and each file is written whole or not at all.
    """
    target = Path(folder)
    contents = rendered_study(study)
    target.mkdir(parents=True, exist_ok=True)
    paths = [target / name for name in FILES]
    for path in paths:
        write_atomically(path, contents[path.name])
    return paths


def rendered_study(study: TheoryStudy) -> dict[str, bytes]:
    """The files, by name."""
    figure = theory_figure(study)
    cases, paper, injection = cases_table(study), paper_table(study), injection_table(study)
    texts = {
        "index.html": theory_page(study, figure),
        "cases.csv": cases_csv(study),
        "cases.md": f"{cases_note(study)}\n\n{cases.markdown()}",
        "paper.csv": Table(study.paper).csv(),
        "paper.md": f"{paper_note(study)}\n\n{paper.markdown()}",
        "injection.csv": Table(study.injection).csv(),
        "injection.md": f"{injection_note(study)}\n\n{injection.markdown()}",
        "README.md": _readme(study),
    }
    return {
        **{name: text.encode() for name, text in texts.items()},
        "figure.pdf": rendered(figure, "pdf"),
        "figure.png": rendered(figure, "png"),
        "records.parquet": _parquet(
            study.distortion,
            {"eta": [study.posteriors[name] for name in study.distortion["posterior"]], "q": study.solved_q},
        ),
        "states.parquet": _parquet(study.states, {"eta": list(study.population[study.states["state"]])}),
        "calibration.parquet": _parquet(study.calibration),
    }


def _readme(study: TheoryStudy) -> str:
    paragraphs = "\n\n".join(f"**{lead}.** {text}" for lead, text in findings(study))
    listed = "\n".join(f"- [{name}]({name}): {what}" for name, what in FILES.items())
    return (
        f"{TITLE}\n\n"
        "For posteriors eta, gamma and lam the minimiser q* of the population risk was computed to the last digits.\n"
        "No network, no data and no training are involved, so nothing is said about whether training reaches q*.\n\n"
        "![distortion, first-order constant and calibration error against lam](figure.png)\n\n"
        f"## What was found\n\n{paragraphs}\n\n"
        f"## The paper's figures beside ours\n\n{paper_note(study)}\n\n{paper_table(study).markdown()}\n"
        "## Slopes of the exact squared calibration error\n\n"
        f"{STANDARD_ERROR}\n\n{slopes_table(study).markdown()}\n"
        f"## Files\n\n{listed}\n"
    )


def _parquet(columns: Columns, distributions: Mapping[str, Sequence[np.ndarray]] | None = None) -> bytes:
    """The columns, then those of which a cell is a distribution, as lists."""
    lists = {name: [row.tolist() for row in rows] for name, rows in (distributions or {}).items()}
    table = pyarrow.table({**{name: pyarrow.array(values.tolist()) for name, values in columns.items()}, **lists})
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(table, sink)
    return bytes(sink.getvalue().to_pybytes())
