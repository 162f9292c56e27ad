"""Every number of the paper that stored runs can answer stands beside ours."""

import csv
import io
import statistics
from dataclasses import replace

import pytest
from paper.claims.claim_tables import NOT_RUN, against_paper
from paper.claims.paper_runs import PaperRuns
from paper.claims.printed_numbers import CIFAR10, TEN_SEED_SETTINGS, VISION, table_cells
from paper.claims.text import TEXT_NUMBERS
from support.paper_evidence import FINDINGS, STUDIES, evidence_of, papers_own_evidence

from focalcal.lab.training.recipes import operating_points
from focalcal.stats import PRIMARY, compare

OTHERS = ("ce", "focal", "brier", "mmce", "ls", "flsd53", "dual_focal")


@pytest.fixture(scope="module")
def everything():
    return evidence_of(*STUDIES)


@pytest.fixture(scope="module")
def all_runs(everything):
    return PaperRuns(everything, operating_points())


def read(table):
    return list(csv.DictReader(io.StringIO(table.table.csv())))


def number(what):
    (found,) = (one for one in TEXT_NUMBERS if one.what == what)
    return found


@pytest.mark.parametrize("study", sorted({one.study for one in TEXT_NUMBERS}))
def test_the_study_that_is_named_answers_and_other_runs_do_not_confuse(study, all_runs):
    alone = PaperRuns(evidence_of(study), operating_points())
    for one in TEXT_NUMBERS:
        if one.study == study:
            assert one.ours(alone) is not None, one.what
            if study != "vision" or "seed 0" in one.what:  # other studies add seeds to it
                assert one.ours(all_runs) == one.ours(alone), one.what


def test_every_number_stands_beside_ours(everything):
    shown = against_paper(everything, operating_points())
    assert list(shown) == ["against_paper", "against_paper_text"]
    cells = read(shown["against_paper"])
    assert len(cells) == len(list(table_cells())) == 308  # 96 + 72 + 48 + 84 of its tables, 8 of its text
    text = read(shown["against_paper_text"])
    assert [row["paper"] for row in text if " of " in row["paper"]] == [
        one.printed for one in TEXT_NUMBERS if " of " in one.printed
    ]
    assert [float(row["paper"]) for row in text if " of " not in row["paper"]] == [
        float(one.printed) for one in TEXT_NUMBERS if " of " not in one.printed
    ]
    assert NOT_RUN not in {row["value"] for row in (*cells, *text)}


def test_the_papers_own_numbers_give_what_its_text_says_of_them():
    runs = PaperRuns(papers_own_evidence())
    for what in (
        *("vision settings: fcl has the lowest error", "vision settings: fcl has the lowest ECE"),
        *("CIFAR-10 networks: brier has the lowest ECE", "CIFAR-10 networks: fcl has the lowest ECE"),
        *("transformers fine-tuned: focal or flsd53 has the lowest ECE",),
        *("transformers fine-tuned: ls has the lowest error", "common split: adafocal has a lower ECE than fcl"),
        *(f"common split: fcl has a lower {metric} than adafocal" for metric in ("NLL", "Brier score", "error")),
    ):
        one = number(what)
        ours = one.ours(runs)
        assert f"{ours.value} of {ours.of}" == one.printed, what
    for end in ("lowest", "highest"):
        one = number(f"transformers fine-tuned, ce: {end} ECE of the three")
        assert f"{100 * one.ours(runs).value:.1f}" == one.printed
    within = number("DeiT-S, ViT-S fine-tuned: largest excess of fcl's error over the lowest other")
    assert 100 * within.ours(runs).value == pytest.approx(0.17)
    within = number("vision settings: largest excess of fcl's error over the lowest other")
    assert 100 * within.ours(runs).value == pytest.approx(1.34)  # on Tiny-ImageNet, against the text


def test_the_counts_of_the_ten_seeds_add_up():
    verdicts = {one.what: int(one.printed.split(" of ")[0]) for one in TEXT_NUMBERS if one.study == "tenseed"
                and " of " in one.printed}  # fmt: skip
    first, second, third = TEN_SEED_SETTINGS
    totals = {verdict: verdicts[f"all three settings: fcl {verdict}"] for verdict in
              ("significantly better", "significantly worse", "indistinguishable")}  # fmt: skip
    assert sum(totals.values()) == 84
    better = [verdicts[f"{one}: fcl significantly better"] for one in (first, second)]
    assert totals["significantly better"] == sum(better) + verdicts[f"{third}: fcl significantly better"]
    against = [verdicts[f"{third}, {name}: fcl significantly worse"] for name in ("focal", "flsd53", "dual_focal")]
    assert totals["significantly worse"] == verdicts[f"{third}: fcl significantly worse"] == sum(against)


def cell(evidence, study_like, **wanted):
    """The runs of a cell, chosen by hand."""
    return [
        run
        for run in PaperRuns(evidence).evidence.runs
        if study_like(run) and all(getattr(run, name, run.options.get(name)) == value for name, value in wanted.items())
    ]


def test_answers_are_those_counted_by_hand(everything, all_runs):
    def answer(what):
        return number(what).ours(all_runs)

    def main(objective):
        return lambda run: (
            run.spec["objective"] == objective and not run.spec["training"]["data_options"].get("validation")
        )

    (gap,) = {run.metrics["test"]["confidence_gap"] for run in
              cell(evidence_of("vision"), main("focal"), setting="cifar10/resnet110", seed=0)}  # fmt: skip
    assert answer("cifar10/resnet110, focal, seed 0: mean confidence minus accuracy").value == gap
    (point,) = cell(everything, main("fcl"), setting="cifar10/resnet50", gamma=5.0, lam=0.0)
    assert answer("cifar10/resnet50, fcl, gamma = 5, lam = 0, seed 0: ECE").value == point.metrics["test"]["ece"]
    distances = []
    for setting in VISION:
        runs = {run.seed: run for run in cell(everything, main("ce"), setting=setting)}
        distances.append(abs(statistics.fmean(run.scaled.temperature for run in runs.values()) - 1))
    ours = answer("vision settings: mean |T - 1| of ce")
    assert ours.value == pytest.approx(statistics.fmean(distances))

    shift = evidence_of("shift")
    wins = 0
    for setting in CIFAR10:
        for split in ("svhn", "cifar10c/fog/5"):
            means = {
                name: round(statistics.fmean(one.values()), 4)
                for name, one in shift.values(setting, "auroc", split=split).items()
            }
            wins += means["fcl"] == max(means.values())
    assert answer("CIFAR-10 networks, both shifts: fcl has the highest AUROC").value == wins

    chest = evidence_of("chestxray")
    setting = "chestxray14/chexnet"
    means = {
        name: [round(statistics.fmean(run.metrics["test"][f"auroc/{label}"] for run in chest.of(setting, name)), 4)
               for label in FINDINGS]
        for name in ("multilabel_bce", "multilabel_fcl")
    }  # fmt: skip
    better = sum(theirs <= ours for theirs, ours in zip(*means.values(), strict=True))
    (wins_by_finding,) = (one for one in TEXT_NUMBERS if one.printed == "4 of 14")
    assert (wins_by_finding.ours(all_runs).value, wins_by_finding.ours(all_runs).of) == (better, 14)

    ten = evidence_of("tenseed")
    setting = TEN_SEED_SETTINGS[1]
    values = {metric: ten.values(setting, metric) for metric in PRIMARY}
    verdicts = [
        one.verdict
        for name in OTHERS
        for one in compare({m: v["fcl"] for m, v in values.items()}, {m: v[name] for m, v in values.items()})
    ]
    ours = answer(f"{setting}: fcl significantly better")
    assert (ours.value, ours.of) == (verdicts.count("better"), 28)
    assert ours.value > 0


def test_what_was_not_run_says_so():
    evidence = evidence_of("tenseed")
    few = replace(evidence, runs=tuple(
        run for run in evidence.runs
        if run.setting == "cifar10/resnet50" and run.seed < 3 and run.objective in ("ce", "fcl")
    ))  # fmt: skip
    shown = against_paper(few, operating_points())
    rows = {(row["objective"], row["metric"]): row["value"] for row in read(shown["against_paper"])}
    assert {name for (name, _), value in rows.items() if value != NOT_RUN} == {"ce", "fcl"}
    assert {name for name, _ in rows} == {*OTHERS, "fcl"}
    assert "nothing was run: cifar100/resnet50 (vision), " in shown["against_paper"].note
    text = {row["what"]: row["value"] for row in read(shown["against_paper_text"])}
    assert text["cifar10/resnet50: fcl significantly better"] == NOT_RUN  # three seeds can show nothing
    assert text["vision settings: fcl has the lowest ECE"] == "1 of 1"
    assert text["cifar10/resnet50, fcl, gamma = 5, lam = 0, seed 0: ECE"] == NOT_RUN
    assert f"{list(text.values()).count(NOT_RUN)} of {len(text)} numbers have no runs here" in (
        shown["against_paper_text"].note
    )


def test_of_several_points_the_operating_point_stands_for_fcl():
    evidence = evidence_of("surface")
    setting = "cifar10/resnet50"
    (run,) = PaperRuns(evidence, operating_points()).grid().of(setting, "fcl")
    assert (run.options["gamma"], run.options["lam"]) == (4.0, 1.5)
    assert PaperRuns(evidence).grid().of(setting, "fcl") == []  # seventy points, and no telling which


def test_without_runs_there_is_nothing_to_compare(everything):
    assert against_paper(replace(everything, runs=())) == {}
