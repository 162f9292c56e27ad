"""A cell is a spec that says everything, refuses what cannot run, and can be read back."""

import json
from dataclasses import replace

import pytest
import torch

from focalcal.lab.store import Evaluations, Protocol, Spec
from focalcal.lab.studies.spec_builder import check_evaluations, known_options, loss_of, recipe_of, spec_of
from focalcal.lab.training import RECIPES, recipe
from focalcal.lab.training.operating_points import fcl_point
from focalcal.losses import LOSSES

DIGITS = recipe("digits_small_cnn_lite")


def test_the_setting_gives_fcl_its_point_and_options_override_it():
    resnet = recipe("cifar10_resnet50")
    assert dict(spec_of(resnet, "fcl", {}, seed=0).objective_options) == {"gamma": 4, "lam": 1.5}
    assert dict(spec_of(resnet, "fcl", {"lam": 0}, seed=0).objective_options) == {"gamma": 4, "lam": 0}
    assert dict(spec_of(resnet, "focal", {}, seed=0).objective_options) == {"gamma": 3}
    unlisted = replace(DIGITS, data_set="svhn", data_options={})  # the loss's own defaults
    assert dict(spec_of(unlisted, "fcl", {}, seed=0).objective_options) == {"gamma": 3, "lam": 1}


def test_defaults_written_out_are_the_same_run_as_defaults_left_out():
    for objective in ("ce", "brier", "focal", "ls", "mmce", "flsd53", "dual_focal", "adafocal"):
        left_out = spec_of(DIGITS, objective, {}, seed=1)
        assert left_out == spec_of(DIGITS, objective, known_options(objective), seed=1)


def test_the_scale_is_part_of_a_run_where_it_is_not_the_papers():
    default, paper, matched = (
        spec_of(DIGITS, "fcl", options, seed=0) for options in ({}, {"scale": "paper"}, {"scale": "matched"})
    )
    assert default.key == paper.key  # and so the keys of runs that were stored before there were two scales
    assert matched.key != default.key
    assert dict(matched.objective_options)["scale"] == "matched"
    assert [loss_of(spec).scale for spec in (default, matched)] == ["paper", "matched"]


@pytest.mark.parametrize("name", RECIPES)
def test_a_spec_gives_its_recipe_back(name):
    one = RECIPES[name]
    objective = "multilabel_fcl" if name.startswith("chestxray14") else "fcl"
    spec = spec_of(one, objective, {}, seed=3, protocol=Protocol(train_examples=100))
    stored = Spec.from_dict(json.loads(json.dumps(spec.as_dict())))
    assert recipe_of(stored) == one
    again = spec_of(recipe_of(stored), objective, stored.objective_options, seed=3, protocol=stored.protocol)
    assert again.key == spec.key


@pytest.mark.parametrize("objective", LOSSES)
def test_the_loss_of_a_stored_spec_is_the_loss_that_was_asked_for(objective):
    one = recipe("chestxray14_chexnet") if objective.startswith("multilabel") else recipe("digits_small_cnn_lite")
    spec = Spec.from_dict(json.loads(json.dumps(spec_of(one, objective, {}, seed=0).as_dict())))
    if objective in ("fcl", "multilabel_fcl"):
        wanted = LOSSES[objective](**fcl_point(one.data_set, one.model)._asdict())
    else:
        wanted = LOSSES[objective]()
    logits = torch.randn(6, 4)
    target = (torch.rand(6, 4) > 0.5).float() if objective.startswith("multilabel") else torch.arange(6) % 4
    assert torch.equal(loss_of(spec)(logits, target), wanted(logits, target))


@pytest.mark.parametrize(
    ("objective", "options", "message"),
    [
        ("focl", {}, "'focl' is not an objective; did you mean 'focal'.*adafocal"),
        ("fcl", {"lamda": 1}, "'lamda' is not an option of fcl; did you mean 'lam'.*gamma, lam"),
        ("ce", {"gamma": 1}, "'gamma' is not an option of ce. Known: label_smoothing"),
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


def test_evaluations_are_checked_against_the_recipe():
    check_evaluations("small_cnn", Evaluations(saliency=2))
    with pytest.raises(ValueError, match="shifts: 'svnh' is not a shift; did you mean 'svhn'"):
        check_evaluations("small_cnn", Evaluations(shifts=["svnh"]))
    with pytest.raises(ValueError, match="saliency must be 0 for mlp, which has no feature maps, got 2"):
        check_evaluations("mlp", Evaluations(saliency=2))
