"""Runs on images, in small folders of the official layouts: shifts, saliency, partial data, several labels."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from support.data_folders import FABRICATED

from focalcal.core.numerics import softmax
from focalcal.lab.data.corruptions import CORRUPTIONS
from focalcal.lab.store import Evaluations, Protocol, Store
from focalcal.lab.studies.run import run_spec
from focalcal.lab.studies.spec_builder import spec_of
from focalcal.lab.training import Step, recipe


@pytest.fixture(scope="module")
def shifted(tmp_path_factory):
    """A run on CIFAR-10 with every shift and saliency maps."""
    folder = tmp_path_factory.mktemp("data")
    FABRICATED["cifar10"](folder)
    FABRICATED["svhn"](folder)
    small = replace(recipe("cifar10_resnet8_lite"), epochs=1, batch_size=32)
    protocol = Protocol(train_examples=50, test_examples=10, allow_partial=True)
    spec = spec_of(small, "ce", {}, seed=0, protocol=protocol)
    asked = Evaluations(shifts=("svhn", "cifar10c"), saliency=3)
    return run_spec(spec, Store(tmp_path_factory.mktemp("store")), evaluations=asked, data_dir=folder)


def test_every_shift_has_predictions_and_an_auroc(shifted):
    corrupted = [f"cifar10c/{name}/5" for name in CORRUPTIONS]
    assert shifted.splits == ("train", "val", "test", *corrupted, "svhn")
    clean = shifted.predictions("test")
    for split in (*corrupted, "svhn"):
        made = shifted.predictions(split)
        confidence = [softmax(one.logits.astype(np.float64)).max(1) for one in (clean, made)]
        truth = np.repeat([1, 0], [len(clean), len(made)])
        assert shifted.metrics(split)["auroc"] == pytest.approx(roc_auc_score(truth, np.concatenate(confidence)))
    fog = shifted.predictions("cifar10c/fog/5")
    assert fog.ids.tolist() == clean.ids.tolist()
    assert shifted.metrics("cifar10c/fog/5")["error"] == (fog.logits.argmax(1) != fog.labels).mean()
    assert "regenerated" in fog.provenance["shift"]["images"]


def test_errors_are_not_counted_where_labels_are_no_classes(shifted):
    assert set(shifted.metrics("svhn")) == {"rows", "auroc", "confidence"}


def test_a_part_of_the_data_is_recorded_as_one(shifted):
    provenance = shifted.record["provenance"]
    assert provenance["data"]["partial"] is True
    assert provenance["data"]["counts"]["train"] == 50
    evaluations = shifted.record["evaluations"]
    assert evaluations["svhn"]["provenance"]["sources"]["svhn"]["partial"] is True
    assert len(evaluations["cifar10c-5"]["provenance"]["sources"]) == 15


def test_saliency_maps_are_those_of_the_first_test_images(shifted):
    clean = shifted.predictions("test")
    with np.load(shifted.file("saliency.npz"), allow_pickle=False) as file:
        assert file["maps"].shape == (3, 8, 8)
        assert file["maps"].dtype == np.float32
        assert file["images"].shape == (3, 3, 32, 32)
        assert file["ids"].tolist() == clean.ids[:3].tolist()
        assert file["predicted"].tolist() == clean.logits[:3].argmax(1).tolist()


def test_several_labels_and_ten_crops(tmp_path):
    FABRICATED["chestxray14"](tmp_path)
    crop = Step(name="RandomResizedCrop", options={"size": 32, "scale": (0.5, 1), "interpolation": "bilinear"})
    small = replace(
        recipe("chestxray14_chexnet"),
        data_options={"size": 40, "seed": 1},
        initial_weights=None,
        augmentation=(crop,),
        image_size=32,
        epochs=1,
    )
    spec = spec_of(small, "multilabel_fcl", {}, seed=0, protocol=Protocol(allow_partial=True))
    run = run_spec(spec, Store(tmp_path / "store"), evaluations=Evaluations(saliency=2), data_dir=tmp_path)
    made = run.predictions("test")
    assert (made.kind, made.multilabel) == ("probs", True)
    assert made.groups is not None
    record = run.metrics("test")
    each = [record[f"brier/{name}"] for name in ("Atelectasis", "Hernia")]
    by_hand = np.square(made.probs - made.labels).mean(0)
    assert each == pytest.approx([float(by_hand[0]), float(by_hand[13])])
    assert record["brier"] == pytest.approx(float(by_hand.mean()))
    hernia = roc_auc_score(made.labels[:, 13], made.probs[:, 13])
    assert record["auroc/Hernia"] == pytest.approx(hernia)
    with np.load(run.file("saliency.npz"), allow_pickle=False) as file:
        assert file["maps"].shape[0] == 2
        assert file["images"].shape == (2, 1, 40, 40)
