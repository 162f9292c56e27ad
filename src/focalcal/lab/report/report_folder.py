"""A study's report as a folder: the page, and its tables and figures as files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.core.atomic import write_atomically
from focalcal.core.extras import required
from focalcal.lab.evidence.evidence import Evidence, collected, gather
from focalcal.lab.evidence.labels import NO_LABELS, Labels
from focalcal.lab.evidence.operating_curve import operating_curves
from focalcal.lab.evidence.temperature_effect import FittedOn
from focalcal.lab.report.figures import figures, study_views
from focalcal.lab.report.figures.view import FORMS, as_file_name, unused
from focalcal.lab.report.page_sections import study_page
from focalcal.lab.report.sentences import gap_sentences, study_sentences
from focalcal.lab.report.study_tables import all_tables
from focalcal.pages.style import rendered

if TYPE_CHECKING:
    from focalcal.lab.evidence.surface import Point
    from focalcal.lab.report.own_section import MakeSection
    from focalcal.lab.store import Run, Spec, Store
    from focalcal.pages.tables import CaptionedTable

PAGE = "report.html"
FOLDER = "report"  # in the store, unless another is given
_MARK = b'<meta name="generator" content="focalcal'
_FILES = re.compile(rb'<meta name="focalcal-files" content="([^"]*)">')
_OURS = re.compile(r"(tables|figures)/[\w.=-]+\.(csv|md|tex|pdf|png)", re.ASCII)


@dataclass(frozen=True)
class Report:
    """What was written: the page, then tables and figures; and what it is about."""

    page: Path
    files: tuple[Path, ...]
    evidence: Evidence

    def record(self) -> dict[str, Any]:
        """Paths, and what the page says in words."""
        in_words = study_sentences(self.evidence)
        return {
            "page": str(self.page),
            "files": [str(path) for path in self.files],
            "runs": len(self.evidence.runs),
            "missing": gap_sentences(self.evidence.missing),
            **{name: list(getattr(in_words, name)) for name in ("flags", "best", "significant", "unknown")},
        }


def write_report(
    stores: Store | Sequence[Store],
    *,
    specs: Sequence[Spec] = (),
    title: str | None = None,
    temperature: FittedOn = "halves",
    candidate: str | None = None,
    labels: Labels = NO_LABELS,
    out: str | os.PathLike[str] | None = None,
    make_section: MakeSection | None = None,
    with_figures: bool = True,
    operating_points: Mapping[str, Point] | None = None,
) -> Report:
    """Read the runs and write `report.html`, `tables/` (CSV, Markdown, LaTeX) and `figures/` (PDF, PNG) into `out`.

    specs        the cells of the study: only these are shown, and those without a run named; all runs if there are none
    title        of the page; default: the first store's folder
    temperature  how temperatures are fitted, as the study says
    candidate    the objective that headline, forest plot and tests are about; by default FCL, else the first but CE
    labels       what the study calls settings and objectives, by key of a cell
    make_section what makes another section of the page, with tables of its own
    with_figures whether `figures/` is written, which takes longer than all the rest
    operating_points  (gamma, lam) by setting, chosen before the surfaces were seen, to mark on them
    out          a folder, made if it is not there; default: `report` in the first store

    Whatever is missing, failed or damaged is named, and the rest shown. Of a run that several stores have, the first
    one's is shown. Everything is made before the first file is written, and each file is written whole, the page last.
    What an earlier report wrote into `out` and this one does not is removed; other files there are left alone.
    """
    given = list(stores) if isinstance(stores, Sequence) else [stores]
    target = Path(out) if out is not None else given[0].path / FOLDER
    check_target(target)
    check_packages(with_figures=with_figures)
    runs, missing = collected(given, specs, labels)
    evidence = gather(
        runs,
        title=title or f"Runs in {given[0].path.name}",
        temperature=temperature,
        missing=missing,
        known=specs,
        candidate=candidate,
        labels=labels,
        details=True,
    )
    contents = rendered_report(
        evidence, runs, make_section=make_section, with_figures=with_figures, operating_points=operating_points
    )
    for name in _listed(target / PAGE) - contents.keys():
        (target / name).unlink(missing_ok=True)
    for name, content in contents.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    paths = [target / name for name in contents]
    return Report(paths[-1], tuple(paths[:-1]), evidence)


def rendered_report(
    evidence: Evidence,
    runs: Iterable[Run] = (),
    *,
    make_section: MakeSection | None = None,
    with_figures: bool = True,
    operating_points: Mapping[str, Point] | None = None,
    live: str = "",
) -> dict[str, bytes]:
    """The files by name; the page is the last one. `live` is as `study_page` takes it."""
    named = all_tables(evidence)
    section = make_section(evidence, operating_points) if make_section is not None and evidence.runs else None
    named |= section.tables if section is not None else {}
    tables: dict[str, CaptionedTable] = {}
    files: dict[str, bytes] = {}
    for given, table in named.items():
        name = unused(as_file_name(given), tables)
        tables[name] = table
        forms = {"csv": table.table.csv(), "md": table.markdown(), "tex": table.latex(label=f"tab:{name}")}
        files |= {f"tables/{name}.{form}": text.encode() for form, text in forms.items()}
    stored = list(runs)
    views = study_views(
        evidence,
        operating_points=operating_points or {},
        operating_curves=operating_curves(evidence, stored),
    )
    drawn = figures(evidence, runs=stored, views=views) if with_figures else {}
    for name, view in drawn.items():
        figure = view.plot()
        for form in FORMS:
            files[f"figures/{name}.{form}"] = rendered(figure, form)
    page = study_page(evidence, tables=tables, section=section, files=tuple(files), views=views, live=live)
    return files | {PAGE: page.encode()}


def check_target(folder: Path) -> None:
    """Refuse a folder whose `report.html` is something else's."""
    page = folder / PAGE
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"out must be a folder, got the file {folder}; choose another name")
    if page.is_dir() or (page.is_file() and _MARK not in page.read_bytes()[:4096]):
        raise ValueError(f"out must not hold a {PAGE} of something else, got {page}; choose another folder, or move it")


def check_packages(*, with_figures: bool = True) -> None:
    """Fail now if a package that the report needs is missing, and not after the evidence was gathered."""
    for module in ("jinja2", *(["matplotlib"] if with_figures else [])):
        required(module, purpose="Writing the report")


def _listed(page: Path) -> set[str]:
    """The files beside a page that an earlier report wrote, by name; none if there is no page."""
    listed = _FILES.search(page.read_bytes()) if page.is_file() else None
    return {name for name in listed[1].decode().split() if _OURS.fullmatch(name)} if listed else set()
