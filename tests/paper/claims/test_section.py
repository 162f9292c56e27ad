"""The paper's section of a study's page: its claims with their verdicts, and its tables beside ours."""

import re

import paper.claims.section
import pytest
from paper.claims.queries import ClaimAnswer
from paper.claims.section import beside_the_paper
from paper.claims.verdicts import Claim, ClaimPart, JudgedClaim, JudgedPart
from support import synthetic_study as synthetic
from support.synthetic_study import study_store

from focalcal.lab.report.report_folder import write_report


@pytest.fixture
def store(tmp_path):
    return study_store(tmp_path / "runs", data_set="cifar10", model="resnet50", objectives=("ce", "fcl"), seeds=(0,))


def test_a_claim_has_its_verdict_and_the_papers_numbers_beside_ours(store, monkeypatch):
    def judged(says, answer):
        part = ClaimPart("won", lambda runs: None, 3, 3, 3, "3 of 3")
        return JudgedClaim(Claim(says, "6.2", "vision", (part,)), (JudgedPart(part, answer),))

    answers = (ClaimAnswer(3, 3), ClaimAnswer(1, 2, 1), ClaimAnswer(0, 3), None)
    claims = [judged(f"claim {at}", answer) for at, answer in enumerate(answers)]
    monkeypatch.setattr(paper.claims.section, "judged_claims", lambda runs: claims)
    text = beside_the_paper(synthetic.evidence_of(store), None).body([])
    rows = [re.sub(r"<[^>]*>", "|", row) for row in re.findall(r'<tr class="[\w-]*"><td>claim.*?</tr>', text)]
    assert [row.split("||")[2].strip("|") for row in rows] == ["✓ holds", "◐ partly", "✗ does not hold", "○ not run"]
    assert "won: 1 of 2 (1 tied), 1 not run (paper: 3 of 3)" in rows[1]
    assert "focalcal study paper/studies/vision.toml" in rows[3]
    assert "1 holds, 1 partly, 1 does not hold, 1 not run" in text


def test_the_papers_numbers_stand_beside_ours_when_asked_for(store):
    assert "Beside the paper" not in write_report(store, with_figures=False).page.read_text("utf-8")
    made = write_report(store, make_section=beside_the_paper, with_figures=False)
    page = made.page.read_text("utf-8")
    assert "Beside the paper" in page
    assert "Against the paper" in page
    assert (made.page.parent / "tables" / "against_paper.csv") in made.files
