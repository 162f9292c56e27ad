"""Make docs/results again from paper/records: one page per template of paper/pages, and its figures.

    python -m paper.publish [--out FOLDER]

Nothing is trained and no store is read. A page is Markdown in which tables, numbers and figures are asked for by name,
so that what stands in docs/results is what the records say.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from focalcal.core.atomic import write_atomically
from focalcal.pages.style import rendered
from paper.audit_tables import calibrators, verdicts
from paper.drawings import DRAWINGS
from paper.instruction_sets import transfer
from paper.operating_point.alike import Alike
from paper.published import (
    Records,
    by_training_rows,
    decisions_kept,
    exponents,
    overhead_tables,
    paper_claims,
    surface_corners,
    theory_figures,
    with_tags,
)
from paper.record import RECORDS
from paper.regime_tables import recorded_regimes
from paper.tasks.answers import TaskRecords
from paper.trials import (
    Trials,
    across,
    contest,
    difference,
    largest_p,
    paired,
    recipe_of_tasks,
    recorded_tasks,
    won,
)

PAGES = Path(__file__).parent / "pages"
# A page is left out until these records are there.
NEEDED = {
    "known_posterior.md": tuple(
        f"known-posterior-{name}" for name in ("gaussian", "discrete", "teacher", "teacher-400")
    ),
    "operating_point.md": ("operating-point", "operating-point-real", "operating-point-again"),
    "surface.md": ("surface",),
    "text.md": ("text-ag-news", "text"),
    "cifar10.md": ("cifar10", "cifar10-all"),
    "regimes.md": ("regimes-*",),
    "audits.md": ("audits",),
    "overhead.md": ("overhead",),
    "tasks.md": ("tasks",),
    "equal_access.md": ("equal-access-digits", "confirmation-digits"),
}
DOCS = Path(__file__).parent.parent / "docs" / "results"


def pages(only: str | None = None) -> dict[str, str]:
    """By file name, as text; one of them alone if it is named."""
    environment = Environment(
        loader=FileSystemLoader(PAGES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    environment.globals |= {
        "records": Records.read,
        "by_size": lambda name: Records.read(name, by_training_rows),
        "texts": lambda name: Records.read(name, with_tags),
        "trials": Trials.read,
        "alike": lambda trials, **chosen: Alike(trials, Trials.read("operating-point-again"), **chosen),
        "theory_figures": theory_figures,
        "decisions_kept": decisions_kept,
        "overhead": overhead_tables,
        "paper_claims": paper_claims,
        "paired": paired,
        "across": across,
        "contest": contest,
        "won": won,
        "difference": difference,
        "recipe_of_tasks": recipe_of_tasks,
        "largest_p": largest_p,
        "exponents": exponents,
        "verdicts": verdicts,
        "calibrators": calibrators,
        "surface_corners": surface_corners,
        "recorded_tasks": recorded_tasks,
        "transfer": transfer,
        "tasks": TaskRecords.read,
        "regimes": recorded_regimes,
    }
    names = sorted(path.name for path in PAGES.glob("*.md") if _there(NEEDED.get(path.name, ())))
    environment.globals["pages"] = names
    return {name: environment.get_template(name).render() + "\n" for name in names if only in (None, name)}


def figures() -> dict[str, Callable[[], Any]]:
    """By file name, those whose records are there."""
    return {f"{name}.svg": draw for name, (needed, draw) in DRAWINGS.items() if _there(needed)}


def _there(names: tuple[str, ...]) -> bool:
    return all(any(RECORDS.glob(f"{name}.*")) for name in names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DOCS)
    out = parser.parse_args().out
    (out / "figures").mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        write_atomically(out / name, text.encode())
    for name, draw in figures().items():
        write_atomically(out / "figures" / name, rendered(draw(), "svg"))
    print(out)


if __name__ == "__main__":
    main()
