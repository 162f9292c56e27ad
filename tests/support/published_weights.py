"""Weights in the formats that they are published in: names, files, and folders as the hub's cache has them."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from focalcal.lab.models import build_model, chexnet

TIMM_BLOCK = {
    "layernorm_before": "norm1",
    "layernorm_after": "norm2",
    "attention.o_proj": "attn.proj",
    "attention.relative_position_bias.relative_position_bias_table": "attn.relative_position_bias_table",
}


def timm_block(name, weights):
    """timm's names of a block of either transformer, queries, keys and values in one."""
    found = {}
    for key, value in weights.items():
        if "attention.q_proj" in key:
            pieces = [weights[key.replace("q_proj", f"{letter}_proj")] for letter in "qkv"]
            found[f"{name}attn.qkv.{key.rpartition('.')[2]}"] = torch.cat(pieces)
        elif not re.search(r"attention\.[kv]_proj", key):
            for ours, theirs in TIMM_BLOCK.items():
                key = key.replace(ours, theirs)
            found[name + key] = value
    return found


def part(weights, prefix):
    return {key.removeprefix(prefix): value for key, value in weights.items() if key.startswith(prefix)}


def timm_vit(network):
    weights = network.network.state_dict()
    found = {
        "cls_token": weights["vit.embeddings.cls_token"],
        "pos_embed": weights["vit.embeddings.position_embeddings"],
    }
    for kind in ("weight", "bias"):
        found[f"patch_embed.proj.{kind}"] = weights[f"vit.embeddings.patch_embeddings.projection.{kind}"]
        found[f"norm.{kind}"] = weights[f"vit.layernorm.{kind}"]
        found[f"head.{kind}"] = weights[f"classifier.{kind}"]
    for block in range(12):
        found |= timm_block(f"blocks.{block}.", part(weights, f"vit.layers.{block}."))
    return found


def timm_swin(network):
    weights = network.network.state_dict()
    found = {}
    for kind in ("weight", "bias"):
        found[f"patch_embed.proj.{kind}"] = weights[f"swin.embeddings.patch_embeddings.projection.{kind}"]
        found[f"patch_embed.norm.{kind}"] = weights[f"swin.embeddings.norm.{kind}"]
        found[f"norm.{kind}"] = weights[f"swin.layernorm.{kind}"]
        found[f"head.fc.{kind}"] = weights[f"classifier.{kind}"]
    for stage, depth in enumerate((2, 2, 6, 2)):
        for block in range(depth):
            name = f"layers.{stage}.blocks.{block}."
            found |= timm_block(name, part(weights, f"swin.encoder.{name}"))
            found[f"{name}attn.relative_position_index"] = torch.zeros(4, 4, dtype=torch.long)
        merging = part(weights, f"swin.encoder.layers.{stage}.downsample.")
        found |= {f"layers.{stage + 1}.downsample.{key}": value for key, value in merging.items()}
    return found


def torchvision_2017(name):
    return re.sub(r"(denselayer\d+)\.(norm|conv)([12])\.", r"\1.\2.\3.", name)


def imagenet_weights(model):
    """What timm publishes of a network for ImageNet, drawn at random."""
    torch.manual_seed(0)
    if model == "chexnet":
        return {name: value for name, value in chexnet(1000).state_dict().items() if "num_batches" not in name}
    network = build_model(model, classes=1000)
    return timm_swin(network) if model == "swin_tiny" else timm_vit(network)


@contextmanager
def local_hub(folder: Path, models: dict[str, str]) -> Iterator[None]:
    """The hub, out of reach, with these repositories in its cache: the id of each and the network it is of."""
    from huggingface_hub import constants
    from safetensors.torch import save_file

    for repository, model in models.items():
        cached = folder / f"models--{repository.replace('/', '--')}"
        snapshot = cached / "snapshots" / ("0" * 40)
        snapshot.mkdir(parents=True)
        (cached / "refs").mkdir()
        (cached / "refs" / "main").write_text(snapshot.name)
        (snapshot / "config.json").write_text(json.dumps({"architecture": model, "num_classes": 1000}))
        halves = {name: value.half().contiguous() for name, value in imagenet_weights(model).items()}
        save_file(halves, snapshot / "model.safetensors")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "HF_HUB_CACHE", str(folder))
        patch.setattr(constants, "HF_HUB_OFFLINE", True)
        yield
