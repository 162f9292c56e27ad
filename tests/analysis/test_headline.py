import math

import pytest
from support.synthetic_study import add, spec

from focalcal.analysis.evidence import gather, reading_order
from focalcal.analysis.headline import headline
from focalcal.reports.headline_text import headline_sentence
from focalcal.results import Store


def evidence_of(folder, cells):
    """`cells` are (data set, objective, ECE of each seed, error)."""
    store = Store(folder)
    for data_set, objective, eces, error in cells:
        for seed, ece in enumerate(eces):
            add(store, spec(objective, seed, data_set=data_set), rows=40, changed={"ece": ece, "error": error})
    return gather(reading_order(store.runs()), title="A study")


def test_sizes_seeds_and_the_error_are_said(tmp_path):
    found = headline(evidence_of(tmp_path, [("a", "ce", [0.2, 0.25], 0.05), ("a", "fcl", [0.1, 0.11], 0.04)]))
    (change,) = found.changes
    assert (change.before, change.after) == (pytest.approx(0.225), pytest.approx(0.105))
    assert (change.better, change.worse, change.seeds, change.verdict) == (2, 0, 2, None)
    assert headline_sentence(found) == (
        "FCL lowers ECE from 22.5 to 10.5 points against cross-entropy on a/small_cnn, in both seeds, at an error of "
        "4.0 % (before: 5.0 %); two seeds cannot show that this is more than chance."
    )


def test_what_it_makes_worse_is_in_the_same_sentence(tmp_path):
    found = headline(
        evidence_of(
            tmp_path,
            [
                *(("a", "ce", [0.2, 0.2, 0.2], 0.05), ("a", "fcl", [0.1, 0.1, 0.25], 0.05)),
                *(("b", "ce", [0.02], 0.05), ("b", "fcl", [0.038], 0.05)),
            ],
        )
    )
    assert headline_sentence(found) == (
        "FCL lowers ECE from 20.0 to 15.0 points against cross-entropy on a/small_cnn, in two of three seeds, at an "
        "error of 5.0 % as before; on b/small_cnn it raises it by 1.8 points, in one seed."
    )


def test_a_significant_difference_is_called_so(tmp_path):
    seeds = range(8)
    cells = [("a", "ce", [0.2 + seed / 100 for seed in seeds], 0.05), ("a", "fcl", [0.1] * 8, 0.05)]
    found = headline(evidence_of(tmp_path, cells))
    assert found.changes[0].verdict == "better"
    assert headline_sentence(found).endswith("paired over seeds the difference is significant.")


def test_there_is_none_without_a_pair(tmp_path):
    assert headline(evidence_of(tmp_path / "alone", [("a", "fcl", [0.1], 0.05)])) is None
    odd = [("a", "ce", [math.nan], 0.05), ("a", "fcl", [0.1], 0.05)]
    assert headline(evidence_of(tmp_path / "odd", odd)) is None
