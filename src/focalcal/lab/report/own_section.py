"""A section of a study's page that other code makes, such as the numbers of a publication beside ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from focalcal.core.plugins import load_plugin

if TYPE_CHECKING:
    from markupsafe import Markup

    from focalcal.lab.evidence.evidence import Evidence
    from focalcal.lab.evidence.surface import Point
    from focalcal.pages.tables import CaptionedTable


@dataclass(frozen=True)
class ReportSection:
    """What stands in the section, and the tables that are written as files as well.

    tables  by a name that can be a file's
    body    from the HTML of the tables, in order, to that of the section
    styles  as `Page` takes them
    """

    heading: str
    tables: Mapping[str, CaptionedTable]
    body: Callable[[Sequence[Markup]], Markup]
    styles: Sequence[str] = ()


MakeSection = Callable[["Evidence", "Mapping[str, Point] | None"], ReportSection | None]
"""From the evidence, which has runs, and (gamma, lam) by setting; None where there is nothing to show."""


def section_maker(name: str) -> MakeSection:
    """That of `package.module:function`."""
    return load_plugin("sections", name, {}).target
