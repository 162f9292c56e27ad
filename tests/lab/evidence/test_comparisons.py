import math

import pytest
from support import synthetic_study as synthetic

from focalcal.lab.evidence.comparisons import FamilyNote, all_comparisons, comparisons, seeds_needed, usual_candidate
from focalcal.lab.evidence.evidence import measured, reading_order
from focalcal.lab.report.study_tables.paired import limits_of_comparisons, note_sentences
from focalcal.lab.store import Store
from focalcal.stats import verdict_counts


def evidence_of(store):
    return measured(reading_order(store.runs()), title="")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return synthetic.study_store(tmp_path_factory.mktemp("runs"), seeds=range(8))


def test_a_family_for_every_setting_and_baseline(store):
    families = comparisons(evidence_of(store))
    assert [(family.setting, family.baseline) for family in families] == [
        ("digits/small_cnn", "ce"),
        ("digits/small_cnn", "focal"),
    ]
    assert all(len(family.comparisons) == 4 and family.reachable for family in families)
    tests = all_comparisons(families)
    assert {test.test.n for test in tests} == {8}
    assert sum(verdict_counts(tests).values()) == 8
    assert verdict_counts(tests)["worse"] == 0


def test_a_candidate_that_is_worse_is_said_to_be(store):
    tests = all_comparisons(comparisons(evidence_of(store), "ce", ["fcl"]))
    assert verdict_counts(tests) == {"better": 0, "worse": 4, "indistinguishable": 0}


def test_pairs_with_odd_numbers_are_left_out_and_named(tmp_path):
    store = Store(tmp_path)
    for seed in range(8):
        synthetic.add(store, synthetic.spec("ce", seed), changed={"nll": math.nan if seed in (2, 5) else 9.0 + seed})
        synthetic.add(store, synthetic.spec("fcl", seed), changed={"ece": math.inf if seed else 0.5})
    (family,) = comparisons(evidence_of(store))
    found = {one.metric: one for one in family.comparisons}
    assert found["nll"].seeds == (0, 1, 3, 4, 6, 7)
    assert "ece" not in found  # one pair is left
    assert family.notes == (
        FamilyNote("not finite", "ece", seeds=(1, 2, 3, 4, 5, 6, 7)),
        FamilyNote("too few", "ece", seeds=(0,), seeds_needed=8, alpha=0.05),
        FamilyNote("not finite", "nll", seeds=(2, 5)),
    )
    assert "nll of seed 2, 5 is not finite; the pair is left out" in note_sentences(family.notes)


@pytest.mark.parametrize(("alpha", "tests"), [(0.05, 4), (0.05, 1), (0.01, 4), (0.2, 7)])
def test_seeds_needed_is_the_least_number_that_can_be_significant(alpha, tests):
    n = seeds_needed(tests, alpha)
    assert tests * 2 / 2**n <= alpha < tests * 2 / 2 ** (n - 1)


def test_what_three_seeds_cannot_show_is_counted(tmp_path):
    families = comparisons(evidence_of(synthetic.study_store(tmp_path)))
    assert not any(family.reachable for family in families)
    (sentence,) = limits_of_comparisons(families)
    assert sentence.startswith("n = 3: p >= 0.25, 1 after Holm's correction")
    assert "8 of 8 comparisons" in sentence


def test_metrics_without_a_better_direction_are_refused(store):
    with pytest.raises(ValueError, match="less or more is better, got 'confidence_gap'"):
        comparisons(evidence_of(store), metrics=["ece", "confidence_gap"])
    with pytest.raises(ValueError, match="metrics must name one at least"):
        comparisons(evidence_of(store), metrics=[])


def test_the_usual_candidate_is_fcl_unless_it_is_a_sweep_or_alone(tmp_path, store):
    assert usual_candidate(evidence_of(store)) == "fcl"
    sweep = Store(tmp_path / "sweep")
    for lam in (1.0, 2.0):
        synthetic.add(sweep, synthetic.spec("fcl", 0, gamma=3.0, lam=lam))
    assert usual_candidate(evidence_of(sweep)) is None
    assert usual_candidate(evidence_of(synthetic.study_store(tmp_path / "one", objectives=("fcl",)))) is None
