"""Which optimiser, which parameters weight decay spares, and learning rates against torch's own schedulers."""

import random
from dataclasses import asdict

import pytest
import torch
from support.training_runs import small_recipe
from torch import nn

from focalcal.lab.models import build_model
from focalcal.lab.training import RECIPES, Optimizer, Schedule
from focalcal.lab.training.optimization import Plateau, build_optimizer, rate_share, undecayed_names

STEPS = 7


class Network(nn.Module):
    """One parameter of every kind."""

    def __init__(self):
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, 4))
        self.position_embeddings = nn.Parameter(torch.zeros(1, 3, 4))
        self.first = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.batch = nn.BatchNorm1d(4)
        self.frozen = nn.Linear(4, 4).requires_grad_(False)


@pytest.mark.parametrize(
    ("kinds", "spared"),
    [
        ((), set()),
        (("bias",), {"first.bias", "norm.bias", "batch.bias", "frozen.bias"}),
        (("norm",), {"norm.weight", "norm.bias", "batch.weight", "batch.bias"}),
        (("position",), {"cls_token", "position_embeddings"}),
    ],
)
def test_what_is_spared(kinds, spared):
    assert set(undecayed_names(Network(), kinds)) == spared


@pytest.mark.parametrize("name", ["vit_small", "swin_tiny"])
def test_transformers_have_these_kinds_where_the_recipes_spare_them(name):
    pytest.importorskip("transformers")
    with torch.device("meta"):
        network = build_model(name, classes=10)
    spared = set(undecayed_names(network, ("bias", "norm", "position")))
    weights = dict(network.named_parameters())
    assert all(weights[key].dim() >= 2 for key in weights if key not in spared)  # matrices and kernels alone
    assert all(weights[key].dim() == 1 or "position" in key or "cls_token" in key for key in spared)
    positions = [key for key in spared if "position" in key or "cls_token" in key]
    assert len(positions) == (2 if name == "vit_small" else 12)  # a table in each of Swin's blocks


def test_groups_hold_every_trained_parameter_once_and_weight_decay_reaches_the_decayed_alone():
    network = Network()
    nn.init.ones_(network.first.weight)
    settings = Optimizer(name="adamw", lr=0.1, weight_decay=0.5, undecayed=("bias", "norm", "position"))
    optimizer = build_optimizer(settings, network)
    decayed, spared = optimizer.param_groups
    assert [decayed["weight_decay"], spared["weight_decay"]] == [0.5, 0.0]
    assert [id(weight) for weight in decayed["params"]] == [id(network.first.weight)]
    both = [id(weight) for group in optimizer.param_groups for weight in group["params"]]
    assert sorted(both) == sorted(id(weight) for weight in network.parameters() if weight.requires_grad)
    for weight in network.parameters():
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    torch.testing.assert_close(network.first.weight, torch.full((4, 4), 1 - 0.1 * 0.5))
    torch.testing.assert_close(network.norm.weight, torch.ones(4))


def test_each_kind_is_torchs_with_the_recipes_numbers():
    kinds = {"cifar10_resnet50": torch.optim.SGD, "newsgroups_gp_cnn": torch.optim.Adam}
    for name, kind in kinds.items():
        settings = RECIPES[name].optimizer
        optimizer = build_optimizer(settings, nn.Linear(2, 2))
        assert type(optimizer) is kind
        (group,) = optimizer.param_groups
        assert group["lr"] == settings.lr
        assert group["weight_decay"] == settings.weight_decay
        if kind is torch.optim.SGD:
            assert (group["momentum"], group["nesterov"]) == (0.9, True)
        else:
            assert group["betas"] == (0.9, 0.999)


def an_optimizer():
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)


def torch_rates(scheduler, steps):
    rates = []
    for _ in range(steps):
        rates.append(scheduler.optimizer.param_groups[0]["lr"])
        scheduler.optimizer.step()
        scheduler.step()
    return rates


def our_rates(epochs, **schedule):
    recipe = small_recipe(epochs=epochs, schedule=Schedule(**schedule))
    return [rate_share(recipe, step, STEPS) for step in range(epochs * STEPS)]


@pytest.mark.parametrize(
    ("schedule", "theirs", "epochs"),
    [
        ({"kind": "constant"}, lambda one: torch.optim.lr_scheduler.LambdaLR(one, lambda step: 1.0), 3),
        ({"kind": "cosine"}, lambda one: torch.optim.lr_scheduler.CosineAnnealingLR(one, T_max=4 * STEPS), 4),
        (
            {"kind": "milestones", "milestones": (2, 5), "factor": 0.1},  # at the end of these epochs
            lambda one: torch.optim.lr_scheduler.MultiStepLR(one, [2 * STEPS, 5 * STEPS], gamma=0.1),
            8,
        ),
    ],
)
def test_rates_are_those_of_torchs_scheduler_in_every_step(schedule, theirs, epochs):
    expected = torch_rates(theirs(an_optimizer()), epochs * STEPS)
    assert our_rates(epochs, **schedule) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("factor", [None, 0.07])
def test_linear_falls_to_its_factor(factor):
    down = torch.optim.lr_scheduler.LinearLR(
        an_optimizer(), start_factor=1, end_factor=factor or 0, total_iters=4 * STEPS
    )
    expected = torch_rates(down, 4 * STEPS)
    assert our_rates(4, kind="linear", factor=factor) == pytest.approx(expected, rel=1e-9)
    assert our_rates(5, kind="linear", factor=factor, warmup=1)[STEPS:] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kind", ["constant", "cosine"])
def test_warm_up_is_linear_and_reaches_the_full_rate_in_its_last_step(kind):
    warm = 2 * STEPS
    optimizer = an_optimizer()
    up = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1 / warm, total_iters=warm - 1)
    rates = our_rates(5, kind=kind, warmup=2)
    assert rates[:warm] == pytest.approx(torch_rates(up, warm), rel=1e-12)
    assert rates[warm - 1] == rates[warm] == 1.0
    if kind == "cosine":
        down = torch.optim.lr_scheduler.CosineAnnealingLR(an_optimizer(), T_max=3 * STEPS)
        assert rates[warm:] == pytest.approx(torch_rates(down, 3 * STEPS), abs=1e-12)


@pytest.mark.parametrize("patience", [0, 1, 3])
def test_plateau_lowers_when_torch_does(patience):
    draw = random.Random(patience)
    losses = [1 / (1 + epoch / 5) + draw.uniform(-0.15, 0.15) for epoch in range(60)] + [0.3] * 5
    losses[10] = losses[9] * (1 - 5e-5)  # a fall too small to count
    optimizer = an_optimizer()
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=patience, eps=0)
    plateau = Plateau()
    for loss in losses:
        scheduler.step(loss)
        plateau.see(loss, patience)
        assert 0.5**plateau.lowered == optimizer.param_groups[0]["lr"]
    assert plateau.lowered > 2
    assert Plateau(**asdict(plateau)) == plateau
