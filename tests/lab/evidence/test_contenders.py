"""Being calibrated and useless is not a win."""

import doctest
import statistics

import numpy as np
import pytest
from support.synthetic_study import add, evidence_of, spec, study_store

from focalcal.lab.evidence import contenders as module
from focalcal.lab.evidence.cell_means import HEADLINE, leaders
from focalcal.lab.evidence.contenders import constant_guesses, contenders, within_margin
from focalcal.lab.evidence.evidence import gather, gather_metrics, reading_order
from focalcal.lab.evidence.surface import surface
from focalcal.lab.report.figures.surface_views import surface_note
from focalcal.lab.report.page_sections import study_page
from focalcal.lab.report.sentences import study_sentences
from focalcal.lab.report.study_tables import all_tables
from focalcal.lab.report.study_tables.run_lists import runs_table
from focalcal.lab.store import Store
from focalcal.pages.page import typeset

SETTING = "digits/small_cnn"


def add_useless(store, one):
    """A run that says nearly the same of every row: as calibrated as can be, and of no use."""
    return add(store, one, sharpness=1e-3, signal=1e-3)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    made = study_store(tmp_path_factory.mktemp("store"), objectives=("ce", "focal"), shifts=("svhn",))
    for seed in (0, 1, 2):
        add_useless(made, spec("fcl", seed, gamma=3.0, lam=64.0, shifts=("svhn",)))
    return made


@pytest.fixture(scope="module")
def evidence(store):
    return evidence_of(store)


def test_the_margin_is_the_larger_of_two_points_and_a_quarter():
    assert doctest.testmod(module).attempted == 1
    assert within_margin({"a": 0.01, "b": 0.029, "c": 0.031}) == {"a", "b"}
    assert within_margin({"a": 0.40, "b": 0.499, "c": 0.501}) == {"a", "b"}
    assert within_margin({"a": float("nan"), "b": float("nan")}) == {"a", "b"}  # nothing is known against them


def test_a_network_that_learnt_nothing_would_lead_and_does_not(evidence):
    lowest = {
        metric: min(means := {name: statistics.fmean(one.values()) for name, one in values.items()}, key=means.get)
        for metric in HEADLINE
        if (values := evidence.values(SETTING, metric))
    }
    assert lowest["ece"] == lowest["adaptive_ece"] == "fcl"  # so that there is something to refuse
    assert contenders(evidence, SETTING) == {"ce", "focal"}
    assert {name for one in leaders(evidence) for name in one.objectives} <= {"ce", "focal"}
    assert {one.runner_up for one in leaders(evidence)} <= {"ce", "focal", None}
    assert [one.metric for one in leaders(evidence)] == list(HEADLINE)


def test_nor_does_it_on_a_task_so_hard_that_the_margin_reaches_it(tmp_path):
    store = Store(tmp_path)
    for seed in (0, 1):
        add(store, spec("ce", seed), signal=0.4)
        add(store, spec("focal", seed), signal=0.4)
        add_useless(store, spec("fcl", seed))
    evidence = evidence_of(store)
    errors = {name: statistics.fmean(one.values()) for name, one in evidence.values(SETTING, "error").items()}
    assert within_margin(errors) == {"ce", "focal", "fcl"}
    assert [one.objective for one in constant_guesses(evidence)] == ["fcl"]
    assert contenders(evidence, SETTING) == {"ce", "focal"}
    assert not any(any(shown.table.bold.get("fcl", ())) for shown in all_tables(evidence).values())


def test_where_nothing_was_learnt_nothing_is_best(tmp_path):
    store = Store(tmp_path)
    for objective in ("ce", "focal"):
        add_useless(store, spec(objective))
    evidence = evidence_of(store)
    assert contenders(evidence, SETTING) == set()
    assert leaders(evidence) == []
    assert not any(any(map(any, shown.table.bold_rows())) for shown in all_tables(evidence).values())
    assert study_page(evidence, tables=all_tables(evidence))


def test_no_table_stars_it_and_every_one_says_the_rule(evidence):
    seen = set()
    for name, shown in all_tables(evidence).items():
        if name == "comparisons" or not any(map(any, shown.table.bold_rows())):
            continue
        assert "exceeds the lowest of their setting by at most 2 points, or 25 % of it if" in shown.note, name
        if "objective" in shown.table.columns:
            rows = [at for at, one in enumerate(shown.table.columns["objective"]) if one == "fcl"]
            starred = [any(mask[at] for mask in shown.table.bold.values()) for at in rows]
        else:
            starred = list(shown.table.bold["fcl"])
        assert not any(starred), name
        seen.add(name)
    assert seen >= {"overview", "ece", "best_counts", "temperature", "temperature_distance", "shift_auroc"}


def test_it_is_flagged_in_summary_tables_and_page(evidence):
    (guess,) = constant_guesses(evidence)
    assert (guess.objective, guess.seeds, guess.of) == ("fcl", (0, 1, 2), 3)
    assert guess.error == pytest.approx(0.75, abs=0.05)
    assert guess.constant == pytest.approx(0.72, abs=0.03)  # the commonest of four labels, drawn 400 times
    (said,) = study_sentences(evidence).flags
    assert said.startswith(f"On {SETTING} the error of fcl ({100 * guess.error:.1f} %) is not lower beyond chance than")
    tables = all_tables(evidence)
    assert tables["overview"].table.columns["flag"] == [None, None, "constant guess"]
    assert "No better than a constant guess predicts: fcl on digits/small_cnn." in tables["ece"].note
    assert "No better than a constant guess predicts: fcl" in tables["comparisons"].note
    assert runs_table(evidence).columns["flag"].count("constant guess") == 3
    assert typeset(said.partition(", ")[0].replace("fcl", "FCL")) in study_page(evidence, tables=tables)


def test_it_is_flagged_without_reading_every_prediction(store):
    """As in the table that `focalcal study` prints."""
    evidence = gather_metrics(reading_order(store.runs()), title="A study")
    assert [one.objective for one in constant_guesses(evidence)] == ["fcl"]


def test_one_seed_that_learnt_nothing_is_named(tmp_path):
    store = study_store(tmp_path, objectives=("ce", "fcl"), seeds=(0, 1))
    add_useless(store, spec("fcl", 2))
    add(store, spec("ce", 2))
    evidence = evidence_of(store)
    (guess,) = constant_guesses(evidence)
    assert guess.seeds == (2,)
    assert "constant guess, 1 of 3" in all_tables(evidence)["overview"].table.columns["flag"]
    assert "fcl on digits/small_cnn (seed 2)" in all_tables(evidence)["ece"].note
    assert "1 of 3 seeds" in study_sentences(evidence).flags[0]


def test_useful_runs_are_not_flagged(tmp_path):
    evidence = gather(study_store(tmp_path, seeds=(0,)).runs(), title="A study")
    assert all(run.constant_error == pytest.approx(0.73, abs=0.03) for run in evidence.runs)
    assert constant_guesses(evidence) == []
    assert study_sentences(evidence).flags == ()
    assert "flag" not in all_tables(evidence)["overview"].table.columns


def test_the_star_of_a_surface_is_no_useless_cell(tmp_path):
    store = Store(tmp_path / "easy")
    for gamma in (1.0, 2.0):
        for lam, ece in ((0.5, 0.05), (64.0, 0.01)):
            error = 0.9 if (gamma, lam) == (1.0, 64.0) else 0.2
            add(store, spec("fcl", gamma=gamma, lam=lam), changed={"error": error, "ece": ece * gamma}, rows=60)
    found = surface(gather(store.runs(), title="A study"), SETTING, "ece")
    assert found.values[0, 1] == np.nanmin(found.values)
    assert found.minimum == (2.0, 64.0)
    assert found.excluded == 1
    said = surface_note(found)
    assert "1 cell cannot be the minimum: an error exceeds the lowest by more than 2 points" in said
    hard = Store(tmp_path / "hard")  # where the margin reaches a constant guess
    for gamma in (1.0, 2.0):
        for lam, ece in ((0.5, 0.05), (64.0, 0.01)):
            error = 0.75 if lam == 64.0 else 0.62
            add(hard, spec("fcl", gamma=gamma, lam=lam), changed={"error": error, "ece": ece * gamma})
    found = surface(gather(hard.runs(), title="A study"), SETTING, "ece")
    assert (found.minimum, found.excluded) == ((1.0, 0.5), 2)
