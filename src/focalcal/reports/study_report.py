"""A study's report as a folder: the page, and its tables and figures as files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from focalcal.core.atomic import write_atomically
from focalcal.reports.evidence import Evidence, gather, reading_order
from focalcal.reports.extras import required
from focalcal.reports.study_page import study_page

if TYPE_CHECKING:
    from focalcal.results import Run, Spec, Store

PAGE = "report.html"
