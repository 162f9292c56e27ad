"""Files of weights: where they are looked for, and what is refused."""

import pickle

import pytest
import torch

from focalcal.lab.models import PublishedWeightsError
from focalcal.lab.models.weight_files import is_in_format_of_transformers, weights_of


class Trap:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return (print, ("unpickled",))


def test_a_file_a_wrapped_one_and_a_folder(tmp_path):
    weights = {"linear.bias": torch.arange(3.0)}
    for name, content in (("plain.pth", weights), ("wrapped.pt", {"state_dict": weights, "epoch": 4})):
        torch.save(content, tmp_path / name)
        assert weights_of(tmp_path / name)["linear.bias"].tolist() == [0, 1, 2]
        assert not is_in_format_of_transformers(tmp_path / name)
    (tmp_path / "folder").mkdir()
    torch.save(weights, tmp_path / "folder" / "pytorch_model.bin")
    assert list(weights_of(str(tmp_path / "folder"))) == ["linear.bias"]
    assert not is_in_format_of_transformers(str(tmp_path / "folder"))


@pytest.mark.parametrize(
    "content",
    [b"", b"not weights", pickle.dumps({"linear.bias": Trap()}, protocol=2), pickle.dumps(Trap(), protocol=2)],
    ids=["empty", "text", "a dict with code", "code"],
)
def test_damage_and_code_are_refused_by_name(content, tmp_path, capsys):
    for name in ("weights.pth", "weights.safetensors"):
        if name.endswith("safetensors"):
            pytest.importorskip("safetensors")
        (tmp_path / name).write_bytes(content)
        with pytest.raises(PublishedWeightsError, match=rf"{name} must hold tensors by name: .*; fetch it again"):
            weights_of(tmp_path / name)
    assert capsys.readouterr().out == ""


def test_truncated_files_and_other_content_are_refused(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    weights = {"linear.weight": torch.randn(40, 40)}
    torch.save(weights, tmp_path / "weights.pth")
    safetensors.save_file(weights, tmp_path / "weights.safetensors")
    for path in (tmp_path / "weights.pth", tmp_path / "weights.safetensors"):
        path.write_bytes(path.read_bytes()[:-2000])
        with pytest.raises(PublishedWeightsError, match=f"{path.name} must hold tensors"):
            weights_of(path)
    for content in ({"epoch": 3}, [1], {}, torch.zeros(2)):
        torch.save(content, tmp_path / "weights.pth")
        with pytest.raises(PublishedWeightsError, match="must hold tensors by name"):
            weights_of(tmp_path / "weights.pth")


@pytest.mark.parametrize("name", ["./absent", "/absent/folder", "~/absent", "absent.pth", "a/b/c", "a/b.safetensors"])
def test_a_path_that_is_not_there_is_not_looked_for_on_the_hub(name):
    with pytest.raises(FileNotFoundError, match=f"'{name}' does not exist"):
        weights_of(name)


def test_a_folder_without_weights(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"a folder that has model.safetensors or pytorch_model.bin, got"):
        weights_of(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(PublishedWeightsError, match=r"config.json must be JSON"):
        is_in_format_of_transformers(tmp_path)


def test_without_a_network_the_remedy_is_named(monkeypatch, tmp_path):
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(PublishedWeightsError, match=r"hub id that can be reached; .*`hf download some/net --local-dir"):
        weights_of("some/net")
