"""ViT-S, DeiT-S and Swin-T through the package transformers."""

import sys

import pytest
import torch
from support.model_examples import inputs, small

from focalcal.lab.models import build_model
from focalcal.lab.models.vision_transformers import drop_path, drop_rates

NAMES = ["vit_small", "swin_tiny"]  # deit_small is vit_small's class


@pytest.fixture
def package():
    return pytest.importorskip("transformers")


def test_a_dropped_path_keeps_its_mean():
    branch = torch.ones(20_000, 2, 3)
    kept = drop_path(branch, 0.3, training=True)
    values = kept[:, 0, 0]
    assert torch.equal(kept, values[:, None, None].expand_as(kept))  # an example is dropped as a whole
    torch.testing.assert_close(values.unique(), torch.tensor([0.0, 1 / 0.7]))
    assert (values == 0).float().mean().item() == pytest.approx(0.3, abs=0.015)
    assert drop_path(branch, 0.3, training=False) is branch
    assert drop_path(branch, 0.0, training=True) is branch


def test_the_rate_grows_with_depth():
    assert drop_rates(0.2, 5) == pytest.approx([0.0, 0.05, 0.1, 0.15, 0.2])
    assert drop_rates(0.2, 1) == [0.0]


def branches(network):
    """The last block's module whose output is a branch that is added to the block's input."""
    if hasattr(network.network, "vit"):
        return network.network.vit.layers[-1].dropout  # called for both branches
    return network.network.swin.encoder.layers[-1].blocks[-1].mlp


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("name", NAMES)
def test_paths_are_dropped_in_training_alone(name):
    network = small(name, drop_path=0.6)
    batch = inputs(name, 1).expand(20, -1, -1, -1)
    seen = []
    branches(network).register_forward_hook(lambda _m, _i, output: seen.append(output.detach()))
    with torch.no_grad():
        network.train()(batch)
        for branch in seen:
            dropped = (branch.flatten(1) == 0).all(1)
            assert 5 <= dropped.sum() <= 18  # of 20, at a rate of 0.6
        if name == "vit_small":
            assert len(seen) == 2
            assert not torch.equal(*((b.flatten(1) == 0).all(1) for b in seen))  # drawn for each branch
        seen.clear()
        plain = small(name, drop_path=0.0)
        plain.load_state_dict(network.state_dict())
        logits = network.eval()(batch)
        assert not any((branch.flatten(1) == 0).all(1).any() for branch in seen)
        torch.testing.assert_close(logits, plain.train()(batch))


@pytest.mark.usefixtures("package")
def test_swin_drops_attention_as_well():
    blocks = [b for s in small("swin_tiny", drop_path=0.2).network.swin.encoder.layers for b in s.blocks]
    rates = [getattr(block.drop_path, "drop_prob", 0.0) for block in blocks]
    assert rates == pytest.approx(drop_rates(0.2, 12))


@pytest.mark.parametrize("name", NAMES)
def test_weights_from_a_folder(name, package, tmp_path):
    network = small(name).eval()
    network.network.half().save_pretrained(tmp_path)
    network.float()
    batch = inputs(name, 2)
    loaded = small(name, pretrained=str(tmp_path))
    assert loaded.training
    assert loaded.network.training
    assert {p.dtype for p in loaded.parameters()} == {torch.float32}
    with torch.no_grad():
        torch.testing.assert_close(loaded.eval()(batch), network(batch))
    another = build_model(name, classes=5, **_options(name), pretrained=str(tmp_path))  # with a head of its own
    assert another(batch).shape == (2, 5)
    ours, theirs = another.state_dict(), network.state_dict()
    assert {
        key for key in ours if not torch.equal(ours[key], theirs[key]) if ours[key].shape == theirs[key].shape
    } == set()
    assert ours["network.classifier.weight"].std() > 0


def _options(name):
    return {"image_size": 32} if name == "vit_small" else {"image_size": 64, "window": 2}


@pytest.mark.usefixtures("package")
def test_norms_are_those_of_the_published_weights(tmp_path):
    """1e-6, although folders of such weights, like the defaults of transformers, say 1e-12."""
    network = small("vit_small")
    network.network.config.layer_norm_eps = 1e-12
    network.network.save_pretrained(tmp_path)
    for built in (small("vit_small"), small("vit_small", pretrained=str(tmp_path))):
        norms = [m for m in built.modules() if isinstance(m, torch.nn.LayerNorm)]
        assert {norm.eps for norm in norms} == {1e-6}
        assert len(norms) == 25


def test_weights_of_another_architecture_are_refused(package, tmp_path):
    small("vit_small").network.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"pretrained must hold a network with image_size = 48, got 32 in "):
        build_model("vit_small", classes=3, image_size=48, pretrained=str(tmp_path))
    from safetensors.torch import load_file, save_file

    file = tmp_path / "model.safetensors"
    weights = load_file(file)
    del weights["vit.layernorm.weight"]
    save_file({**weights, "neck.weight": torch.zeros(3)}, file, metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"of another shape: vit.layernorm.weight; unknown: neck.weight;"):
        small("vit_small", pretrained=str(tmp_path))


def test_without_the_package_the_extra_is_named_and_bad_image_sizes_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="image_size must be a multiple of 16, the side of a patch, got 40"):
        build_model("vit_small", classes=10, image_size=40)
    with pytest.raises(ValueError, match=r"image_size must be a multiple of 32 \* window = 224, got 32"):
        build_model("swin_tiny", classes=10, image_size=32)
    monkeypatch.setitem(sys.modules, "transformers", None)
    for name in NAMES:
        with pytest.raises(ModuleNotFoundError, match=r"pip install .*transformers"):
            build_model(name, classes=10)
