"""A cell is a spec that says everything, refuses what cannot run, and can be read back."""

import json
from dataclasses import replace

import pytest
import torch
from support.older_store import older_key, older_spec

from focalcal.lab.models import MODEL_INFO
from focalcal.lab.store import Evaluations, Protocol, Spec
from focalcal.lab.store.keys import current_key
from focalcal.lab.studies.spec_builder import check_evaluations, known_options, loss_of, recipe_of, spec_of
from focalcal.lab.training import RECIPES, recipe
from focalcal.lab.training.operating_points import operating_point
from focalcal.losses import LOSSES, FocalCalibrationLoss

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
        wanted = LOSSES[objective](**operating_point(one.data_set, one.model)._asdict())
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


# The first 12 digits of the keys under which version 0.1 stored them, key schema 1,
# for seed 0 with cross-entropy and with Focal Calibration Loss at the recipe's gamma and lam.
KEYS = {
    "cifar10_resnet50": ("1eebd8dabb83", "24575852af77"),
    "cifar10_resnet110": ("8d8ca67e17ee", "d98a99ac43a7"),
    "cifar10_wide_resnet26_10": ("e8ffc375366d", "772469119d2b"),
    "cifar10_densenet121": ("d1ce736e2569", "9e5f6b6bba8c"),
    "cifar100_resnet50": ("5a480ac0486e", "cf8736409022"),
    "cifar100_resnet110": ("cdd5b59ac6a8", "d0b88c1b8347"),
    "cifar100_wide_resnet26_10": ("d42c9400ff50", "9b46de8d65aa"),
    "cifar100_densenet121": ("41d27cc60865", "405fb0878572"),
    "tiny_imagenet_resnet50": ("f109e8b747bf", "26ca7ea27645"),
    "cifar10_resnet50_45k": ("876ddfc3655e", "a6aa016e3e0a"),
    "cifar100_resnet50_45k": ("fd652e1ca2ae", "dc2e5e023186"),
    "cifar100_resnet110_45k": ("e903d3b70b8c", "a29e31667422"),
    "newsgroups_gp_cnn": ("c6fb5291a91a", "182942064c7c"),
    "ag_news_gp_cnn": ("b7dab6e72185", "03cabd71c5cc"),
    "finsen_gp_cnn": ("d8aee7117df9", "2d10c55019b5"),
    "cifar100_deit_small": ("490bb742c085", "7b914a78f605"),
    "cifar100_vit_small": ("cc8fe1187b85", "f81438bcc629"),
    "cifar100_swin_tiny": ("ccfb7cd9d72f", "5815a984a9ca"),
    "cifar100_deit_small_scratch": ("3b1b38ad6ea0", "7ebe9cf45598"),
    "cifar100_vit_small_scratch": ("56ada43546fb", "b288d1c028da"),
    "cifar100_swin_tiny_scratch": ("e9b7ebedb513", "67034fd497c9"),
    "chestxray14_chexnet": ("0cf65485216c", "a2624f909d67"),
    "cifar10_resnet8_lite": ("2a3c91dc6ec7", "caaef7c84368"),
    "cifar10_resnet20_lite": ("43631d2f4960", "15f413c0587d"),
    "newsgroups_gp_cnn_lite": ("11d545ba3b46", "21f464a24b01"),
    "ag_news_gp_cnn_lite": ("3cabbe090376", "5a570796bd24"),
    "finsen_gp_cnn_lite": ("5aca79525b4a", "e2faa843c2d5"),
    "digits_mlp_lite": ("522e1d541012", "03fe0d1cc7b8"),
    "digits_small_cnn_lite": ("7f9c88a6fdbd", "588e9ea0a3f2"),
    "fashion_mnist_small_cnn_lite": ("e34b489c3930", "c33e4777bee7"),
    "discrete_mlp_lite": ("0adb464c2d8d", "a554ea0d57fd"),
    "gaussian_mixture_mlp_lite": ("8503b3968273", "4ebe2a268236"),
    "teacher_mlp_lite": ("5a424f3d554c", "f331665d4ecc"),
}


@pytest.mark.parametrize("name", KEYS)
def test_a_recipe_keeps_the_keys_of_its_runs(name):
    chosen = recipe(name)
    objectives = ("multilabel_bce", "multilabel_fcl") if MODEL_INFO[chosen.model].multilabel else ("ce", "fcl")
    specs = [spec_of(chosen, objective, seed=0) for objective in objectives]
    assert tuple(older_key(older_spec(spec))[:12] for spec in specs) == KEYS[name]
    assert [current_key(older_spec(spec)) for spec in specs] == [spec.key for spec in specs]
