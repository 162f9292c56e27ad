"""Every entry of MODELS at a size that a test can afford: its options and a batch of inputs."""

import torch

from focalcal.lab.models import MODEL_INFO, build_model

CLASSES = 3
OPTIONS = {
    "gp_cnn": {"vocabulary": 50, "dimension": 8},
    "dan": {"vocabulary": 50, "dimension": 8, "hidden": (16,)},
    "minilm": {"vocabulary": 50, "width": 16, "layers": 2, "heads": 2},
    "efficientnet_lite0": {"dropout": 0.0, "stochastic_depth": 0.0},
    "mlp": {"features": 6, "hidden": (16,)},
    "tabular_mlp": {"features": 6, "hidden": (16,)},
    "vit_small": {"image_size": 32},
    "deit_small": {"image_size": 32},
    "swin_tiny": {"image_size": 64, "window": 2, "drop_path": 0.0},
}
SIDES = {"chexnet": 64, "airbench94": 32, "efficientnet_lite0": 64, "vit_small": 32, "deit_small": 32, "swin_tiny": 64}
TRANSFORMERS = ("vit_small", "deit_small", "swin_tiny", "minilm")


def small(name, **options):
    """The network for three classes."""
    return build_model(name, classes=CLASSES, **{**OPTIONS.get(name, {}), **options})


def inputs(name, count=4):
    """A batch that the network takes, drawn anew."""
    kind = MODEL_INFO[name].inputs
    if kind == "tokens":
        return torch.randint(0, 50, (count, 30))
    if kind == "features":
        return torch.randn(count, 6)
    side = SIDES.get(name, 16)
    return torch.randn(count, 3, side, side)
