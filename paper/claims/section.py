"""The paper's claims and numbers as a section of a study's page, which its studies name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from focalcal.lab.report.own_section import ReportSection
from focalcal.pages.page import render
from paper.claims.claim_tables import against_paper
from paper.claims.claims import judged_claims
from paper.claims.paper_runs import PaperRuns

if TYPE_CHECKING:
    from markupsafe import Markup

    from focalcal.lab.evidence.evidence import Evidence
    from focalcal.lab.evidence.surface import Point


def beside_the_paper(evidence: Evidence, operating_points: Mapping[str, Point] | None) -> ReportSection:
    """Each claim with its verdict in these runs, then the paper's tables and the numbers of its text beside ours."""
    claims = judged_claims(PaperRuns(evidence, operating_points))

    def body(folded: Sequence[Markup]) -> Markup:
        verdicts = Counter(judged.verdict for judged in claims)
        return render("paper.claims/claims.html.j2", claims=claims, verdicts=verdicts, folded=folded)

    tables = against_paper(evidence, operating_points)
    return ReportSection("Against the paper", tables, body, styles=["paper.claims/claims.css"])
