"""Costs follow from operations counted without data or memory, or from runs that are stored."""

from dataclasses import replace

import pytest
import torch
from stored_runs import stored
from torch.utils.flop_counter import FlopCounterMode

from focalcal.data import load_data
from focalcal.experiments.cells import spec_of
from focalcal.experiments.cost import Costs, estimated_seconds, network_work
from focalcal.experiments.data_sizes import example_counts, input_shape
from focalcal.experiments.study import load_study
from focalcal.models import build_model
from focalcal.results import Protocol, Store
from focalcal.training import RECIPES, recipe

DIGITS = recipe("digits_small_cnn_lite")


# Multiplications and additions of a forward pass, in units of 10^9, with 2 % of room for what is not a convolution or
# a product of matrices: He et al. (2016), table 6 and github.com/facebookarchive/fb.resnet.torch (ResNet-110: 253 M
# products), Touvron et al. (2021), table 5 (DeiT-S: 4.6 G), Liu et al. (2021), table 1 (Swin-T: 4.5 G).
@pytest.mark.parametrize(
    ("name", "operations"),
    [("cifar10_resnet110", 0.506), ("cifar100_deit_small", 9.2), ("cifar100_swin_tiny", 9.0)],
)
def test_the_work_of_a_network_is_the_published_one(name, operations):
    assert network_work(recipe(name)).operations == pytest.approx(operations * 1e9, rel=0.02)


def test_work_counted_without_memory_is_that_of_the_real_network():
    options = dict(DIGITS.model_options)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        build_model("small_cnn", classes=10, **options).eval()(torch.randn(1, 1, 8, 8))
    assert network_work(DIGITS).operations == counter.get_total_flops()


@pytest.mark.parametrize("name", RECIPES)
def test_an_example_has_the_shape_that_its_recipes_network_takes(name):
    one = RECIPES[name]
    shape = input_shape(one)
    assert network_work(one).operations > 0  # the network took it
    if one.image_size is not None:
        assert shape[1:] == (one.image_size, one.image_size)


@pytest.mark.parametrize("name", ["digits", "teacher", "discrete", "gaussian_mixture"])
def test_the_counts_are_those_of_the_data_set(name):
    one = next(one for one in RECIPES.values() if one.data_set == name)
    data = load_data(name, **dict(one.data_options))
    counts = example_counts(one, Protocol())
    assert (counts.train, counts.val, counts.test) == pytest.approx([len(one) for one in data.splits.values()], abs=1)


def test_held_out_images_are_not_trained_on():
    assert example_counts(recipe("cifar10_resnet8_lite"), Protocol())[:3] == (45_000, 5_000, 10_000)
    assert example_counts(recipe("cifar10_resnet50"), Protocol())[:3] == (50_000, 0, 10_000)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_has_examples_to_train_and_test_on(name):
    counts = example_counts(RECIPES[name], Protocol())
    assert counts.train > counts.val >= 0
    assert counts.test > 0


def test_a_protocol_cuts_the_counts_and_adds_the_shifts():
    one = recipe("cifar10_resnet8_lite")
    assert example_counts(one, Protocol(train_examples=100, test_examples=7))[:3] == (100, 7, 7)
    shifted = Protocol(shifts=["svhn", "cifar10c"], severities=[1, 5])
    assert example_counts(one, shifted).shifted == 26_032 + 15 * 2 * 10_000


def test_cost_grows_with_epochs_examples_and_size():
    costs = Costs()

    def seconds(one, **protocol):
        return costs.seconds(spec_of(one, "ce", {}, seed=0, protocol=Protocol(**protocol)))

    assert seconds(replace(DIGITS, epochs=30)) == pytest.approx(2 * seconds(DIGITS))
    assert seconds(DIGITS, train_examples=100) < seconds(DIGITS) / 4
    assert seconds(replace(DIGITS, model_options={"channels": 1, "width": 64})) > 2 * seconds(DIGITS)
    assert seconds(DIGITS, evaluate_every=15) < seconds(DIGITS)
    resnet = recipe("cifar10_resnet50")
    assert seconds(resnet) > 3 * seconds(recipe("cifar10_resnet110"))


def test_stored_runs_tell_what_such_a_cell_takes(tmp_path):
    store = Store(tmp_path)
    ran, asked = (spec_of(DIGITS, name, {}, seed=3) for name in ("ce", "fcl"))
    guess = estimated_seconds(asked, store)
    stored(store, ran)  # took 1.5 seconds
    costs = Costs(store)
    assert costs.measured(asked)
    assert costs.seconds(asked) == 1.5
    longer = spec_of(replace(DIGITS, epochs=30), "fcl", {}, seed=3)
    assert not costs.measured(longer)
    assert costs.seconds(longer) != 1.5
    assert guess != 1.5


def test_runs_on_another_device_tell_nothing(tmp_path):
    store = Store(tmp_path)
    ran = spec_of(DIGITS, "ce", {}, seed=0)
    stored(store, ran)
    assert Costs(store).measured(ran)
    assert not Costs(store, "cuda").measured(ran)


def test_the_threads_of_the_process_stay_as_they_are():
    before = torch.get_num_threads()
    estimated_seconds(load_study("digits").specs(smoke=True)[0])
    assert torch.get_num_threads() == before
