"""The three rounds of an operating-point study, on networks that do exactly what the theory assumes of them."""

import math
from collections import Counter
from dataclasses import replace

import pytest
from paper.operating_point.study import run_operating_points
from paper.operating_point.trial import Role, Trial, verdict
from support.ideal_networks import IdealNetworks
from support.small_runs import digits_recipe, digits_spec

from focalcal.lab.studies.events import Examined
from focalcal.lab.studies.spec_builder import spec_of


def by_role(trials):
    return {(trial.role, trial.gamma): trial for trial in trials}


def test_networks_that_overfit_as_assumed_need_no_temperature_at_the_predicted_lam(store):
    networks, events = IdealNetworks(1.4), []
    trials, _ = run_operating_points([digits_spec("ce")], store, networks, on_event=events.append)
    found = by_role(trials)
    assert found[Role.BASELINE, 0.0].temperature == pytest.approx(1.4, abs=0.01)
    assert all(trial.helps for trial in trials)
    for gamma in (2.0, 3.0, 5.0):
        assert found[Role.PREDICTED, gamma].matched
        assert found[Role.PREDICTED, gamma].miss < 0.05
        assert found[Role.PREDICTED, gamma].scale == "matched"
    assert found[Role.REFINED, 3.0].miss < 0.05
    lam = found[Role.PREDICTED, 3.0].lam
    assert found[Role.HALF, 3.0].lam == pytest.approx(lam / 2, rel=0.01)
    assert found[Role.TWICE, 3.0].lam == pytest.approx(2 * lam, rel=0.01)
    assert found[Role.HALF, 3.0].temperature < 1 < found[Role.TWICE, 3.0].temperature
    assert (found[Role.PAPER_SCALE, 3.0].lam, found[Role.PAPER_SCALE, 3.0].scale) == (lam, "paper")
    assert (found[Role.DEFAULT, 3.0].lam, found[Role.DEFAULT, 3.0].scale) == (1.0, "paper")
    assert (found[Role.CONSTANT, 3.0].lam, found[Role.CONSTANT, 3.0].scale) == (3.0, "matched")
    assert found[Role.BASELINE, 0.0].scaled_miss < 0.05 < found[Role.BASELINE, 0.0].miss
    assert [len(event.missing) for event in events if isinstance(event, Examined)] == [3, 6, 1]
    counts = verdict(trials)
    assert (counts.helped, counts.within, counts.kept) == (3, 3, 0)
    test = store.run(found[Role.PREDICTED, 3.0].key).metrics("test")
    assert [found[Role.PREDICTED, 3.0].record()[name] for name in ("ece", "nll", "error")] == [
        test[name] for name in ("ece", "nll", "error")
    ]


def test_nothing_is_trained_twice(store):
    networks = IdealNetworks(1.4)
    baselines = [digits_spec("ce", seed=seed) for seed in (0, 1)]
    first, _ = run_operating_points(baselines, store, networks)
    trained = Counter(spec.key for spec in networks.asked)
    assert set(trained.values()) == {1}
    assert run_operating_points(baselines, store, networks) == (first, False)
    assert sum(trained.values()) == len(networks.asked) == len({trial.key for trial in first})


def test_a_study_that_is_stopped_says_what_it_knows_of_the_baselines_it_has(store):
    class Stopped(IdealNetworks):
        def run(self, specs, store, on_event, evaluations):
            super().run(specs[:1], store, on_event, evaluations)
            raise KeyboardInterrupt

    trials, interrupted = run_operating_points([digits_spec("ce")], store, Stopped(1.4))
    assert [(trial.role, trial.helps) for trial in trials] == [(Role.BASELINE, True)]
    assert interrupted
    assert verdict(trials).kept == 0


def test_where_cross_entropy_is_not_overconfident_it_is_kept(store):
    trials, _ = run_operating_points([digits_spec("ce")], store, IdealNetworks(0.95))
    assert [trial.role for trial in trials] == [Role.BASELINE, Role.DEFAULT, Role.CONSTANT]
    assert not any(trial.helps for trial in trials)
    counts = verdict(trials)
    assert (counts.helped, counts.kept, counts.right) == (0, 1, 1)


def test_where_no_lam_distorts_enough_focal_loss_is_tried(store):
    found = by_role(run_operating_points([digits_spec("ce")], store, IdealNetworks(4.0))[0])
    trial = found[Role.PREDICTED, 2.0]
    assert (trial.lam, trial.helps, trial.matched) == (0.0, True, False)
    assert 1 < trial.temperature < found[Role.BASELINE, 0.0].temperature
    assert (Role.HALF, 3.0) not in found


def test_a_failing_cell_takes_those_with_it_that_follow(store):
    trials, _ = run_operating_points([digits_spec("ce")], store, IdealNetworks(1.4, fail=("matched",)))
    assert {trial.role for trial in trials} == {Role.BASELINE, Role.DEFAULT, Role.PAPER_SCALE}


def test_the_verdict_counts_what_the_rule_said():
    def trial(role, temperature, *, helps, matched=False, baseline="a"):
        numbers = {"gamma": 3.0, "lam": 1.0, "ece": 0.0, "nll": 1.0, "scaled_nll": 1.0, "error": 0.1}
        numbers["validation_temperature"] = 1.0
        said = {"helps": helps, "matched": matched, "key": "", "scale": "matched", "seed": 0}
        return Trial(baseline=baseline, role=role, temperature=temperature, **numbers, **said)

    trials = [
        trial(Role.PREDICTED, 1.05, helps=True, matched=True),
        trial(Role.PREDICTED, 0.85, helps=True, matched=True),
        trial(Role.PREDICTED, 1.0, helps=True, matched=False),
        trial(Role.PREDICTED, 1.0, helps=False, matched=True),
        trial(Role.BASELINE, 1.02, helps=False, baseline="b"),
        trial(Role.DEFAULT, 0.9, helps=False, baseline="b"),
        trial(Role.BASELINE, 1.2, helps=False, baseline="c"),
        trial(Role.DEFAULT, 0.99, helps=False, baseline="c"),
    ]
    counts = verdict(trials)
    assert (counts.helped, counts.within, counts.kept, counts.right) == (2, 1, 2, 1)
    assert trials[1].miss == pytest.approx(-math.log(0.85))


def test_bad_input(store):
    with pytest.raises(ValueError, match=r"baselines must be cross-entropy cells \(objective ce\), got .*fcl"):
        run_operating_points([digits_spec("fcl")], store, IdealNetworks(1.0))
    text = replace(digits_recipe(), data_set="ag_news", classes=4, data_options={"validation": 0})
    with pytest.raises(ValueError, match=r"which holds none out; set data_options.validation"):
        run_operating_points([spec_of(text, "ce", seed=0)], store, IdealNetworks(1.0))
