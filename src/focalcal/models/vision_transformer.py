"""Small vision transformers: ViT-S/16 and DeiT-S.

Dosovitskiy et al. (2021), "An image is worth 16x16 words"; Touvron et al. (2021), "Training data-efficient image
transformers".
"""

from __future__ import annotations

from torch import nn

from focalcal.models.arguments import class_count, share, whole_number
from focalcal.models.drop_path import DropPath, drop_rates
from focalcal.models.hugging_face import LogitsOnly, classifier, part

PATCH = 16


class VisionTransformer(LogitsOnly):
    """A class token and 16x16 patches, 12 blocks of width 384 with 6 heads, the class token's norm, a linear layer.

    Images (N, 3, image_size, image_size) to logits (N, classes). 21,704,164 parameters at 224 for 100 classes. ViT-S/16
    and DeiT-S are this one network and differ in their weights and in the normalisation that these want (MODEL_INFO).

    Random weights are N(0, 0.02), truncated, with zero biases; `pretrained` is a folder or a hub id in the format of
    `transformers` or of timm, or a file with timm's names, and must fit `image_size`. In training, `drop_path` is the
    highest rate of stochastic depth, that of the last block; `transformers` has none for this network.
    """

    def __init__(
        self, classes: int, *, image_size: int = 224, pretrained: str | None = None, drop_path: float = 0.0
    ) -> None:
        classes, size = class_count(classes), whole_number("image_size", image_size, least=PATCH)
        if size % PATCH:
            raise ValueError(f"image_size must be a multiple of {PATCH}, the side of a patch, got {size}")
        rate = share("drop_path", drop_path)
        architecture = {
            "hidden_size": 384,
            "num_hidden_layers": 12,
            "num_attention_heads": 6,
            "intermediate_size": 1536,
            "image_size": size,
            "patch_size": PATCH,
            "layer_norm_eps": 1e-6,  # the published weights were trained with it, whatever their folder says
        }
        super().__init__(classifier("ViT", architecture, classes=classes, pretrained=pretrained))
        _add_drop_path(list(part(self.network, "vit.layers").children()), rate)


def _add_drop_path(blocks: list[nn.Module], highest: float) -> None:
    for block, rate in zip(blocks, drop_rates(highest, len(blocks)), strict=True):
        # A block passes each of its two branches through this one dropout before it adds the branch to its input.
        dropout = part(block, "dropout")
        block.dropout = nn.Sequential(dropout, DropPath(rate))
