"""The hierarchical transformer Swin-T: Liu et al. (2021), "Swin transformer"."""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn

from focalcal.models.arguments import class_count, share, whole_number
from focalcal.models.drop_path import drop_path as dropped
from focalcal.models.drop_path import drop_rates
from focalcal.models.hugging_face import LogitsOnly, classifier, part

DEPTHS = (2, 2, 6, 2)
SHRINKAGE = 4 * 2 ** (len(DEPTHS) - 1)  # patches of 4x4 pixels, merged 2x2 between stages


class SwinTransformer(LogitsOnly):
    """4x4 patches, four stages of 2, 2, 6, 2 blocks of width 96 to 768 with attention in shifted windows, a mean.

    Images (N, 3, image_size, image_size) to logits (N, classes). 27,596,254 parameters at 224 for 100 classes with
    windows of 7x7. The last stage sees image_size / 32 patches a side, which must fill a window: another image size
    wants another `window`.

    Random weights are N(0, 0.02), truncated, with zero biases; `pretrained` is a folder or a hub id in the format of
    `transformers` or of timm, or a file with timm's names. In training, `drop_path` is the highest rate of stochastic
    depth, that of the last block.
    """

    def __init__(
        self,
        classes: int,
        *,
        image_size: int = 224,
        window: int = 7,
        pretrained: str | None = None,
        drop_path: float = 0.1,
    ) -> None:
        classes, side = class_count(classes), whole_number("window", window, least=1)
        size, rate = whole_number("image_size", image_size, least=1), share("drop_path", drop_path)
        if size % (SHRINKAGE * side):
            raise ValueError(
                f"image_size must be a multiple of {SHRINKAGE} * window = {SHRINKAGE * side}, got {size}; "
                "choose a window that divides image_size / 32"
            )
        architecture = {
            "embed_dim": 96,
            "depths": DEPTHS,
            "num_heads": (3, 6, 12, 24),
            "window_size": side,
            "image_size": size,
            "patch_size": 4,
            "drop_path_rate": rate,
        }
        super().__init__(classifier("Swin", architecture, classes=classes, pretrained=pretrained))
        stages = part(self.network, "swin.encoder.layers").children()
        _drop_second_branch([block for stage in stages for block in part(stage, "blocks").children()], rate)


def _drop_second_branch(blocks: list[nn.Module], highest: float) -> None:
    """`transformers` drops the attention of a block and forgets its MLP; the original drops either, independently.

    A hook rather than a wrapper, so that the names of the weights stay as they are.
    """
    for block, rate in zip(blocks, drop_rates(highest, len(blocks)), strict=True):
        part(block, "mlp").register_forward_hook(partial(_dropped_output, rate))


def _dropped_output(rate: float, mlp: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
    return dropped(output, rate, training=mlp.training)
