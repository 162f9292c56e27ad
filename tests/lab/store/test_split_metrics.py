"""What is kept of a split: the numbers of the metrics, against the posterior, of each label, and of a shift."""

import json

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from focalcal.core.numerics import softmax
from focalcal.lab.store.split_metrics import shift_metrics, split_metrics
from focalcal.metrics import ece, multilabel_ece, nll, summary
from focalcal.predictions import Predictions

CLASSES = ("a", "b", "c")


def predictions(rows=300, seed=0, scale=2.0, split="test", **more):
    draws = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(rows, 3, generator=draws)
    labels = torch.randint(3, (rows,), generator=draws)
    return Predictions(logits=logits, labels=labels, split=split, **more)


def test_one_label_each_gives_the_summary():
    made = predictions()
    record = split_metrics(made, CLASSES)
    assert record == summary(logits=made.logits, labels=made.labels).as_dict()
    assert record["ece"] == pytest.approx(ece(made.probs, made.labels), abs=1e-7)
    assert record["nll"] == pytest.approx(nll(logits=made.logits, labels=made.labels))
    assert json.loads(json.dumps(record)) == record


def test_a_known_posterior_adds_distances_to_it():
    eta = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], dtype=torch.float64)
    probs = torch.tensor([[0.7, 0.1, 0.2], [0.3, 0.1, 0.6]], dtype=torch.float64)
    made = Predictions(logits=probs.log(), labels=[0, 2], split="test", posterior=eta)
    record = split_metrics(made, CLASSES)
    assert record["posterior_distance"] == pytest.approx(0.2)  # |p - eta|_1 / 2 is 0.2 in both rows
    assert record["confidence_distance"] == pytest.approx(0.2)  # 0.7 against 0.5, 0.6 against 0.8
    assert record["posterior_ece"] == pytest.approx(0.2)  # the two confidences lie in different bins
    itself = split_metrics(Predictions(logits=eta.log(), labels=[0, 2], split="test", posterior=eta), CLASSES)
    assert itself["posterior_distance"] == pytest.approx(0, abs=1e-12)
    assert itself["posterior_ece"] == pytest.approx(0, abs=1e-12)
    assert itself["ece"] > 0.1  # which the labels alone would report


def test_several_labels_give_the_mean_and_each():
    draws = np.random.default_rng(0)
    probs = draws.random((200, 3))
    labels = draws.random((200, 3)) < probs
    labels[:, 2] = False  # a finding that never occurs has no AUROC
    made = Predictions(probs=probs, labels=labels, split="test", multilabel=True)
    record = split_metrics(made, CLASSES)
    each = multilabel_ece(probs, labels, average=None)
    assert [record[f"ece/{name}"] for name in CLASSES] == pytest.approx(each.tolist())
    assert record["ece"] == pytest.approx(each.mean())
    by_sklearn = [roc_auc_score(labels[:, k], probs[:, k]) for k in (0, 1)]
    assert [record["auroc/a"], record["auroc/b"]] == pytest.approx(by_sklearn)
    assert record["auroc"] == pytest.approx(np.mean(by_sklearn))
    assert "auroc/c" not in record
    assert (record["auroc_labels"], record["positives/c"]) == (2, 0)
    assert json.loads(json.dumps(record)) == record


def test_auroc_of_a_shift_is_that_of_scikit_learn():
    clean, shifted = predictions(seed=1, scale=4.0), predictions(rows=200, seed=2, scale=1.0, split="svhn")
    record = shift_metrics(shifted, clean)
    confidence = np.concatenate([softmax(one.logits.astype(np.float64)).max(1) for one in (clean, shifted)])
    assert record["auroc"] == pytest.approx(roc_auc_score([1] * 300 + [0] * 200, confidence))
    assert record["auroc"] > 0.7  # surer on the clean set
    assert record["confidence"] == pytest.approx(confidence[300:].mean())
    assert shift_metrics(clean, clean)["auroc"] == 0.5
    sure, less = (Predictions(logits=torch.tensor([[x, 0.0]]), labels=[0], split="test") for x in (40.0, 30.0))
    assert sure.probs.max() == less.probs.max() == 1  # in float32, where they would tie
    assert shift_metrics(less, sure)["auroc"] == 1
