import math

import pytest
from support import synthetic_study as synthetic

from focalcal.lab.evidence.comparisons import FamilyNote, all_comparisons, candidate_of, comparisons, seeds_needed
from focalcal.lab.evidence.evidence import gather_metrics, reading_order
from focalcal.lab.report.study_tables.paired import limits_of_comparisons, note_sentences
from focalcal.lab.store import Store
from focalcal.stats import verdict_counts


def evidence_of(store):
    return gather_metrics(reading_order(store.runs()), title="")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return synthetic.study_store(tmp_path_factory.mktemp("runs"), seeds=range(8))


def test_a_family_for_every_setting_and_baseline(store):
    families = comparisons(evidence_of(store), "fcl")
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
    (family,) = comparisons(evidence_of(store), "fcl")
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
    families = comparisons(evidence_of(synthetic.study_store(tmp_path)), "fcl")
    assert not any(family.reachable for family in families)
    (sentence,) = limits_of_comparisons(families)
    assert sentence.startswith("n = 3: p >= 0.25, 1 after Holm's correction")
    assert "8 of 8 comparisons" in sentence


def test_metrics_without_a_better_direction_are_refused(store):
    with pytest.raises(ValueError, match="less or more is better, got 'confidence_gap'"):
        comparisons(evidence_of(store), "fcl", metrics=["ece", "confidence_gap"])
    with pytest.raises(ValueError, match="metrics must name one at least"):
        comparisons(evidence_of(store), "fcl", metrics=[])


MINE = "mine:SoftGap"


def judged(folder, *losses, candidate=None, labels=None, **options):
    """The candidate of runs of these losses, a label per loss."""
    store, given = Store(folder), {}
    for loss in losses:
        one = synthetic.spec(loss, 0, **options)
        synthetic.add(store, one, rows=40)
        given[one.key] = ("", (labels or {}).get(loss, ""))
    return candidate_of(gather_metrics(reading_order(store.runs()), title="", candidate=candidate, labels=given))


@pytest.mark.parametrize(
    ("losses", "candidate", "found"),
    [
        (("ce", "focal", "fcl"), None, "fcl"),
        (("ce", "focal", MINE), None, "focal"),
        (("ce", MINE), None, MINE),
        (("ce", "fcl", MINE), MINE, MINE),
        (("ce", "focal", "fcl"), "ce", "ce"),
        (("fcl",), None, None),
    ],
)
def test_the_candidate_is_the_named_one_else_fcl_else_the_first_but_cross_entropy(tmp_path, losses, candidate, found):
    assert judged(tmp_path, *losses, candidate=candidate) == found


def test_a_candidate_is_known_by_its_loss_or_its_label_and_is_called_by_the_label(tmp_path):
    for at, name in enumerate((MINE, "SoftGap (ours)")):
        assert judged(tmp_path / str(at), "ce", "fcl", MINE, candidate=name, labels={MINE: "SoftGap (ours)"}) == (
            "SoftGap (ours)"
        )
    with pytest.raises(ValueError, match="candidate must be one of 'ce', 'fcl', got 'ghost'"):
        judged(tmp_path / "ghost", "ce", "fcl", candidate="ghost")
    with pytest.raises(ValueError, match="label must name one objective, got 'A' for ce and fcl"):
        judged(tmp_path / "twice", "ce", "fcl", labels={"ce": "A", "fcl": "A"})


def test_the_points_of_a_sweep_are_no_candidate(tmp_path):
    store = Store(tmp_path)
    for lam in (1.0, 2.0):
        synthetic.add(store, synthetic.spec("fcl", 0, gamma=3.0, lam=lam), rows=40)
    for name in (None, "fcl"):
        assert candidate_of(gather_metrics(reading_order(store.runs()), title="", candidate=name)) is None
    assert candidate_of(gather_metrics(reading_order(store.runs()), title="", candidate="fcl lam=2")) == "fcl lam=2"
