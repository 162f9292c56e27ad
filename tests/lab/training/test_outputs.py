import numpy as np
import pytest
import torch
from support.training_runs import multilabel_data, small_recipe

from focalcal.lab.data import load_data
from focalcal.lab.models import SmallCNN
from focalcal.lab.training import build_network, predict
from focalcal.lab.training.inputs import ten_crops


def test_labels_ids_and_posterior_are_the_examples():
    data = load_data("teacher")
    recipe = small_recipe(data_set="teacher")
    network = build_network(recipe, data, seed=0)
    predictions = predict(network, data.test, recipe, split="test", provenance={"seed": 0})
    assert network.training
    assert (predictions.kind, predictions.split, predictions.scores.dtype) == ("logits", "test", np.float32)
    assert predictions.ids.tolist() == data.test.ids.tolist()
    assert predictions.labels.tolist() == data.test.labels.tolist()
    np.testing.assert_array_equal(predictions.posterior, data.test.posterior)
    assert dict(predictions.provenance) == {"seed": 0}
    images = torch.from_numpy((data.test.inputs / 255 - recipe.mean[0]) / recipe.std[0]).float()
    np.testing.assert_allclose(predictions.logits, network(images).detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("multilabel", [True, False])
def test_ten_crops_average_probabilities_and_not_logits(multilabel):
    torch.manual_seed(0)
    data = multilabel_data(side=10) if multilabel else load_data("digits")
    classes, side = (14, 8) if multilabel else (10, 6)
    network = SmallCNN(classes, channels=1, width=4)
    recipe = small_recipe(classes=classes, image_size=side, evaluation="ten_crop", model="small_cnn", model_options=())
    predictions = predict(network, data.test, recipe, split="test")
    assert predictions.kind == "probs"
    assert predictions.multilabel is multilabel

    network.eval()
    crops = ten_crops(torch.from_numpy(data.test.inputs), side)
    by_hand = torch.zeros(len(data.test), classes, dtype=torch.float64)
    with torch.no_grad():
        for place in range(10):
            logits = network(((crops[:, place] / 255 - recipe.mean[0]) / recipe.std[0]).float()).double()
            by_hand += (logits.sigmoid() if multilabel else logits.softmax(1)) / 10
    np.testing.assert_allclose(predictions.probs, by_hand, rtol=1e-4, atol=1e-6)
