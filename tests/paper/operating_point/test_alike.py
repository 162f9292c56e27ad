"""Counts beside the same cross-entropy runs: who is counted, and what."""

import math

import pytest
from paper.operating_point.alike import CURVES, Alike
from paper.trials import Trials


def rows(baseline, *, helps, matched, temperatures, validation=1.0):
    return [
        {
            "setting": baseline,
            "baseline": baseline,
            "role": role,
            "gamma": 0.0 if role == "cross-entropy" else gamma,
            "helps": helps,
            "matched": matched and role == "predicted",
            "miss": abs(math.log(temperature)),
            "scaled_miss": abs(math.log(temperature / validation)),
        }
        for (role, gamma), temperature in temperatures.items()
    ]


TRIALS = Trials(
    (
        *rows(
            "a",
            helps=True,
            matched=True,
            temperatures={
                ("cross-entropy", 0.0): 1.5,
                ("predicted", 2.0): 2.0,  # another gamma is another question
                ("predicted", 3.0): 1.02,
                ("half of lam", 3.0): 0.92,
                ("twice lam", 3.0): 1.2,
                ("FCL(3, 1)", 3.0): 0.8,
                ("FCL(3, 3), matched", 3.0): 0.99,
            },
            validation=1.44,
        ),
        *rows("b", helps=True, matched=False, temperatures={("cross-entropy", 0.0): 1.9, ("predicted", 3.0): 1.5}),
        *rows("c", helps=False, matched=True, temperatures={("cross-entropy", 0.0): 1.0, ("predicted", 3.0): 1.0}),
    )
)


def test_only_runs_of_which_the_rule_says_that_fcl_helps_and_a_lam_matches_are_counted():
    same = Alike(TRIALS, TRIALS)
    assert same.baselines == {"a"}
    assert {curve: same.within(curve) for curve in CURVES} == {
        "predicted lam": "1 of 1",
        "half of it": "1 of 1",
        "twice": "0 of 1",
        "FCL(3, 3), matched": "1 of 1",
        "FCL(3, 1), paper's scale": "0 of 1",
        "cross-entropy": "0 of 1",
        "cross-entropy with its T": "1 of 1",
    }
    assert same.within("half of it", 0.05) == "0 of 1"


def test_everywhere_counts_what_the_rule_advises_against_too():
    every = Alike(TRIALS, TRIALS, everywhere=True)
    assert every.baselines == {"a", "b", "c"}
    assert every.within("predicted lam") == "2 of 3"
    assert every.within("cross-entropy") == "1 of 3"
    assert every.missed("cross-entropy") == "a, b"
    assert every.largest("cross-entropy") == f"{math.log(1.9):.3f}"


def test_a_temperature_of_validation_rows_leaves_the_ratio_of_the_two():
    assert Alike(TRIALS, TRIALS).misses("cross-entropy with its T") == pytest.approx([math.log(1.5 / 1.44)])


def test_the_counts_behind_the_claim_with_and_without_its_conditions():
    found = Trials.read("operating-point", "operating-point-real")
    same = Alike(found, Trials.read("operating-point-again"))
    assert [same.within(curve) for curve in list(CURVES)[:3]] == ["15 of 17", "13 of 17", "13 of 17"]
    assert same.within("FCL(3, 1), paper's scale") == "7 of 17"
    assert found.near(role="predicted", helps=True, matched=True) == "46 of 49"
    assert (found.near(role="predicted", helps=True), found.near(role="predicted")) == ("52 of 66", "66 of 81")
    for curve in CURVES:  # no cell is missing beside a run that is counted
        assert len(same.misses(curve)) == len(same.baselines)
