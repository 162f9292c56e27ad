"""The network of a recipe, and what it starts from."""

import numpy as np
import pytest
import torch
from support.published_weights import torchvision_2017
from support.training_runs import same_weights, small_digits, small_recipe

from focalcal.lab.data import DataSet, Examples
from focalcal.lab.models import MODEL_INFO, MODELS, PublishedWeightsError, chexnet, model_options
from focalcal.lab.training import RECIPES, build_network, check_start, trained_network


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


def data_for(recipe):
    """A data set that has the classes and the words of the recipe's, and little else."""
    words = ("", "one", "two", "rare") if MODEL_INFO[recipe.model].inputs == "tokens" else None
    inputs = np.zeros((1, 30), np.int64)
    if "whitening" in model_options(recipe.model):
        inputs = np.random.default_rng(0).integers(0, 256, (3, 3, 8, 8), dtype=np.uint8)
    examples = Examples(inputs, np.zeros(len(inputs), np.int64), np.arange(len(inputs)))
    none = examples.none()
    return DataSet(recipe.data_set, tuple(map(str, range(recipe.classes))), examples, none, none, vocabulary=words)


# A recipe of each network's class, and of what such a network starts from.
STARTS = {
    (str(MODELS[one.model]), one.initial_weights is None, one.word_vectors is None): name
    for name, one in RECIPES.items()
}


@pytest.mark.parametrize("name", STARTS.values())
def test_every_recipe_has_its_network_with_what_it_says_to_start_from(name, published):
    recipe = RECIPES[name]
    check_start(recipe, published)
    one = build_network(recipe, data_for(recipe), seed=0, data_dir=published)
    assert one.training
    if recipe.initial_weights is None and recipe.word_vectors is None:
        return
    other = build_network(recipe, data_for(recipe), seed=1, data_dir=published)
    differ = {key for key, value in one.state_dict().items() if not torch.equal(value, other.state_dict()[key])}
    if recipe.initial_weights is not None:
        assert {key.removeprefix("network.").partition(".")[0] for key in differ} == {"classifier"}
    else:
        assert "embedding.weight" not in differ
        assert one.embedding.weight[:, 0].tolist() == [0, 1, 2, 0]


def test_what_a_builder_takes_a_recipe_may_name():
    for name in MODELS:
        takes = name in ("chexnet", "vit_small", "deit_small", "swin_tiny", "minilm", "efficientnet_lite0")
        changed = {"model": name, "model_options": (), "initial_weights": "somewhere"}
        if takes:
            assert small_recipe(**changed).initial_weights == "somewhere"
        else:
            with pytest.raises(ValueError, match=f"initial_weights must be None for {name}, which takes none, got 'so"):
                small_recipe(**changed)
    with pytest.raises(ValueError, match=r"word_vectors must be None for mlp, which takes none, got 'glove'.*gp_cnn"):
        small_recipe(word_vectors="glove")


def test_what_a_network_starts_from_is_checked_before_any_data_are_read(tmp_path):
    path = tmp_path / "densenet121-a639ec97.pth"
    recipe = small_recipe(model="chexnet", model_options=(), initial_weights=str(path))
    with pytest.raises(FileNotFoundError, match=r"a file or folder of weights or a hub id, and .*does not exist"):
        check_start(recipe)
    with pytest.raises(FileNotFoundError, match=r"initial_weights must lie in .*minilm-l6, which is not there"):
        check_start(RECIPES["ag_news_minilm_lite"], tmp_path)
    torch.save({"other": torch.zeros(1)}, path)
    with pytest.raises(PublishedWeightsError, match="DenseNet121, except for its head"):
        check_start(recipe)
    published = chexnet(20)
    torch.save({torchvision_2017(key): value for key, value in published.state_dict().items()}, path)
    check_start(recipe)
    network = build_network(recipe, small_digits(), seed=0)
    assert same_weights(network.features, published.features)
    assert network.classifier.out_features == 10


def test_a_trained_network_needs_nothing_that_it_started_from(tmp_path):
    (tmp_path / "glove").mkdir()
    (tmp_path / "glove/small.txt").write_text("two 3.0 4.0\n")
    recipe = text_recipe(word_vectors="small")
    before = build_network(recipe, texts(), seed=0, data_dir=tmp_path)
    torch.save(before.state_dict(), tmp_path / "weights.pt")
    drawn = torch.get_rng_state()
    after = trained_network(recipe, tmp_path / "weights.pt", texts())
    assert torch.equal(torch.get_rng_state(), drawn)
    assert not after.training
    assert same_weights(after, before)
