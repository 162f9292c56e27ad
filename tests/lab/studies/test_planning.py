"""Estimates come from stored runs that were timed, or there are none."""

from dataclasses import replace

import pytest
from support.every_study import EVERY_STUDY
from support.stored_runs import evaluation, record, stored

from focalcal.lab.store import Evaluations, Protocol
from focalcal.lab.studies import load_study
from focalcal.lab.studies.planning import Costs, plan_cells
from focalcal.lab.studies.spec_builder import spec_of
from focalcal.lab.training import Optimizer, recipe

DIGITS = recipe("digits_small_cnn_lite")
SVHN = Evaluations(shifts=("svhn",))


def cell(objective="ce", seed=0, *, protocol=(), **changed):
    return spec_of(replace(DIGITS, **changed), objective, {}, seed=seed, protocol=Protocol(**dict(protocol)))


def timed(store, spec, seconds, *, epochs=15, **provenance):
    told = {**record(), "seconds": seconds, "epochs": epochs, "provenance": provenance}
    return store.add(spec, record=told, epochs=None, predictions=[])


@pytest.mark.parametrize("name", ["known-posterior", "chestxray", "digits"])
def test_nothing_is_guessed(name, store):
    specs = load_study(EVERY_STUDY[name]).specs()
    for there in (store, None):
        assert [(one.state, one.seconds) for one in plan_cells(specs, there)] == [("to train", None)] * len(specs)


def test_alike_runs_tell_and_equal_cells_have_equal_estimates(store):
    for seed, seconds in enumerate((2.0, 9.0, 3.0)):
        timed(store, cell("ce", seed), seconds)
    specs = [spec for spec in load_study("digits").specs() if spec.data_set == "digits"]
    plan = {one.spec: one for one in plan_cells(specs, store)}
    assert {one.state for one in plan.values()} == {"done", "to train"}
    assert {one.seconds for one in plan.values() if one.state == "to train"} == {3.0}
    surface = [one for one in plan_cells(load_study("surface-lite").specs(), store) if one.state == "to train"]
    assert {one.seconds for one in surface} == {3.0}


def test_the_time_of_epochs_is_taken_in_proportion_and_that_of_the_rest_as_it_is(store):
    timed(store, cell(), 30.0, epochs=15, elapsed=34.0)
    costs = Costs(store.runs())
    assert costs.training(cell("fcl")) == 34.0
    assert costs.training(cell("fcl", epochs=30)) == 64.0
    assert costs.training(cell("fcl", optimizer=Optimizer(name="sgd", lr=9.0, momentum=0.9))) == 34.0


def test_a_run_whose_last_attempt_was_shorter_than_its_training_tells_that(store):
    timed(store, cell(), 30.0, elapsed=4.0)
    assert Costs(store.runs()).training(cell()) == 30.0


@pytest.mark.parametrize(
    "other",
    [
        cell(protocol={"train_examples": 100}),
        cell(protocol={"evaluate_every": 5}),
        cell(batch_size=8),
        cell(model_options={"channels": 1, "width": 64}),
        cell(optimizer=Optimizer(name="adam", lr=0.1)),
        spec_of(recipe("digits_mlp_lite"), "ce", {}, seed=0),
    ],
    ids=lambda one: one.model,
)
def test_runs_of_another_size_tell_nothing(store, other):
    timed(store, cell(), 2.0)
    costs = Costs(store.runs())
    assert costs.training(cell()) == 2.0
    assert costs.training(other) is None


def test_runs_on_another_device_or_with_other_threads_tell_nothing(store):
    timed(store, cell(), 2.0, machine={"device": "cuda:1", "threads": 4})
    assert Costs(store.runs(), device="cuda", threads=4).training(cell()) == 2.0
    assert Costs(store.runs(), device="cpu", threads=4).training(cell()) is None
    assert Costs(store.runs(), device="cuda").training(cell()) is None


def test_what_is_trained_is_only_evaluated(store, tmp_path):
    weights = tmp_path / "weights.pt"
    weights.touch()
    kept, bare, asked, new = (cell(seed=seed) for seed in range(4))
    store.add(kept, record=record(), epochs=None, predictions=[], files={"weights.pt": weights})
    for one in (bare, asked):
        stored(store, one)
    store.add_evaluation(asked.key, evaluation())  # which took half a second

    def states(evaluations):
        return [(one.state, one.seconds) for one in plan_cells((kept, bare, asked, new), store, evaluations)]

    nothing = ("without weights", 0.0)
    assert states(SVHN) == [("to evaluate", 0.5), nothing, ("done", 0.0), ("to train", 15 * 0.75 + 0.5)]
    unknown = Evaluations(shifts=("svhn", "cifar10c"))
    assert states(unknown) == [("to evaluate", None), nothing, nothing, ("to train", None)]
