"""The network of a recipe, and what it starts from."""

import re

import numpy as np
import pytest
import torch
from training_runs import same_weights, small_digits, small_recipe

from focalcal.data import DataSet, Examples
from focalcal.models import chexnet
from focalcal.training import build_network
from focalcal.training.network import TORCHVISION_DENSENET, TORCHVISION_FILE


def texts(words=("", "one", "two", "rare")):
    tokens = np.tile(np.arange(len(words)), (4, 8))
    examples = Examples(tokens, np.array([0, 1, 0, 1]), np.arange(4))
    return DataSet("texts", ("a", "b"), examples, examples.none(), examples.none(), vocabulary=words)


def text_recipe(**changed):
    plain = {"data_set": "ag_news", "classes": 2, "model": "gp_cnn", "model_options": (), "mean": None, "std": None}
    return small_recipe(**{**plain, **changed})


def test_the_seed_decides_and_nothing_is_drawn_from_the_callers_stream():
    data = small_digits()
    before = torch.get_rng_state()
    one = build_network(small_recipe(), data, seed=0)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(3)
    assert same_weights(build_network(small_recipe(), data, seed=0), one)
    assert not same_weights(build_network(small_recipe(), data, seed=1), one)


def test_word_vectors_are_read_and_frozen(tmp_path):
    (tmp_path / "glove").mkdir()
    (tmp_path / "glove/small.txt").write_text("two 3.0 4.0\nother 9.0 9.0\none 1.0 2.0\n")
    network = build_network(text_recipe(word_vectors="small"), texts(), seed=0, data_dir=tmp_path)
    assert network.embedding.weight.tolist() == [[0, 0], [1, 2], [3, 4], [0, 0]]
    assert not network.embedding.weight.requires_grad
    with pytest.raises(FileNotFoundError, match=r"word_vectors must lie in .*none\.txt.*focalcal data get glove"):
        build_network(text_recipe(word_vectors="none"), texts(), seed=0, data_dir=tmp_path)


def test_texts_and_networks_must_fit():
    with pytest.raises(ValueError, match="vocabulary must be at least 4, the words of texts, got 3"):
        build_network(text_recipe(model_options={"vocabulary": 3}), texts(), seed=0)
    with pytest.raises(ValueError, match="gp_cnn must be given texts, and digits has no vocabulary"):
        build_network(text_recipe(classes=10), small_digits(), seed=0)
    with pytest.raises(ValueError, match="initial_weights must be None for mlp, got 'somewhere'"):
        build_network(small_recipe(initial_weights="somewhere"), small_digits(), seed=0)


def test_torchvisions_densenet_but_for_its_head(tmp_path):
    """From a file with the names that torchvision's has: norm.1 for what the module calls norm1, and no counters."""
    torch.manual_seed(5)
    source = chexnet(20)
    renamed = {
        re.sub(r"(denselayer\d+\.(?:norm|conv))([12])\.", r"\1.\2.", key): one
        for key, one in source.state_dict().items()
        if not key.endswith("num_batches_tracked")
    }
    assert "features.denseblock1.denselayer1.norm.1.weight" in renamed
    one = small_recipe(model="chexnet", model_options=(), initial_weights=TORCHVISION_DENSENET)
    with pytest.raises(FileNotFoundError, match=rf"initial_weights must lie in .*weights/{TORCHVISION_FILE}"):
        build_network(one, small_digits(), seed=0, data_dir=tmp_path)
    (tmp_path / "weights").mkdir()
    torch.save(renamed, tmp_path / "weights" / TORCHVISION_FILE)
    network = build_network(one, small_digits(), seed=0, data_dir=tmp_path)
    for key, value in source.state_dict().items():
        if not key.startswith("classifier."):
            assert torch.equal(network.state_dict()[key], value), key
    assert network.classifier.out_features == 10
    torch.save({"other": torch.zeros(1)}, tmp_path / "weights" / TORCHVISION_FILE)
    with pytest.raises(ValueError, match="must hold torchvision's DenseNet-121, got other parts"):
        build_network(one, small_digits(), seed=0, data_dir=tmp_path)
