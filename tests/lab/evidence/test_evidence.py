import math

import pytest
from support import synthetic_study as synthetic

from focalcal.lab.evidence.evidence import gather
from focalcal.lab.evidence.gaps import gaps_of_stores
from focalcal.lab.report.sentences import gap_sentences
from focalcal.lab.store import Store
from focalcal.lab.store.diagnostics import RunFailure

OBJECTIVES = ("ce", "focal", "fcl")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return synthetic.study_store(tmp_path_factory.mktemp("store") / "runs")


@pytest.fixture(scope="module")
def evidence(store):
    return synthetic.evidence_of(store)


def test_runs_come_in_reading_order_and_by_seed(evidence):
    assert evidence.settings == ("digits/small_cnn",)
    assert evidence.objectives == OBJECTIVES
    assert [run.seed for run in evidence.of("digits/small_cnn", "fcl")] == [0, 1, 2]
    assert evidence.of("digits/small_cnn", "brier") == []
    assert evidence.missing == ()


def test_values_are_the_stored_metrics(evidence, store):
    stored = {(run.spec.objective, run.spec.seed): run.metrics("test")["ece"] for run in store.runs()}
    values = evidence.values("digits/small_cnn", "ece")
    assert {(name, seed): value for name, one in values.items() for seed, value in one.items()} == stored
    assert evidence.values("digits/small_cnn", "no such metric") == {}


def test_reliability_bins_give_the_stored_ece(evidence):
    for run in evidence.runs:
        bins = run.reliability
        full = bins.count > 0
        ece = (bins.count * abs(bins.gap))[full].sum() / bins.count.sum()
        assert ece == pytest.approx(run.metrics["test"]["ece"], abs=1e-6)


@pytest.mark.parametrize("fitted_on", ["halves", "validation"])
def test_temperature_mends_what_was_too_sharp_or_too_flat(store, fitted_on):
    for run in gather(store.runs(), title="", temperature=fitted_on).runs:
        assert run.scaled.fitted_on == fitted_on
        assert run.scaled.temperature == pytest.approx(synthetic.SHARPNESS[run.objective], rel=0.35)
        assert run.scaled.after["error"] == run.scaled.before["error"]  # a temperature changes no prediction
        if run.objective == "ce":
            assert run.scaled.after["nll"] < run.scaled.before["nll"]
        if fitted_on == "validation":  # the whole test set
            assert run.scaled.before["nll"] == pytest.approx(run.metrics["test"]["nll"], rel=1e-5)
        rows = run.scaled.reliability_before.count.sum()
        assert rows == run.scaled.reliability_after.count.sum() == (200 if fitted_on == "halves" else 400)


def test_known_cells_set_the_order_and_those_without_a_run_are_named(store):
    nothing = gather([], title="empty", known=[synthetic.spec("ce", 0)])
    assert (nothing.runs, nothing.settings, len(nothing.missing)) == ((), (), 1)
    known = [synthetic.spec(name, seed) for name in ("fcl", "brier", "ce", "focal") for seed in (0, 1, 2)]
    (failed,) = gaps_of_stores([RunFailure(known[3].key, "DivergedError", f"see {known[4].key}")])
    evidence = gather(store.runs(), title="", known=known, missing=[failed])
    assert evidence.objectives == ("fcl", "ce", "focal")
    assert evidence.missing[0] == failed
    assert [(gap.kind, gap.key, gap.about) for gap in evidence.missing[1:]] == [
        ("not run", known[seed + 3].key, f"digits/small_cnn brier seed {seed}") for seed in (1, 2)
    ]


def test_odd_numbers_single_seeds_and_absent_seeds_are_named_and_the_rest_is_kept(tmp_path):
    store = Store(tmp_path)
    synthetic.add(store, synthetic.spec("ce", 0), changed={"nll": math.inf})
    synthetic.add(store, synthetic.spec("ce", 1), changed={"ece": math.nan})
    synthetic.add(store, synthetic.spec("fcl", 1))
    evidence = synthetic.evidence_of(store)
    assert len(evidence.runs) == 3
    told = "\n".join(gap_sentences(evidence.missing))
    assert "ce seed 0" in told
    assert "on test nll is inf" in told
    assert "on test ece is nan" in told
    assert "fcl: no seed 0, which others have" in told
    assert "fcl: there is one seed only" in told
    assert math.isinf(evidence.values("digits/small_cnn", "nll")["ce"][0])


def test_a_run_with_damaged_predictions_keeps_its_metrics(tmp_path):
    store = synthetic.study_store(tmp_path, objectives=("ce",), seeds=(0, 1))
    broken = store.runs()[0]
    synthetic.damage_predictions(broken)
    evidence = gather(store.runs(), title="")
    run = next(run for run in evidence.runs if run.key == broken.key)
    assert run.reliability is None
    assert run.scaled is None
    assert run.metrics["test"]["ece"] > 0
    (gap,) = (gap for gap in evidence.missing if gap.kind == "unreadable")
    assert gap.key == broken.key
    assert "predictions of test cannot be read" in gap.text


def test_several_labels_have_no_temperature_and_say_so(tmp_path):
    store = Store(tmp_path)
    synthetic.add_multilabel(store, synthetic.spec("ce", 0, data_set="chestxray14"), ["a", "b"])
    (run,) = gather(store.runs(), title="").runs
    assert run.scaled is None
    assert run.reliability is None
    assert [note.kind for note in run.notes] == ["no temperature"]
    assert "yes-or-no" in run.notes[0].text


def test_details_say_how_well_a_run_is_known(tmp_path):
    store = synthetic.study_store(tmp_path, objectives=("ce",), seeds=(0,))
    assert gather(store.runs(), title="").runs[0].details is None
    (run,) = gather(store.runs(), title="", details=True).runs
    for name in ("error", "ece", "nll", "brier"):
        interval = run.details.intervals[name]
        assert interval.estimate == pytest.approx(run.metrics["test"][name])
        assert interval.low <= interval.estimate <= interval.high
    assert 0 < run.details.intervals["ece"].chance < run.metrics["test"]["ece"]  # it is overconfident
    assert [int(each.count.sum()) for each in run.details.classes] == [400] * 4
    assert run.details.posterior is None
