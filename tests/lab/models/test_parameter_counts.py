"""Numbers of parameters, batch norm's scale and shift included, as the reference implementations have them."""

import pytest
import torch

from focalcal.lab.models import MODELS, build_model

COUNTS = [
    ("resnet50", 10, 23_520_842),
    ("resnet50", 100, 23_705_252),
    ("resnet50", 200, 23_910_152),
    ("resnet50_tiny", 200, 23_910_152),
    ("resnet110", 10, 1_730_714),
    ("resnet110", 100, 1_736_564),
    ("wide_resnet26_10", 10, 36_481_434),
    ("wide_resnet26_10", 100, 36_539_124),
    ("densenet121", 10, 6_956_298),
    ("densenet121", 100, 7_048_548),
    ("chexnet", 14, 6_968_206),
    ("vit_small", 100, 21_704_164),
    ("deit_small", 100, 21_704_164),
    ("swin_tiny", 100, 27_596_254),
    # The well-known totals for ImageNet.
    ("chexnet", 1000, 7_978_856),
    ("vit_small", 1000, 22_050_664),
    ("swin_tiny", 1000, 28_288_354),
    # What the docstrings say.
    ("resnet8", 10, 78_042),
    ("resnet20", 10, 272_474),
    ("resnet32", 10, 466_906),
    ("resnet44", 10, 661_338),
    ("resnet56", 10, 855_770),
    ("small_cnn", 10, 141_034),
    ("airbench94", 10, 1_971_352),
    ("minilm", 4, 22_714_756),
    ("efficientnet_lite0", 10, 3_383_818),
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


def test_every_network_is_counted():
    assert {name for name, _, _ in COUNTS} | {"gp_cnn", "dan", "mlp", "tabular_mlp"} == set(MODELS)
