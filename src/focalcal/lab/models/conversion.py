"""timm's weights under the names of `transformers`; nothing but names and divisions changes.

timm keeps queries, keys and values in one matrix (3 D, D), in this order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor

from focalcal.lab.models.weight_files import HEAD_PREFIX

Weights = dict[str, Tensor]

_BLOCK = (
    (r"\.norm1\.", ".layernorm_before."),
    (r"\.norm2\.", ".layernorm_after."),
    (r"\.attn\.proj\.", ".attention.o_proj."),
    (r"\.attn\.", ".attention."),
)
_VIT = (
    (r"^(head|head\.fc)\.(?=weight|bias)", HEAD_PREFIX),
    (r"^cls_token$", "vit.embeddings.cls_token"),
    (r"^pos_embed$", "vit.embeddings.position_embeddings"),
    (r"^patch_embed\.proj\.", "vit.embeddings.patch_embeddings.projection."),
    (r"^blocks\.", "vit.layers."),
    (r"^norm\.", "vit.layernorm."),
    *_BLOCK,
)
_SWIN = (
    (r"^(head|head\.fc)\.(?=weight|bias)", HEAD_PREFIX),
    (r"^patch_embed\.proj\.", "swin.embeddings.patch_embeddings.projection."),
    (r"^patch_embed\.norm\.", "swin.embeddings.norm."),
    (r"^layers\.", "swin.encoder.layers."),
    (r"^norm\.", "swin.layernorm."),
    *_BLOCK,
    (r"\.relative_position_bias_table$", ".relative_position_bias.relative_position_bias_table"),
)


def vit_weights(weights: Mapping[str, Tensor]) -> Weights:
    """timm's ViT or DeiT without a distillation token, under the names of `transformers`."""
    return _separate({_rename(name, _VIT): value for name, value in weights.items()})


def swin_weights(weights: Mapping[str, Tensor]) -> Weights:
    """timm's Swin, under the names of `transformers`, which counts the merging of patches to the stage before it.

    Tables that follow from the window's size are left out.
    """
    kept = {name: value for name, value in weights.items() if not name.endswith(("_position_index", "attn_mask"))}
    earlier = {re.sub(r"^layers\.(\d+)\.(?=downsample)", _stage_before, name): value for name, value in kept.items()}
    return _separate({_rename(name, _SWIN): value for name, value in earlier.items()})


def _stage_before(match: re.Match[str]) -> str:
    return f"layers.{int(match[1]) - 1}."


def _rename(name: str, rules: tuple[tuple[str, str], ...]) -> str:
    for pattern, replacement in rules:
        name = re.sub(pattern, replacement, name)
    return name


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
