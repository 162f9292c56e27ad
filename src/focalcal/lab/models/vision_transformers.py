"""Vision transformers from the package `transformers`, with the stochastic depth that it lacks.

ViT-S/16 and DeiT-S: Dosovitskiy et al. (2021), "An image is worth 16x16 words"; Touvron et al. (2021), "Training
data-efficient image transformers". Swin-T: Liu et al. (2021), "Swin transformer". Stochastic depth: Huang et al.
(2016), "Deep networks with stochastic depth".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from focalcal.core.checks import share, whole
from focalcal.core.extras import required
from focalcal.lab.models.conversion import swin_weights, vit_weights
from focalcal.lab.models.weight_files import fill, is_in_format_of_transformers, weights_of

PATCH = 16
SWIN_DEPTHS = (2, 2, 6, 2)
SWIN_SHRINKAGE = 4 * 2 ** (len(SWIN_DEPTHS) - 1)  # patches of 4x4 pixels, merged 2x2 between stages
CONVERSIONS = {"ViT": vit_weights, "Swin": swin_weights}
# What may differ from a folder's own settings: neither changes the meaning of a weight.
CHANGEABLE = ("drop_path_rate", "layer_norm_eps", "hidden_dropout_prob", "attention_probs_dropout_prob")


class LogitsOnly(nn.Module):
    """A classifier of `transformers`, called like every other network here: images (N, 3, H, W) to logits (N, K)."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """Logits (N, classes)."""
        logits: Tensor = self.network(images).logits
        return logits


class VisionTransformer(LogitsOnly):
    """A class token and 16x16 patches, 12 blocks of width 384 with 6 heads, the class token's norm, a linear layer.

    Images (N, 3, image_size, image_size) to logits (N, classes). 21,704,164 parameters at 224 for 100 classes. ViT-S/16
    and DeiT-S are this one network and differ in their weights and in the normalisation that these want (MODEL_INFO).

    Random weights are N(0, 0.02), truncated, with zero biases; `pretrained` is a folder or a hub id in the format of
    `transformers` or of timm, or a file with timm's names, and must fit `image_size`. In training, `drop_path` is the
    highest rate of stochastic depth, that of the last block; `transformers` has none for this network.

    Args:
        classes: how many logits.
        image_size: side of the images.
        pretrained: what it starts from; None: random weights.
        drop_path: the highest rate of stochastic depth.

    >>> from focalcal.lab.models import build_model
    >>> network = build_model("vit_small", classes=10)
    >>> sum(parameter.numel() for parameter in network.parameters())
    21669514
    """

    def __init__(
        self, classes: int, *, image_size: int = 224, pretrained: str | None = None, drop_path: float = 0.0
    ) -> None:
        classes, size = whole("classes", classes, 2), whole("image_size", image_size, PATCH)
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
        # A block passes each of its two branches through this one dropout before it adds the branch to its input.
        _drop_outputs([part(block, "dropout") for block in part(self.network, "vit.layers").children()], rate)


class SwinTransformer(LogitsOnly):
    """4x4 patches, four stages of 2, 2, 6, 2 blocks of width 96 to 768 with attention in shifted windows, a mean.

    Images (N, 3, image_size, image_size) to logits (N, classes). 27,596,254 parameters at 224 for 100 classes with
    windows of 7x7. The last stage sees image_size / 32 patches per side, which must fill a window: another image size
    wants another `window`.

    Random weights are N(0, 0.02), truncated, with zero biases; `pretrained` is a folder or a hub id in the format of
    `transformers` or of timm, or a file with timm's names. In training, `drop_path` is the highest rate of stochastic
    depth, that of the last block.

    Args:
        classes: how many logits.
        image_size: side of the images.
        window: side of a window, in patches.
        pretrained: what it starts from; None: random weights.
        drop_path: the highest rate of stochastic depth.

    >>> from focalcal.lab.models import build_model
    >>> network = build_model("swin_tiny", classes=10)
    >>> sum(parameter.numel() for parameter in network.parameters())
    27527044
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
        classes, side = whole("classes", classes, 2), whole("window", window, 1)
        size, rate = whole("image_size", image_size, 1), share("drop_path", drop_path)
        if size % (SWIN_SHRINKAGE * side):
            raise ValueError(
                f"image_size must be a multiple of {SWIN_SHRINKAGE} * window = {SWIN_SHRINKAGE * side}, got {size}; "
                "choose a window that divides image_size / 32"
            )
        architecture = {
            "embed_dim": 96,
            "depths": SWIN_DEPTHS,
            "num_heads": (3, 6, 12, 24),
            "window_size": side,
            "image_size": size,
            "patch_size": 4,
            "drop_path_rate": rate,
        }
        super().__init__(classifier("Swin", architecture, classes=classes, pretrained=pretrained))
        stages = part(self.network, "swin.encoder.layers").children()
        blocks = [block for stage in stages for block in part(stage, "blocks").children()]
        # `transformers` drops the attention of a block and forgets its MLP; the original drops either, independently.
        _drop_outputs([part(block, "mlp") for block in blocks], rate)


def _drop_outputs(branches: list[nn.Module], highest: float) -> None:
    """By hooks rather than wrappers, so that the names of the weights stay as they are."""
    for branch, rate in zip(branches, drop_rates(highest, len(branches)), strict=True):
        branch.register_forward_hook(partial(_drop_output, rate))


def _drop_output(rate: float, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
    return drop_path(output, rate, training=module.training)


def drop_path(branch: Tensor, rate: float, *, training: bool) -> Tensor:
    """In training, the branch of each example is zero with probability `rate`, else divided by 1 - rate.

    The mean is the branch, which is also what comes back outside training. (N, ...) to (N, ...).
    """
    if not training or rate == 0.0:
        return branch
    kept = torch.empty(branch.shape[0], *[1] * (branch.dim() - 1), dtype=branch.dtype, device=branch.device)
    return branch * kept.bernoulli_(1.0 - rate).div_(1.0 - rate)


def drop_rates(highest: float, depth: int) -> list[float]:
    """A rate for each of `depth` blocks, growing evenly from 0 to `highest`, as the references have it."""
    return [highest * position / max(depth - 1, 1) for position in range(depth)]


def classifier(
    family: str,
    architecture: Mapping[str, Any],
    *,
    classes: int,
    pretrained: str | None,
    kind: str = "ForImageClassification",
) -> Any:
    """The classifier of `transformers` whose classes begin with `family` ("ViT", "Swin"), with that architecture.

    Random, or with the weights of `pretrained`: a folder or a hub id in the format of `transformers` or of timm, or a
    file with timm's names. Its head stays if it has `classes` outputs and is drawn anew otherwise; any other difference
    raises.
    """
    package = transformers()
    network, configuration = getattr(package, family + kind), getattr(package, f"{family}Config")
    if pretrained is None or not is_in_format_of_transformers(pretrained):
        fresh = network(configuration(**architecture, num_labels=classes))
        if pretrained is not None:
            fill(fresh, CONVERSIONS[family](weights_of(pretrained)), pretrained)
        return fresh
    stored = configuration.from_pretrained(pretrained, num_labels=classes)
    for name, value in architecture.items():
        if name in CHANGEABLE:
            setattr(stored, name, value)
        elif _plain(getattr(stored, name)) != _plain(value):
            raise ValueError(
                f"pretrained must hold a network with {name} = {value}, got {getattr(stored, name)} "
                f"in {pretrained!r}; choose weights of this architecture"
            )
    # Sizes may differ for the head alone, which the report of what was loaded tells.
    loaded, report = network.from_pretrained(
        pretrained, config=stored, ignore_mismatched_sizes=True, output_loading_info=True
    )
    _refuse_partial(report, pretrained)
    return loaded.float().train()  # as fresh networks are; files may hold half precision


def part(network: nn.Module, name: str) -> nn.Module:
    """The submodule of that name, where the releases of `transformers` that this was written for keep it."""
    try:
        return network.get_submodule(name)
    except AttributeError as error:
        raise RuntimeError(
            f"{type(network).__name__} of transformers {transformers().__version__} has no part {name!r}; "
            "install a release that has, such as 5.22"
        ) from error


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _refuse_partial(report: Mapping[str, Any], pretrained: str) -> None:
    differing = [entry if isinstance(entry, str) else entry[0] for entry in report["mismatched_keys"]]
    fresh = sorted(key for key in {*report["missing_keys"], *differing} if not key.startswith("classifier."))
    extra = sorted(key for key in report["unexpected_keys"] if "pooler" not in key)
    if fresh or extra:
        raise ValueError(
            f"pretrained must hold every weight of this network and no other, except for its head; in {pretrained!r} "
            f"missing or of another shape: {_first(fresh)}; unknown: {_first(extra)}; choose weights of this "
            "architecture and image_size"
        )


def _first(keys: list[str]) -> str:
    return ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "") if keys else "none"


def transformers() -> Any:
    """The package, or an error that names the extra it comes with."""
    return required("transformers", purpose="A network such as ViT, DeiT or Swin", extra="transformers")
