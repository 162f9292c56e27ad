"""Which optimiser, and which parameters weight decay spares."""

import pytest
import torch
from torch import nn

from focalcal.models import build_model
from focalcal.training import RECIPES, Optimizer
from focalcal.training.optimizers import build_optimizer, undecayed_names


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
    assert all(weights[one].dim() >= 2 for one in weights if one not in spared)  # matrices and kernels alone
    assert all(weights[one].dim() == 1 or "position" in one or "cls_token" in one for one in spared)
    positions = [one for one in spared if "position" in one or "cls_token" in one]
    assert len(positions) == (2 if name == "vit_small" else 12)  # a table in each of Swin's blocks


def test_groups_hold_every_trained_parameter_once():
    network = Network()
    settings = Optimizer(name="adamw", lr=0.1, weight_decay=0.05, undecayed=("bias", "norm", "position"))
    optimizer = build_optimizer(settings, network)
    decayed, spared = optimizer.param_groups
    assert [decayed["weight_decay"], spared["weight_decay"]] == [0.05, 0.0]
    assert [id(one) for one in decayed["params"]] == [id(network.first.weight)]
    both = [id(one) for group in optimizer.param_groups for one in group["params"]]
    assert sorted(both) == sorted(id(one) for one in network.parameters() if one.requires_grad)


def test_weight_decay_reaches_the_decayed_alone():
    network = Network()
    nn.init.ones_(network.first.weight)
    settings = Optimizer(name="adamw", lr=0.1, weight_decay=0.5, undecayed=("bias", "norm"))
    optimizer = build_optimizer(settings, network)
    for one in network.parameters():
        one.grad = torch.zeros_like(one)
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
