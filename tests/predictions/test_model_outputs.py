"""`Predictions.from_sklearn` and `from_huggingface`, with models that are fitted and run here."""

from types import SimpleNamespace

import numpy as np
import pandas
import pytest
import torch
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertForTokenClassification,
    Trainer,
    TrainingArguments,
)

from focalcal.predictions import Predictions

DRAWS = np.random.default_rng(0)
X = DRAWS.normal(size=(200, 3))
INDEX = (X[:, 0] + 0.5 * DRAWS.normal(size=200) > 0).astype(int) + (X[:, 1] > 1)


@pytest.mark.parametrize(
    ("names", "classes"),
    [
        (np.array(["pear", "apple", "fig"]), ("apple", "fig", "pear")),
        (np.array([7, 3, 5]), (3, 5, 7)),
        (np.array([2.0, 1.0, 0.0]), (0, 1, 2)),
        (np.array(["10", "9", "1"]), ("1", "10", "9")),
    ],
)
def test_labels_find_the_columns_of_the_model(names, classes):
    """The probability of each row's label is the one that the model's own `classes_` names."""
    y = names[INDEX]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    want = model.predict_proba(X)[model.classes_ == y[:, None]]
    for own in (y, list(y), pandas.Series(y), pandas.Series(y).astype("category"), y[:, None]):
        made = Predictions.from_sklearn(model, X, own, split="val", ids=np.arange(200))
        np.testing.assert_array_equal(made.probs[np.arange(200), made.labels], want)
    assert (made.classes, made.split, made.ids[-1]) == (classes, "val", 199)
    assert made.provenance == {"model": "Pipeline"}


def test_classes_of_a_model_that_are_missing_keep_their_columns():
    y = np.array(["apple", "fig", "pear"])[INDEX]
    model = LogisticRegression().fit(X, y)
    some = y != "fig"
    assert set(Predictions.from_sklearn(model, X[some], y[some]).labels) == {0, 2}
    with pytest.raises(ValueError, match=r"y must hold classes of the model, .*, got 'plum' in row 1"):
        Predictions.from_sklearn(model, X[:2], ["fig", "plum"])
    with pytest.raises(ValueError, match=r"classes of the model, .*, got 0 in row 0"):  # an index is no name
        Predictions.from_sklearn(model, X, INDEX * 0)
    with pytest.raises(TypeError, match=r"one of ids, .* and provenance, got labels"):
        Predictions.from_sklearn(model, X, y, labels=y)
    with pytest.raises(ValueError, match=r"labels must have shape \(200,\)"):
        Predictions.from_sklearn(model, X, y[:-1])


def test_what_has_no_probabilities_is_refused():
    truths = np.stack([INDEX > 0, X[:, 2] > 0], 1).astype(int)
    with pytest.raises(TypeError, match=r"got RidgeClassifier, whose decision_function .*CalibratedClassifierCV"):
        Predictions.from_sklearn(RidgeClassifier().fit(X, INDEX), X, INDEX)
    with pytest.raises(TypeError, match="must be a classifier with predict_proba, got LinearRegression"):
        Predictions.from_sklearn(LinearRegression().fit(X, INDEX), X, INDEX)
    with pytest.raises(TypeError, match="one output, got MultiOutputClassifier with 2; give each by itself"):
        Predictions.from_sklearn(MultiOutputClassifier(LogisticRegression()).fit(X, truths), X, truths)
    several = OneVsRestClassifier(LogisticRegression()).fit(X, truths)
    made = Predictions.from_sklearn(several, X, truths, multilabel=True)
    np.testing.assert_array_equal(made.labels, truths.astype(bool))
    with pytest.raises(ValueError, match="for several labels say multilabel=True"):
        Predictions.from_sklearn(several, X, truths)


def predicted(kind, folder, labels, **config):
    """What a `Trainer` predicts by a random model of the rows, and the model's own logits."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    model = kind(BertConfig(vocab_size=20, max_position_embeddings=8, **sizes, **config)).eval()
    tokens = torch.randint(0, 20, (len(labels), 6))
    rows = [{"input_ids": own, "labels": label} for own, label in zip(tokens, labels, strict=True)]
    arguments = TrainingArguments(str(folder), report_to=[], use_cpu=True, per_device_eval_batch_size=4)
    with torch.no_grad():
        return Trainer(model, arguments).predict(rows), model(tokens).logits.numpy(), model


def test_what_a_trainer_predicts(tmp_path):
    labels = np.arange(10) % 3
    labels[[2, 7]] = -100
    output, logits, model = predicted(
        BertForSequenceClassification, tmp_path, labels, num_labels=3, output_hidden_states=True
    )
    assert isinstance(output.predictions, tuple)
    id2label = {0: "no", 1: "yes", 2: "maybe"}
    made = Predictions.from_huggingface(
        output, split="test", classes=id2label, ids=list("abcdefghij"), groups={"site": list("xxxxxyyyyy")}
    )
    kept = labels >= 0
    np.testing.assert_allclose(made.logits, logits[kept], atol=1e-5)
    assert made.labels.tolist() == labels[kept].tolist()
    assert ("".join(made.ids), made.classes) == ("abdefgij", ("no", "yes", "maybe"))
    assert "".join(made.groups.ravel()) == "xxxxyyyy"
    assert made.provenance == {"labels_of_-100_left_out": 2}
    assert Predictions.from_huggingface(output, classes=model.config.id2label).classes[0] == "LABEL_0"
    with pytest.raises(ValueError, match="ids must have one value per example, 10, got 8"):
        Predictions.from_huggingface(output, ids=np.arange(8))


def test_tokens_are_rows_in_the_cluster_of_their_text(tmp_path):
    labels = np.random.default_rng(0).integers(0, 3, (5, 6))
    labels[:, 0] = labels[3, 2:] = -100
    output, logits, _ = predicted(BertForTokenClassification, tmp_path, labels, num_labels=3)
    made = Predictions.from_huggingface(output, shift_labels=False, weights=[1, 2, 3, 4, 5])
    np.testing.assert_allclose(made.logits, logits[labels >= 0], atol=1e-5)
    assert made.labels.tolist() == labels[labels >= 0].tolist()
    assert np.bincount(made.clusters).tolist() == [5, 5, 5, 1, 5]
    assert (made.weights == made.clusters + 1).all()
    assert made.provenance == {"labels_of_-100_left_out": 9}
    after = Predictions.from_huggingface(output, shift_labels=True)
    np.testing.assert_allclose(after.logits, logits[:, :-1][labels[:, 1:] >= 0], atol=1e-5)
    with pytest.raises(ValueError, match=r"tokens, \(5, 6, 3\), need shift_labels; say True of a causal"):
        Predictions.from_huggingface(output)


def test_several_labels_are_said(tmp_path):
    truths = np.eye(3)[[0, 1, 2, 1]]  # which could be one label per row
    output, logits, _ = predicted(
        BertForSequenceClassification, tmp_path, truths.astype(np.float32), num_labels=3,
        problem_type="multi_label_classification",
    )  # fmt: skip
    made = Predictions.from_huggingface(output, multilabel=True, ids=list("abcd"))
    np.testing.assert_allclose(made.logits, logits, atol=1e-5)
    assert made.labels.tolist() == truths.astype(bool).tolist()
    with pytest.raises(ValueError, match="several labels per row; say multilabel=True"):
        Predictions.from_huggingface(output)


@pytest.mark.parametrize(
    ("predictions", "label_ids", "error", "message"),
    [
        (np.eye(3), None, TypeError, "SimpleNamespace without label_ids; give Trainer.predict"),
        (np.eye(3, dtype=int), np.arange(3), TypeError, "must be logits, got int64, as of generated tokens"),
        (np.ones((3, 1)), np.arange(3), ValueError, r"classifier, got \(3, 1\); a regression"),
        (np.ones(3), np.arange(3.0), ValueError, "several labels|regression"),
        (np.eye(3), np.arange(2), ValueError, r"one label per row of predictions, got \(2,\) for \(3, 3\)"),
        (np.eye(3), np.full(3, -100), ValueError, "must hold a label, got -100 alone"),
        (np.eye(3), np.arange(1, 4), ValueError, "labels must be from 0 to 2, got 3"),
        ((), np.arange(3), ValueError, "predictions must begin with the logits, got an empty tuple"),
        ((np.eye(3), np.eye(3)), (np.arange(3), np.arange(3)), TypeError, "label_ids must be one array, got 2"),
    ],
)
def test_what_is_no_prediction_with_labels_is_refused(predictions, label_ids, error, message):
    with pytest.raises(error, match=message):
        Predictions.from_huggingface(SimpleNamespace(predictions=predictions, label_ids=label_ids))
