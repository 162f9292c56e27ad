"""One training step of every network of a recipe, on inputs of its size."""

import pytest
import torch

from focalcal.lab.models import MODEL_INFO, build_model
from focalcal.lab.training import RECIPES
from focalcal.lab.training.operating_points import fcl_point
from focalcal.lab.training.optimization import build_optimizer
from focalcal.losses import FocalCalibrationLoss, MultilabelFocalCalibrationLoss

SIDES = {"digits": 8, "teacher": 8, "fashion_mnist": 28, "cifar10": 32, "cifar100": 32, "tiny_imagenet": 64}
# Recipes that differ in the split, the schedule, augmentation or the number of classes take the same step.
STEPS = {
    (recipe.model, recipe.optimizer.name, recipe.image_size or SIDES.get(recipe.data_set)): name
    for name, recipe in RECIPES.items()
}


def batch(recipe, count=2):
    """Inputs after normalisation, or token ids, and labels."""
    if MODEL_INFO[recipe.model].inputs == "tokens":
        inputs = torch.randint(1, 200, (count, dict(recipe.data_options)["length"]))
        inputs[0, :-30] = 0  # a short text, padded before
    elif recipe.mean is None:
        inputs = torch.randn(count, dict(recipe.model_options)["features"])
    else:
        side = recipe.image_size or SIDES[recipe.data_set]
        inputs = torch.randn(count, len(recipe.mean), side, side)
    if MODEL_INFO[recipe.model].multilabel:
        return inputs, torch.arange(count * recipe.classes).view(count, -1) % 3 == 0
    return inputs, torch.arange(count) * (recipe.classes - 1)


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


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if RECIPES[name].image_size == 224 else ()) for name in STEPS.values()],
)
def test_one_step(name):
    torch.manual_seed(0)
    recipe = RECIPES[name]
    options = dict(recipe.model_options)
    if recipe.word_vectors is not None:
        vectors = torch.randn(200, 100)
        vectors[0] = 0
        options["embedding"] = vectors
    model = build_model(recipe.model, classes=recipe.classes, **options).train()
    kind = MultilabelFocalCalibrationLoss if MODEL_INFO[recipe.model].multilabel else FocalCalibrationLoss
    inputs, labels = batch(recipe)

    logits = model(inputs)
    assert logits.shape == (2, recipe.classes)
    assert torch.isfinite(logits).all()
    loss = kind(**fcl_point(recipe.data_set, recipe.model)._asdict())(logits, labels)
    assert torch.isfinite(loss)
    assert loss > 0
    loss.backward()

    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    frozen = {name: weight.detach().clone() for name, weight in model.named_parameters() if not weight.requires_grad}
    assert set(frozen) == ({"embedding.weight"} if recipe.word_vectors else set())
    unreached = [name for name, weight in trained.items() if weight.grad is None]
    assert not unreached
    assert all(torch.isfinite(weight.grad).all() for weight in trained.values())
    moved = {name for name, weight in trained.items() if weight.grad.any()}
    before = {name: weight.detach().clone() for name, weight in trained.items()}
    build_optimizer(recipe.optimizer, model).step()
    for name, weight in trained.items():
        assert torch.isfinite(weight).all()
        if name in moved:
            assert not torch.equal(weight, before[name]), name
    assert len(moved) > 0.9 * len(trained)
    for name, weight in frozen.items():
        assert torch.equal(dict(model.named_parameters())[name], weight)
