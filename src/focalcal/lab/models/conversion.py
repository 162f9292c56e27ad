"""Weights under the names of torchvision and timm, renamed for our networks; nothing but names and divisions changes.

DenseNet-121      torchvision's names are ours, but for files from before 2017, which write norm.1 for norm1, and for
                  public CheXNets, which put the network inside a `densenet121` and the head inside a sequence
ViT-S/16, DeiT-S  timm keeps queries, keys and values in one matrix (3 D, D), in this order
Swin-T            as ViT; timm counts the merging of patches to the stage after it, older files to the one before
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor

from focalcal.lab.models.weight_files import HEAD

Weights = dict[str, Tensor]

_BLOCK = (
    (r"\.norm1\.", ".layernorm_before."),
    (r"\.norm2\.", ".layernorm_after."),
    (r"\.attn\.proj\.", ".attention.o_proj."),
    (r"\.attn\.", ".attention."),
)
_VIT = (
    (r"^(head|head\.fc)\.(?=weight|bias)", HEAD),
    (r"^cls_token$", "vit.embeddings.cls_token"),
    (r"^pos_embed$", "vit.embeddings.position_embeddings"),
    (r"^patch_embed\.proj\.", "vit.embeddings.patch_embeddings.projection."),
    (r"^blocks\.", "vit.layers."),
    (r"^norm\.", "vit.layernorm."),
    *_BLOCK,
)
_SWIN = (
    (r"^(head|head\.fc)\.(?=weight|bias)", HEAD),
    (r"^patch_embed\.proj\.", "swin.embeddings.patch_embeddings.projection."),
    (r"^patch_embed\.norm\.", "swin.embeddings.norm."),
    (r"^layers\.", "swin.encoder.layers."),
    (r"^norm\.", "swin.layernorm."),
    *_BLOCK,
    (r"\.relative_position_bias_table$", ".relative_position_bias.relative_position_bias_table"),
)
_DENSENET = (
    (r"^(module\.)?(densenet121\.)?", ""),
    (r"\.(norm|relu|conv)\.([12])\.", r".\1\2."),
    (r"^classifier\.0\.", HEAD),
)


def densenet_weights(weights: Mapping[str, Tensor]) -> Weights:
    """torchvision's DenseNet-121, or a public CheXNet's, under our names."""
    return {_rename(name, _DENSENET): value for name, value in weights.items()}


def vit_weights(weights: Mapping[str, Tensor]) -> Weights:
    """timm's ViT or DeiT without a distillation token, under the names of `transformers`."""
    return _separate({_rename(name, _VIT): value for name, value in weights.items()})


def swin_weights(weights: Mapping[str, Tensor]) -> Weights:
    """timm's Swin, under the names of `transformers`; tables that follow from the window's size are left out."""
    kept = {name: value for name, value in weights.items() if not name.endswith(("_position_index", "attn_mask"))}
    if not any(name.startswith("layers.0.downsample.") for name in kept):
        kept = {re.sub(r"^layers\.(\d+)\.(?=downsample\.)", _stage_before, name): kept[name] for name in kept}
    return _separate({_rename(name, _SWIN): value for name, value in kept.items()})


def _rename(name: str, rules: tuple[tuple[str, str], ...]) -> str:
    for pattern, replacement in rules:
        name = re.sub(pattern, replacement, name)
    return name


def _stage_before(match: re.Match[str]) -> str:
    return f"layers.{int(match[1]) - 1}."


def _separate(weights: Weights) -> Weights:
    """Queries, keys and values in tensors of their own."""
    separate: Weights = {}
    for name, value in weights.items():
        if ".attention.qkv." in name and len(value) % 3 == 0:
            for letter, piece in zip("qkv", value.chunk(3), strict=True):
                separate[name.replace(".qkv.", f".{letter}_proj.")] = piece
        else:
            separate[name] = value
    return separate
