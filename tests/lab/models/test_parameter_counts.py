"""Numbers of parameters, batch norm's scale and shift included, as the reference implementations have them."""

import pytest
import torch

from focalcal.lab.models import build_model

COUNTS = [  # that the table of docs/guide/models.md, which test_model_table.py compares, does not have
    ("resnet50", 100, 23_705_252),
    ("resnet110", 100, 1_736_564),
    ("wide_resnet26_10", 100, 36_539_124),
    ("densenet121", 100, 7_048_548),
    # The well-known totals for ImageNet.
    ("chexnet", 1000, 7_978_856),
    ("vit_small", 1000, 22_050_664),
    ("swin_tiny", 1000, 28_288_354),
    ("efficientnet_lite0", 1000, 4_652_008),  # the published 4.65 million
]
PADDED = [(8, 75_290), (20, 269_722), (32, 464_154), (44, 658_586), (56, 853_018), (110, 1_727_962)]


def parameters(name, classes, **options):
    with torch.device("meta"):
        network = build_model(name, classes=classes, **options)
    return sum(p.numel() for p in network.parameters())


@pytest.mark.parametrize(("name", "classes", "count"), COUNTS)
def test_parameters(name, classes, count):
    if name.startswith(("vit", "deit", "swin", "minilm")):
        pytest.importorskip("transformers")
    assert parameters(name, classes) == count


@pytest.mark.parametrize(("depth", "count"), PADDED)
def test_padding_has_no_parameters(depth, count):
    assert parameters(f"resnet{depth}", 10, shortcut="pad") == count


def test_the_text_network_beside_its_embedding():
    assert parameters("gp_cnn", 20) == 247_316 + 20_000 * 100
    assert parameters("gp_cnn", 20, vocabulary=7) == 247_316 + 700
    assert parameters("dan", 20) == 15_508 + 20_000 * 100


def test_an_mlp_follows_its_formula():
    assert parameters("mlp", 10, features=64) == 65 * 256 + 257 * 256 + 257 * 10 == 85_002
    assert parameters("mlp", 3, features=5, hidden=()) == 6 * 3
