import pytest
from support.paper_evidence import evidence_of, papers_own_evidence

from focalcal.analysis.paper_claims import CLAIMS, judged_claims
from focalcal.analysis.paper_runs import PaperRuns


def test_the_papers_own_tables_bear_its_claims_out():
    judged = judged_claims(PaperRuns(papers_own_evidence()))
    verdicts = {one.claim.says: one.verdict for one in judged}
    tabled = ("vision", "adafocal", "transformer-finetune")
    assert {verdicts[claim.says] for claim in CLAIMS if claim.study in tabled} == {"holds"}
    assert {verdicts[claim.says] for claim in CLAIMS if claim.study not in tabled} == {"not run"}


@pytest.mark.parametrize("study", sorted({claim.study for claim in CLAIMS}))
def test_the_study_that_is_named_has_the_runs(study):
    runs = PaperRuns(evidence_of(study))
    for judged in judged_claims(runs):
        if judged.claim.study == study:
            assert judged.judgement is not None, judged.claim.says
            assert judged.judgement.numbers


def test_a_claim_that_fails_is_said_to():
    runs = PaperRuns(evidence_of("adafocal"))  # where FCL's numbers are half of every other's
    (judged,) = (one for one in judged_claims(runs) if "AdaFocal attains a lower binned ECE" in one.claim.says)
    assert judged.verdict == "does not hold"
    ((_, answer),) = judged.judgement.numbers
    assert (answer.value, answer.of) == (0, 3)
