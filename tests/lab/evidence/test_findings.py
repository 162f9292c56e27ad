"""Findings are numbers, whatever sentences say of them."""

import math

import pytest
from support.synthetic_study import add, damage_predictions, evidence_of, spec, study_store

from focalcal.lab.evidence.cell_means import leaders
from focalcal.lab.evidence.findings import headline, run_notes, significance, study_families
from focalcal.lab.report.headline_text import headline_sentence
from focalcal.lab.store import Store


def test_one_objective_is_not_tested(tmp_path):
    store = Store(tmp_path)
    add(store, spec("ce", 0))
    evidence = evidence_of(store)
    assert significance(study_families(evidence)) is None
    assert leaders(evidence) == []
    assert [gap.kind for gap in evidence.missing] == ["one seed"]


def test_objectives_that_tie_lead_in_the_order_of_the_study(tmp_path):
    store, names = Store(tmp_path), ("ce", "focal", "brier", "mmce", "ls", "fcl")
    for name in names:
        add(store, spec(name), rows=40, changed={"error": 0.1})
    assert leaders(evidence_of(store))[0].objectives == names


def test_what_a_gap_says_is_not_noted_again(tmp_path):
    store = study_store(tmp_path, objectives=("ce",), seeds=(0, 1))
    damage_predictions(store.runs()[0])
    evidence = evidence_of(store)
    (gap,) = (gap for gap in evidence.missing if gap.kind == "unreadable")
    noted = run_notes(evidence)
    assert noted
    assert gap.text not in {note.text for note in noted}


def result_of(folder, cells):
    """`cells` are (data set, objective, ECE of each seed, error)."""
    store = Store(folder)
    for data_set, objective, eces, error in cells:
        for seed, ece in enumerate(eces):
            add(store, spec(objective, seed, data_set=data_set), rows=40, changed={"ece": ece, "error": error})
    return headline(evidence_of(store))


def test_sizes_seeds_and_the_error_are_said(tmp_path):
    found = result_of(tmp_path, [("a", "ce", [0.2, 0.25], 0.05), ("a", "fcl", [0.1, 0.11], 0.04)])
    (change,) = found.changes
    assert (change.before, change.after) == (pytest.approx(0.225), pytest.approx(0.105))
    assert (change.better, change.worse, change.seeds, change.verdict) == (2, 0, 2, None)
    assert headline_sentence(found) == (
        "FCL lowers ECE from 22.5 to 10.5 points against cross-entropy on a/small_cnn, in both seeds, while the "
        "error goes from 5.0 to 4.0 %; two seeds cannot show that this is more than chance."
    )


def test_what_it_makes_worse_is_in_the_same_sentence(tmp_path):
    cells = [
        *(("a", "ce", [0.2, 0.2, 0.2], 0.05), ("a", "fcl", [0.1, 0.1, 0.25], 0.05)),
        *(("b", "ce", [0.02], 0.05), ("b", "fcl", [0.038], 0.05)),
    ]
    found = result_of(tmp_path, cells)
    assert headline_sentence(found) == (
        "FCL lowers ECE from 20.0 to 15.0 points against cross-entropy on a/small_cnn, in two of three seeds, while "
        "the error stays at 5.0 %; on b/small_cnn it raises it by 1.8 points, in one seed."
    )


def test_a_significant_difference_is_called_so(tmp_path):
    seeds = range(8)
    cells = [("a", "ce", [0.2 + seed / 100 for seed in seeds], 0.05), ("a", "fcl", [0.1] * 8, 0.05)]
    found = result_of(tmp_path, cells)
    assert found.changes[0].verdict == "better"
    assert headline_sentence(found).endswith("paired over seeds the difference is significant.")


def test_there_is_none_without_a_pair(tmp_path):
    assert result_of(tmp_path / "alone", [("a", "fcl", [0.1], 0.05)]) is None
    odd = [("a", "ce", [math.nan], 0.05), ("a", "fcl", [0.1], 0.05)]
    assert result_of(tmp_path / "odd", odd) is None
