"""Verdicts on the paper's claims: with all settings, with some, with ties, and along which gamma."""

from dataclasses import replace

import pytest
from paper.claims.claims import CLAIMS, judged_claims
from paper.claims.paper_runs import PaperRuns
from paper.claims.printed_numbers import CIFAR10, OBJECTIVES, SURFACE_LAMS, TRANSFORMERS, VISION
from paper.claims.queries import ClaimAnswer, finding_wins, shift_wins, times_best, times_lower
from paper.claims.verdicts import Claim, ClaimPart, JudgedClaim, JudgedPart
from support.paper_evidence import FINDINGS, STUDIES, evidence_of, papers_own_evidence

RESNET50, RESNET110 = "cifar10/resnet50", "cifar100/resnet110"


def judged(runs, words):
    """The claim that says so, in these runs."""
    (found,) = (one for one in judged_claims(PaperRuns(runs)) if words in one.claim.says)
    return found


def changed(evidence, *, keep=lambda run: True, **metrics):
    """The runs that `keep` keeps, with test metrics that are numbers, or functions of the run."""
    runs = []
    for run in PaperRuns(evidence).evidence.runs:
        own = {name: value(run) if callable(value) else value for name, value in metrics.items()}
        if keep(run):
            runs.append(replace(run, metrics=run.metrics | {"test": run.metrics["test"] | own}))
    return replace(evidence, runs=tuple(runs))


def test_the_papers_own_tables_bear_its_claims_out():
    verdicts = {one.claim: one.verdict for one in judged_claims(PaperRuns(papers_own_evidence()))}
    tabled = ("vision", "adafocal", "transformer-finetune")
    drawn = ("with a temperature", "gamma of")  # what its tables do not have and the evidence draws
    for claim, verdict in verdicts.items():
        if claim.study in tabled and not any(words in part.what for part in claim.parts for words in drawn):
            assert verdict == "holds", claim.says
        if claim.study in ("surface", "tenseed", "shift", "transformer-scratch", "deit-lam-sweep"):
            assert verdict == "not run", claim.says


@pytest.mark.parametrize("study", sorted({claim.study for claim in CLAIMS}))
def test_the_study_that_is_named_has_the_runs(study):
    for one in judged_claims(PaperRuns(evidence_of(study))):
        if one.claim.study == study:
            missing = [part.part.what for part in one.parts if part.answer is None]
            allowed = {
                "lam with a higher ECE than BCE",
                "significantly worse elsewhere",
            }  # of another study; of nothing
            assert set(missing) <= allowed, one.claim.says
            assert one.verdict != "not run"


def test_every_count_is_complete_when_all_studies_were_run():
    everything = PaperRuns(evidence_of(*STUDIES))
    for one in judged_claims(everything):
        for part in one.parts:
            if part.part.of is not None and part.answer is not None:
                assert part.answer.of == part.part.of, part.text
                assert "not run" not in part.text


def test_a_claim_that_fails_is_said_to():
    found = judged(
        evidence_of("adafocal"), "AdaFocal attains a lower binned ECE"
    )  # FCL's numbers are half of the others'
    assert found.verdict == "does not hold"
    assert [part.answer for part in found.parts] == [ClaimAnswer(0, 3)]


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ([ClaimAnswer(3, 3)], "holds"),
        ([ClaimAnswer(2, 3)], "partly"),
        ([ClaimAnswer(1, 1)], "partly"),
        ([ClaimAnswer(1, 2)], "partly"),
        ([ClaimAnswer(0, 1)], "does not hold"),
        ([ClaimAnswer(0, 3)], "does not hold"),
        ([None], "not run"),
        ([ClaimAnswer(3, 3), None], "partly"),
        ([ClaimAnswer(3, 3), ClaimAnswer(0, 3)], "partly"),
        ([ClaimAnswer(0, 3), None], "does not hold"),
    ],
)
def test_a_claim_holds_with_all_its_settings_and_partly_with_some(answers, verdict):
    parts = tuple(JudgedPart(ClaimPart("won", lambda runs: None, 3, 3, 3), answer) for answer in answers)
    assert JudgedClaim(Claim("says", "6.2", "vision", ()), parts).verdict == verdict


@pytest.mark.parametrize(
    ("least", "most", "of", "answer", "verdict"),
    [
        (1, 8, 9, ClaimAnswer(5, 9), "holds"),
        (1, 8, 9, ClaimAnswer(9, 9), "does not hold"),
        (1, 8, 9, ClaimAnswer(0, 8), "partly"),  # the ninth may be won
        (2, 3, 3, ClaimAnswer(0, 2), "does not hold"),  # whatever the third is
        (0, 0, 3, ClaimAnswer(0, 3), "holds"),
        (0, 0, 3, ClaimAnswer(1, 3), "partly"),  # two of three settings agree
        (0, 0, 3, ClaimAnswer(3, 3), "does not hold"),
        (0.1, 4, None, ClaimAnswer(0.5), "holds"),
        (0.1, 4, None, ClaimAnswer(8.0), "does not hold"),
        (0.1, 4, None, ClaimAnswer(0.5, ties=1), "does not hold"),  # two lam are the lowest
    ],
)
def test_counts_within_bounds(least, most, of, answer, verdict):
    assert JudgedPart(ClaimPart("won", lambda runs: None, least, most, of), answer).verdict == verdict


def test_what_was_not_run_and_what_ties_are_said():
    part = ClaimPart("won", lambda runs: None, 3, 3, 3, "3 of 3")
    assert JudgedPart(part, ClaimAnswer(1, 2, 1)).text == "won: 1 of 2 (1 tied), 1 not run (paper: 3 of 3)"
    assert JudgedPart(part, None).text == "won: not run (paper: 3 of 3)"


def test_one_of_three_settings_does_not_make_a_claim_hold():
    swin = TRANSFORMERS[-1]
    rising = changed(
        evidence_of("transformer-scratch"), ece=lambda run: run.options.get("lam", 0.0) / 10 + 0.01, nll=lambda run: 1.0
    )
    assert judged(rising, "From scratch ECE rises with lam").verdict == "holds"
    assert (
        judged(rising, "plain focal loss has the lowest ECE").verdict == "does not hold"
    )  # it ties with cross-entropy
    one = changed(rising, keep=lambda run: run.setting == swin)
    assert judged(one, "From scratch ECE rises with lam").verdict == "partly"
    flat = changed(rising, ece=0.05)
    assert judged(flat, "From scratch ECE rises with lam").verdict == "does not hold"

    paper = papers_own_evidence()
    single = changed(paper, keep=lambda run: run.setting == RESNET50)
    for words in ("AdaFocal attains a lower binned ECE", "it never has the lowest ECE", "lowest ECE in some vision"):
        assert judged(paper, words).verdict == "holds"
    assert judged(single, "AdaFocal attains a lower binned ECE").verdict == "partly"
    assert judged(single, "lowest ECE in some vision settings").verdict == "partly"
    two = changed(paper, keep=lambda run: run.setting in TRANSFORMERS[:2])
    assert judged(two, "it never has the lowest ECE").verdict == "partly"
    few = changed(paper, keep=lambda run: run.spec["objective"] in ("ce", "fcl"))
    assert judged(few, "lowest ECE in some vision settings").verdict == "not run"  # six of its objectives were not


def surface(setting, *printed):
    """By gamma = 4 and lam, the ECE in percent; along other gammas the minimum lies elsewhere."""
    along = dict(zip(SURFACE_LAMS, printed, strict=True))

    def ece(run):
        if run.setting != setting:
            return 0.5
        lam = run.options["lam"]
        return along[lam] / 100 if run.options["gamma"] == 4 else (8 - lam) / 100  # lowest at lam = 8

    return changed(evidence_of("surface"), ece=ece)


def test_the_lam_of_the_lowest_ece_is_looked_for_along_gamma_4():
    ten = surface(RESNET50, 8.42, 3, 1.40, 0.92, 1.16, 1.3, 1.5, 1.8, 2, 2.27)  # the paper's, and numbers between
    assert judged(ten, "the minimum over lam is in the interior").verdict == "holds"
    hundred = surface(RESNET110, 2.69, 1.28, 4.15, 5.79, 9.59, 10, 11, 12, 13, 14.40)
    found = judged(hundred, "the minimum is at a small lam")
    assert (found.verdict, found.parts[0].answer.value) == ("holds", 0.1)
    at_focal = surface(RESNET110, 1.0, 1.28, 4.15, 5.79, 9.59, 10, 11, 12, 13, 14.40)
    assert judged(at_focal, "the minimum is at a small lam").verdict == "does not hold"
    assert judged(hundred, "increases monotonically over the remaining").verdict == "partly"  # of four gammas one does


def test_ties_are_ties():
    tied = PaperRuns(changed(evidence_of("vision"), ece=0.05, error=0.1))
    assert times_best(["fcl"], "ece", VISION, tied) == ClaimAnswer(0, 9, 9)
    assert times_best(OBJECTIVES[:-1], "ece", VISION, tied) == ClaimAnswer(0, 9, 9)
    nearly = PaperRuns(changed(evidence_of("vision"), ece=lambda run: 0.05 - 1e-6 * (run.objective == "fcl")))
    assert times_best(["fcl"], "ece", VISION, nearly) == ClaimAnswer(0, 9, 9)  # as printed
    assert times_lower("fcl", "ce", "ece", VISION, nearly) == ClaimAnswer(0, 9, 9)
    chest = changed(evidence_of("chestxray"), **{f"auroc/{label}": 0.8 for label in FINDINGS})
    setting = "chestxray14/chexnet"
    assert finding_wins(setting, "multilabel_fcl", "auroc", PaperRuns(chest)) == ClaimAnswer(0, 14, 14)
    shift = evidence_of("shift")
    same = replace(shift, runs=tuple(
        replace(run, metrics=run.metrics | {"svhn": {"auroc": 0.9}}) for run in shift.runs
    ))  # fmt: skip
    assert shift_wins(["fcl"], ["svhn"], CIFAR10, PaperRuns(same)) == ClaimAnswer(0, 4, 4)
    found = judged(changed(evidence_of("adafocal"), ece=0.05), "AdaFocal attains a lower binned ECE")
    assert (found.verdict, str(found.parts[0].answer)) == ("does not hold", "0 of 3 (3 tied)")


def test_an_objective_that_shares_the_lead_with_one_of_the_same_side_wins():
    lead = PaperRuns(changed(evidence_of("vision"), ece=lambda run: 0.01 if run.objective in ("ce", "ls") else 0.05))
    assert times_best(["ce", "ls"], "ece", VISION, lead) == ClaimAnswer(9, 9)
    assert times_best(["ce"], "ece", VISION, lead) == ClaimAnswer(0, 9, 9)


def test_never_worst_on_error():
    worst = changed(evidence_of("vision"), error=lambda run: 0.2 + (run.setting == RESNET50 and run.objective == "fcl"))
    found = judged(worst, "never the worst method")
    assert (found.verdict, found.parts[0].answer) == ("partly", ClaimAnswer(1, 9, 8))
    assert judged(changed(worst, error=0.2), "never the worst method").verdict == "holds"  # all tie


def test_after_a_temperature_on_tiny_imagenet():
    found = judged(evidence_of("vision"), "After temperature scaling on this setting")  # FCL's are half of the others'
    assert found.verdict == "holds"
    assert [part.answer for part in found.parts] == [ClaimAnswer(1, 1), ClaimAnswer(1, 1)]
    evidence = evidence_of("vision")
    runs = (
        replace(
            run, scaled=replace(run.scaled, after=run.scaled.after | {"ece": 0.02 if run.objective == "ce" else 0.06})
        )
        for run in evidence.runs
    )
    assert judged(replace(evidence, runs=tuple(runs)), "After temperature scaling on this").verdict == "partly"


def shifted(aurocs):
    """The runs of the shift study with an AUROC by objective, 0.8 where none is given, on both shifts."""
    evidence = evidence_of("shift")
    runs = []
    for run in evidence.runs:
        auroc = {"auroc": aurocs.get(run.objective, 0.8)}
        runs.append(replace(run, metrics=run.metrics | {"svhn": auroc, "cifar10c/fog/5": auroc}))
    return replace(evidence, runs=tuple(runs))


def test_who_is_strongest_and_weakest_under_shift():
    papers = shifted({"ce": 0.9, "dual_focal": 0.9, "ls": 0.7})
    assert judged(papers, "where CE and Dual Focal are strongest").verdict == "holds"
    assert judged(papers, "Label smoothing is a consistent underperformer").verdict == "holds"
    ours = shifted({"fcl": 0.9, "ls": 0.85})
    assert judged(ours, "where CE and Dual Focal are strongest").verdict == "does not hold"
    assert judged(ours, "Label smoothing is a consistent underperformer").verdict == "does not hold"
    assert judged(shifted({}), "Label smoothing is a consistent").verdict == "does not hold"  # all tie


def test_sweeps_of_one_setting():
    rising = changed(evidence_of("deit-lam-sweep"), ece=lambda run: 0.02 + run.options["lam"] / 50)
    assert judged(rising, "On DeiT-S").verdict == "holds"
    dip = changed(rising, ece=lambda run: 0.02 + run.options["lam"] / 50 - (run.options["lam"] == 3) / 30)
    assert judged(dip, "On DeiT-S").verdict == "does not hold"
    short = changed(rising, keep=lambda run: run.options["lam"] < 3)
    assert judged(short, "On DeiT-S").verdict == "not run"  # one lam of the range is missing

    def falling(run):
        return 0.0119 if run.objective == "multilabel_bce" else 0.02 + max(0.0, 4 - run.options["lam"]) / 100

    chest = changed(evidence_of("chestxray", "chestxray-lam-sweep"), ece=falling)
    assert judged(chest, "before plateauing near").verdict == "holds"
    assert judged(evidence_of("vision"), "before plateauing near").verdict == "not run"
    below = changed(chest, ece=lambda run: falling(run) - 0.01 * (run.objective != "multilabel_bce"))
    assert judged(below, "before plateauing near").verdict == "partly"  # it reaches the baseline


def test_swin_from_scratch():
    def papers(run, metric):
        lam = run.options.get("lam")
        nll = {None: 0.935, 0.5: 0.933}.get(lam, 0.95)
        return {"nll": nll, "brier": 0.354 if lam == 1 else 0.361, "error": 0.25 if lam else 0.26}[metric]

    evidence = changed(
        evidence_of("transformer-scratch"),
        **{name: lambda run, name=name: papers(run, name) for name in ("nll", "brier", "error")},
    )
    assert judged(evidence, "on Swin-T it attains the best NLL").verdict == "holds"
    assert judged(changed(evidence, error=0.26), "on Swin-T it attains the best NLL").verdict == "partly"


def test_bins_of_adafocal():
    def with_bins(low, high):
        evidence = evidence_of("adafocal")
        bins = [{"epoch": 1, "gammas": [low, 3.0, high, high]}]
        return replace(evidence, runs=tuple(replace(run, epochs=bins) if run.objective == "adafocal" else run
                                            for run in evidence.runs))  # fmt: skip

    assert judged(with_bins(8.0, 0.9), "lowest-confidence bins driven to").verdict == "holds"
    assert judged(with_bins(8.0, 4.0), "lowest-confidence bins driven to").verdict == "partly"
    assert judged(with_bins(1.0, 4.0), "lowest-confidence bins driven to").verdict == "does not hold"


def test_unfavourable_comparisons_that_are_not_there_are_not_all_in_one_place():
    nothing_worse = evidence_of("tenseed")  # FCL's numbers are half of the others'
    assert judged(nothing_worse, "Significantly unfavourable").verdict == "does not hold"
    family = ("focal", "flsd53", "dual_focal")

    def ece(run):
        low = run.setting == RESNET110 and run.objective in family
        return run.metrics["test"]["ece"] * (0.1 if low else 1)

    metrics = {name: lambda run, name=name: ece(run) for name in ("ece", "adaptive_ece", "nll", "brier")}
    assert judged(changed(nothing_worse, **metrics), "Significantly unfavourable").verdict == "holds"
