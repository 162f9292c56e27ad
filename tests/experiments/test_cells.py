"""A cell is a spec that says everything, refuses what cannot run, and can be read back."""

import json
from dataclasses import replace

import pytest
import torch

from focalcal.experiments.cells import known_options, loss_of, recipe_of, spec_of
from focalcal.losses import LOSSES, FocalCalibrationLoss
from focalcal.results import Protocol, Spec
from focalcal.training import RECIPES, recipe

DIGITS = recipe("digits_small_cnn_lite")


def test_the_recipe_gives_fcl_its_point_and_options_override_it():
    resnet = recipe("cifar10_resnet50")
    assert dict(spec_of(resnet, "fcl", {}, seed=0).objective_options) == {"gamma": 4, "lam": 1.5}
    assert dict(spec_of(resnet, "fcl", {"lam": 0}, seed=0).objective_options) == {"gamma": 4, "lam": 0}
    assert dict(spec_of(resnet, "focal", {}, seed=0).objective_options) == {"gamma": 3}


def test_defaults_written_out_are_the_same_run_as_defaults_left_out():
    for objective in ("ce", "brier", "focal", "ls", "mmce", "flsd53", "dual_focal", "adafocal"):
        left_out = spec_of(DIGITS, objective, {}, seed=1)
        assert left_out == spec_of(DIGITS, objective, known_options(objective), seed=1)


@pytest.mark.parametrize("name", RECIPES)
def test_a_spec_gives_its_recipe_back(name):
    one = RECIPES[name]
    objective = "multilabel_fcl" if name.startswith("chestxray14") else "fcl"
    spec = spec_of(one, objective, {}, seed=3, protocol=Protocol(train_examples=100))
    stored = Spec.from_dict(json.loads(json.dumps(spec.as_dict())))
    assert recipe_of(stored).settings() == one.settings()
    again = spec_of(recipe_of(stored), objective, stored.objective_options, seed=3, protocol=stored.protocol)
    assert again.key == spec.key


def test_a_recipe_without_fcl_comes_back_with_all_but_the_point():
    spec = spec_of(recipe("cifar10_resnet50"), "ce", {}, seed=0)
    back = recipe_of(spec).settings()
    assert {**back, "fcl_gamma": 4.0, "fcl_lam": 1.5} == recipe("cifar10_resnet50").settings()
    assert spec_of(recipe_of(spec), "ce", {}, seed=0) == spec


def test_fcl_point_of_the_recipe_does_not_divide_runs_of_other_objectives():
    moved = replace(DIGITS, fcl_gamma=1, fcl_lam=7)
    assert spec_of(moved, "ce", {}, seed=0) == spec_of(DIGITS, "ce", {}, seed=0)
    assert spec_of(moved, "fcl", {}, seed=0) != spec_of(DIGITS, "fcl", {}, seed=0)


@pytest.mark.parametrize("objective", LOSSES)
def test_the_loss_of_a_stored_spec_is_the_loss_that_was_asked_for(objective):
    one = recipe("chestxray14_chexnet") if objective.startswith("multilabel") else recipe("digits_small_cnn_lite")
    spec = Spec.from_dict(json.loads(json.dumps(spec_of(one, objective, {}, seed=0).as_dict())))
    if objective in ("fcl", "multilabel_fcl"):
        wanted = LOSSES[objective](gamma=one.fcl_gamma, lam=one.fcl_lam)
    else:
        wanted = LOSSES[objective]()
    logits = torch.randn(6, 4)
    target = (torch.rand(6, 4) > 0.5).float() if objective.startswith("multilabel") else torch.arange(6) % 4
    assert torch.equal(loss_of(spec)(logits, target), wanted(logits, target))


def test_a_loss_has_the_given_hyper_parameters():
    loss = loss_of(spec_of(DIGITS, "fcl", {"gamma": 0.5, "lam": 8}, seed=0))
    assert isinstance(loss, FocalCalibrationLoss)
    assert (loss.gamma, loss.lam) == (0.5, 8)


@pytest.mark.parametrize(
    ("objective", "options", "message"),
    [
        ("focl", {}, "'focl' is not an objective; did you mean 'focal'.*adafocal"),
        ("fcl", {"lamda": 1}, "'lamda' is not an option of fcl; did you mean 'lam'.*gamma, lam"),
        ("ce", {"gamma": 1}, "'gamma' is not an option of ce. Known: none"),
        ("fcl", {"reduction": "sum"}, "'reduction' is not an option of fcl"),
        ("fcl", {"gamma": -1}, "gamma must be .*-1"),
        ("multilabel_bce", {}, "objective must suit small_cnn on digits, where an example has one label"),
    ],
)
def test_what_a_loss_does_not_take_is_refused(objective, options, message):
    with pytest.raises(ValueError, match=message):
        spec_of(DIGITS, objective, options, seed=0)


def test_x_rays_want_a_multilabel_loss():
    with pytest.raises(ValueError, match=r"any number of labels, got 'fcl'; use one of multilabel_bce"):
        spec_of(recipe("chestxray14_chexnet"), "fcl", {}, seed=0)


def test_adafocal_wants_validation_examples():
    resnet = recipe("cifar10_resnet50")
    with pytest.raises(ValueError, match="adafocal needs validation examples"):
        spec_of(resnet, "adafocal", {}, seed=0)
    assert spec_of(replace(resnet, data_options={"validation": 5000}), "adafocal", {}, seed=0).objective == "adafocal"


def test_options_that_a_network_or_a_loader_lacks_are_refused():
    with pytest.raises(ValueError, match="model_options: 'widht' is not an option of small_cnn; did you mean 'width'"):
        spec_of(replace(DIGITS, model_options={"widht": 3}), "ce", {}, seed=0)
    with pytest.raises(ValueError, match="data_options: 'sead' is not an option of digits; did you mean 'seed'"):
        spec_of(replace(DIGITS, data_options={"sead": 3}), "ce", {}, seed=0)


def test_shifts_and_saliency_are_checked_against_the_recipe():
    with pytest.raises(ValueError, match="'svnh' is not a shift; did you mean 'svhn'"):
        spec_of(DIGITS, "ce", {}, seed=0, protocol=Protocol(shifts=["svnh"]))
    with pytest.raises(ValueError, match="saliency must be 0 for mlp"):
        spec_of(recipe("digits_mlp_lite"), "ce", {}, seed=0, protocol=Protocol(saliency=2))
