"""Weights under torchvision's and timm's names give the logits that those libraries' formulas give."""

import json

import pytest
import torch
import torch.nn.functional as F
from support.model_examples import inputs, small
from support.published_weights import timm_swin, timm_vit, torchvision_2017

from focalcal.lab.models import build_model, chexnet
from focalcal.lab.models.conversion import swin_weights, vit_weights


@pytest.fixture
def package():
    return pytest.importorskip("transformers")


def scrambled(network):
    """Every tensor random, so that no two could be exchanged unnoticed."""
    with torch.no_grad():
        for name, value in network.state_dict().items():
            if name.endswith("running_var"):
                value.uniform_(0.5, 2)
            elif value.is_floating_point():
                value.normal_(1 if name.endswith("norm.weight") else 0, 0.1)
    return network.eval()


def vit_by_formula(weights, images):
    """timm's forward pass of ViT-S, from its weights."""

    def norm(tokens, name):
        return F.layer_norm(tokens, (384,), weights[f"{name}.weight"], weights[f"{name}.bias"], 1e-6)

    def linear(tokens, name):
        return F.linear(tokens, weights[f"{name}.weight"], weights[f"{name}.bias"])

    patches = F.conv2d(images, weights["patch_embed.proj.weight"], weights["patch_embed.proj.bias"], stride=16)
    tokens = torch.cat([weights["cls_token"].expand(len(images), -1, -1), patches.flatten(2).transpose(1, 2)], 1)
    tokens = tokens + weights["pos_embed"]
    for block in (f"blocks.{number}" for number in range(12)):
        qkv = linear(norm(tokens, f"{block}.norm1"), f"{block}.attn.qkv")
        q, k, v = qkv.unflatten(2, (3, 6, 64)).permute(2, 0, 3, 1, 4)
        mixed = ((q @ k.transpose(2, 3)) / 8).softmax(3) @ v
        tokens = tokens + linear(mixed.transpose(1, 2).flatten(2), f"{block}.attn.proj")
        hidden = F.gelu(linear(norm(tokens, f"{block}.norm2"), f"{block}.mlp.fc1"))
        tokens = tokens + linear(hidden, f"{block}.mlp.fc2")
    return linear(norm(tokens, "norm")[:, 0], "head")


@pytest.mark.usefixtures("package")
def test_vit_from_timm(tmp_path):
    weights = timm_vit(scrambled(small("vit_small")))
    assert "blocks.11.attn.qkv.weight" in weights
    assert len(weights) == 152  # as in timm: 4 and 12 blocks of 12, then 2 and 2
    torch.save(weights, tmp_path / "vit.pth")
    loaded = small("vit_small", pretrained=str(tmp_path / "vit.pth"))
    assert loaded.training
    images = inputs("vit_small", 2)
    with torch.no_grad():
        torch.testing.assert_close(loaded.eval()(images), vit_by_formula(weights, images))


@pytest.mark.usefixtures("package")
def test_swin_from_timm(tmp_path):
    network = scrambled(small("swin_tiny"))
    weights = timm_swin(network)
    assert "layers.1.downsample.reduction.weight" in weights
    torch.save({"model": weights}, tmp_path / "swin.pth")
    loaded = small("swin_tiny", pretrained=str(tmp_path / "swin.pth")).eval()
    images = inputs("swin_tiny", 2)
    with torch.no_grad():
        torch.testing.assert_close(loaded(images), network(images))


def test_swin_divides_queries_keys_and_values_in_this_order():
    whole = torch.arange(6.0).view(6, 1)
    assert {
        name: value.flatten().tolist()
        for name, value in swin_weights({"layers.1.blocks.0.attn.qkv.weight": whole}).items()
    } == {
        "swin.encoder.layers.1.blocks.0.attention.q_proj.weight": [0, 1],
        "swin.encoder.layers.1.blocks.0.attention.k_proj.weight": [2, 3],
        "swin.encoder.layers.1.blocks.0.attention.v_proj.weight": [4, 5],
    }


@pytest.mark.parametrize("rename", [str, torchvision_2017])
def test_densenet_from_torchvision(rename, tmp_path):
    network = scrambled(chexnet(14))
    weights = {rename(name): value for name, value in network.state_dict().items() if "num_batches" not in name}
    torch.save(weights, tmp_path / "weights.pth")
    loaded = build_model("chexnet", classes=14, pretrained=str(tmp_path / "weights.pth")).eval()
    images = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(loaded(images), network(images))


def test_a_head_of_another_size_is_drawn_anew_from_the_seed(tmp_path):
    network = scrambled(chexnet(20))
    torch.save(network.state_dict(), tmp_path / "imagenet.pth")
    torch.manual_seed(3)
    loaded = chexnet(14, pretrained=str(tmp_path / "imagenet.pth"))
    torch.manual_seed(3)
    fresh = chexnet(14)
    assert torch.equal(loaded.classifier.weight, fresh.classifier.weight)
    assert torch.equal(loaded.features.norm5.running_var, network.features.norm5.running_var)
    assert torch.equal(loaded.features.conv0.weight, network.features.conv0.weight)


def test_a_folder_as_the_hub_has_it(package, tmp_path):
    """timm's repositories: model.safetensors, and a config.json that names no type of `transformers`."""
    from safetensors.torch import save_file

    weights = timm_vit(scrambled(small("vit_small")))
    save_file({name: value.half().contiguous() for name, value in weights.items()}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"architecture": "vit_small_patch16_224", "num_classes": 3}))
    loaded = small("deit_small", pretrained=str(tmp_path)).eval()
    assert {p.dtype for p in loaded.parameters()} == {torch.float32}
    halves = vit_weights({name: value.half().float() for name, value in weights.items()})
    state = loaded.network.state_dict()
    assert all(torch.equal(state[name.removeprefix("network.")], value) for name, value in halves.items())


@pytest.mark.parametrize("convert", [vit_weights, swin_weights])
def test_what_has_no_other_name_keeps_its_own(convert):
    weights = {"head_dist.weight": torch.zeros(2), "neck.bias": torch.ones(3)}
    assert convert(weights) == weights
