"""Recipes are canonical plain values, name things that exist, and say where each setting comes from."""

import json
import pickle
import re
from dataclasses import replace
from inspect import signature
from pathlib import Path

import pytest
import torch

from focalcal.lab.data import CATALOGUE, DATA_SETS, load_data
from focalcal.lab.data.augment.counter_rng import example_keys
from focalcal.lab.models import MODEL_INFO, MODELS, build_model
from focalcal.lab.training import (
    RECIPES,
    Optimizer,
    Recipe,
    Schedule,
    Step,
    recipe,
    recipe_table,
    recipe_text,
)
from focalcal.lab.training.operating_points import fcl_point
from focalcal.lab.training.recipes import operating_points

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "recipes.md"
CLASSES = {"cifar100": 100, "tiny_imagenet": 200, "discrete": 5, "gaussian_mixture": 5, "teacher": 10}
FEATURES = {"discrete", "gaussian_mixture"}
every = pytest.mark.parametrize("name", RECIPES)


def text(one):
    return json.dumps(one.as_dict())


@pytest.fixture
def small():
    return recipe("digits_mlp_lite")


def test_the_same_numbers_written_otherwise_give_the_same_text(small):
    floats = replace(
        small,
        classes=10.0,
        epochs=100.0,
        optimizer={**small.optimizer.as_dict(), "weight_decay": 0, "momentum": 0.0, "nesterov": False},
        schedule=Schedule(kind="milestones", milestones=[2.0, 5], factor=0.5),
        model_options={"hidden": [256.0, 256], "features": 64.0},
        augmentation=[Step(name="RandAugment", options={"magnitude": 9.0, "layers": 2.0})],
    )
    whole = replace(
        small,
        optimizer=Optimizer(name="sgd", lr=0.1),
        schedule={"kind": "milestones", "milestones": (2, 5), "factor": 0.5},
        model_options={"features": 64, "hidden": (256, 256)},
        augmentation=({"name": "RandAugment", "options": {"layers": 2, "magnitude": 9}},),
    )
    assert floats == whole
    assert hash(floats) == hash(whole)
    assert text(floats) == text(whole)


@pytest.mark.parametrize("name", ["cifar10_resnet50", "cifar100_resnet50", "cifar100_resnet110"])
def test_the_common_split_differs_in_nothing_else(name):
    whole, part = recipe(name), recipe(f"{name}_45k")
    assert dict(whole.data_options) == {"validation": 0}
    assert dict(part.data_options) == {"validation": 5000}
    assert replace(part, data_options={"validation": 0}) == whole
    assert "data_options = { validation = 5000 }  # paper" in recipe_text(f"{name}_45k")


@every
def test_a_recipe_survives_json_names_what_exists_and_augments_to_the_side_that_its_network_sees(name):
    one = RECIPES[name]
    again = json.loads(json.dumps(one.as_dict()))
    assert again == one.as_dict()
    assert Recipe.from_dict(again) == pickle.loads(pickle.dumps(one)) == one
    assert one.model in MODELS
    assert one.classes == (len(CATALOGUE[one.data_set].classes) or CLASSES[one.data_set])
    assert set(dict(one.data_options)) <= set(signature(DATA_SETS[one.data_set]).parameters)
    is_image = MODEL_INFO[one.model].inputs == "images" or (one.model == "mlp" and one.data_set not in FEATURES)
    assert (one.mean is not None) == is_image
    assert (MODEL_INFO[one.model].inputs == "tokens") == ("length" in dict(one.data_options))
    sides = {"chestxray14": 256, "tiny_imagenet": 64, "digits": 8, "teacher": 8, "fashion_mnist": 28}
    side = sides.get(one.data_set, 32)
    images = torch.randint(0, 256, (2, 3, side, side), dtype=torch.uint8)
    keys = example_keys(0, "augment", 0, ids=torch.arange(2))
    for step in one.augmentation:
        images = step.build()(images, keys)
    normalised = images.float()
    for step in one.after_normalisation:
        normalised = step.build()(normalised, keys)
    assert normalised.shape == (2, 3, one.image_size or side, one.image_size or side)


@pytest.mark.parametrize("name", [name for name, one in RECIPES.items() if CATALOGUE[one.data_set].folder is None])
def test_data_without_files_fit_the_network(name):
    one = RECIPES[name]
    data = load_data(one.data_set, **dict(one.data_options))
    assert len(data.classes) == one.classes
    assert data.test.inputs.dtype == ("float32" if one.mean is None else "uint8")
    model = build_model(one.model, classes=one.classes, **dict(one.model_options)).eval()
    assert model(torch.from_numpy(data.test.inputs[:3]).float()).shape == (3, one.classes)


def test_the_digits_have_one_split_for_every_seed_of_training_and_their_statistics(small):
    splits = [
        load_data("digits", **dict(recipe(f"digits_{model}_lite").data_options)) for model in ("mlp", "small_cnn")
    ]
    assert splits[0].provenance["split"] == splits[1].provenance["split"] == "stratified 60 / 20 / 20, seed 0"
    pixels = splits[0].train.inputs / 255
    assert small.mean[0] == pytest.approx(pixels.mean(), abs=0.005)
    assert small.std[0] == pytest.approx(pixels.std(), abs=0.005)


STATED = re.compile(r"(?m)^(?:# )?(?:Focal Calibration Loss with it: )?(\w+)(?: =|:) ?(.*?)(?:  # (\w+))?$")


@every
def test_every_setting_of_the_papers_recipes_has_a_source(name):
    if name.endswith("_lite"):
        assert recipe_text(name).startswith("# For a machine without a GPU: every setting is our judgement.")
        return
    top, *tables = re.split(r"(?m)^\[(\w+)\]  # (paper|code|judgement)$", recipe_text(name))
    sources = {key: source for key, _, source in STATED.findall(top)}
    assert set(sources.values()) <= {"paper", "code", "judgement"}
    assert (tables[0], tables[3]) == ("optimizer", "schedule")
    assert {source for table in (tables[2], tables[5]) for *_, source in STATED.findall(table)} <= {
        *("paper", "code", "judgement", ""),
    }
    point = fcl_point(RECIPES[name].data_set, RECIPES[name].model)
    stated = {key: value for key, value, _ in STATED.findall(top)}
    assert (float(stated["gamma"]), float(stated["lam"])) == point


def test_a_recipe_of_ones_own_is_a_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(recipe_text("digits_mlp_lite").replace("epochs = 100", "epochs = 7"))
    assert recipe(str(file)) == replace(recipe("digits_mlp_lite"), epochs=7)
    file.write_text("epochs = 7")
    with pytest.raises(ValueError, match=r"mine\.toml: data_set must be given; .*optimizer must be given"):
        recipe(str(file))
    file.write_text("epochs = ")
    with pytest.raises(ValueError, match=r"mine\.toml: Invalid value \(at end"):
        recipe(str(file))
    with pytest.raises(FileNotFoundError):
        recipe(str(tmp_path / "none.toml"))
    with pytest.raises(ValueError, match=r"'resnet' is not a recipe.*cifar10_resnet50"):
        recipe_text("resnet")


def test_operating_points_that_the_paper_states():
    stated = {
        name: fcl_point(one.data_set, one.model)
        for name, one in RECIPES.items()
        if re.search(r"gamma = .*# paper", recipe_text(name))
    }
    transformers = ("cifar100_deit_small", "cifar100_vit_small", "cifar100_swin_tiny")
    assert stated == {
        "cifar10_resnet50": (4, 1.5),
        "cifar100_resnet110": (4, 1.5),
        "cifar10_resnet50_45k": (4, 1.5),
        "cifar100_resnet110_45k": (4, 1.5),
        **dict.fromkeys(transformers, (3, 1)),
    }
    assert fcl_point("chestxray14", "chexnet").lam == 2
    assert re.search(r"lam = 2  # paper", recipe_text("chestxray14_chexnet"))
    assert operating_points()["cifar100/swin_tiny"] == (3, 1)
    assert fcl_point("cifar10", "a network of yours") == (4, 1.5)
    assert fcl_point("svhn", "resnet50") is None


def test_the_pairs_are_the_papers():
    paper = [name for name in RECIPES if not name.endswith("_lite")]
    small_images = ("resnet50", "resnet110", "wide_resnet26_10", "densenet121")
    assert {(RECIPES[name].data_set, RECIPES[name].model) for name in paper} == {
        *(("cifar10", model) for model in small_images),
        *(("cifar100", model) for model in (*small_images, "deit_small", "vit_small", "swin_tiny")),
        ("tiny_imagenet", "resnet50_tiny"),
        *((texts, "gp_cnn") for texts in ("newsgroups_19997", "ag_news", "finsen")),
        ("chestxray14", "chexnet"),
    }


def test_transformers_from_scratch_as_the_paper_states():
    for name in ("deit_small", "vit_small", "swin_tiny"):
        one = recipe(f"cifar100_{name}_scratch")
        assert (one.epochs, one.schedule) == (300, Schedule(kind="cosine", warmup=20))
        assert one.optimizer.name == "adamw"
        assert "RandAugment" in [step.name for step in one.augmentation]
        assert [step.name for step in one.after_normalisation] == ["RandomErasing"]
        assert one.initial_weights is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data_set": "mnist"}, "'mnist' is not a data set. Known: digits"),
        ({"model": "resnet9"}, "'resnet9' is not a model; did you mean"),
        ({"epochs": 2.5}, "epochs must be a whole number, got 2.5"),
        ({"std": None}, "together"),
        ({"mean": (0.1, 0.2, 0.3)}, "1 or 3 numbers each"),
        ({"image_size": 8}, "image_size must be given"),
        ({"schedule": Schedule(kind="cosine", warmup=100)}, "must lie before epochs = 100"),
        ({"model_options": {"features": object()}}, "model_options: features must be what JSON can say"),
        ({"model_options": 3}, "model_options must be a mapping"),
        ({"augmentation": ("PadCropFlip",)}, r"augmentation\[0\] must be a dictionary or an instance of Step"),
    ],
)
def test_refuses(small, change, message):
    with pytest.raises(ValueError, match=message):
        replace(small, **change)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Optimizer(name="sgd", lr=1, nesterov=True), "nesterov must be False without momentum"),
        (lambda: Optimizer(name="sgd", lr=1, betas=(0.9, 0.9)), "betas must be left out for sgd"),
        (lambda: Optimizer(name="adam", lr=1, momentum=0.9), "momentum and nesterov must be left out for adam"),
        (lambda: Optimizer(name="adamw", lr=1, undecayed="bias"), "undecayed must be a list, got 'bias'"),
        (lambda: Optimizer(name="adamw", lr=1, undecayed=("weights",)), "'weights' is not a kind of parameter"),
        (lambda: Schedule(kind="milestones", factor=0.1), "needs milestones"),
        (lambda: Schedule(kind="milestones", milestones=(5, 5), factor=0.1), "milestones must increase"),
        (lambda: Schedule(kind="cosine", factor=0.1), "has no factor"),
        (lambda: Step(name="MixUp"), "name: 'MixUp' is not an augmentation"),
        (lambda: Step(name="PadCropFlip", options={"pad": -1}), "pad must be >= 0"),
        (lambda: Schedule.from_dict({"sort": "cosine"}), "'sort' is not a key here. Known: kind"),
    ],
)
def test_parts_refuse(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_guide_repeats_the_table_and_names_recipes_that_exist():
    guide = GUIDE.read_text()
    assert recipe_table(RECIPES) in guide
    section = guide.partition("## Which recipe serves which result")[2].partition("\n## ")[0]
    named = re.findall(r"`(\w+_(?:45k|lite|gp_cnn|chexnet|small|tiny|resnet50|resnet110))`", section)
    assert len(named) > 15
    assert set(named) <= set(RECIPES)
