"""A trained classifier behind a calibrator is a classifier, in scikit-learn's tools too."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC
from torch import nn

from focalcal.posthoc import CALIBRATORS, CalibratedModel, HistogramBinning, PlattScaling, TemperatureScaling

X, INDEX = make_classification(900, 12, n_informative=6, n_classes=3, flip_y=0.2, random_state=0)
NAMES = np.array(["ant", "bee", "cat"])
Y = NAMES[INDEX]
TRAIN, HELD, NEW = slice(0, 300), slice(300, 600), slice(600, 900)


@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize("kind", [LogisticRegression, GaussianNB, LinearSVC])
def test_temperature_is_that_of_scikit_learn(kind, two):
    x, y = X, np.where(Y == "cat", "ant", Y) if two else Y
    classifier = kind().fit(x[TRAIN], y[TRAIN])
    ours = CalibratedModel(classifier, TemperatureScaling()).fit(x[HELD], y[HELD])
    theirs = CalibratedClassifierCV(FrozenEstimator(classifier), method="temperature").fit(x[HELD], y[HELD])
    np.testing.assert_allclose(ours.predict_proba(x[NEW]), theirs.predict_proba(x[NEW]), atol=2e-4)
    assert ours.predict(x[NEW]).tolist() == theirs.predict(x[NEW]).tolist()
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    assert ours.score(x[NEW], y[NEW]) == theirs.score(x[NEW], y[NEW])


@pytest.mark.parametrize("name", ["temperature", "isotonic", "structured"])
def test_a_calibrator_behind_every_output(name):
    """A method that gives the same probabilities gives the same calibrated ones."""
    classifier = LogisticRegression().fit(X[TRAIN], Y[TRAIN])
    by_method = [
        CalibratedModel(classifier, CALIBRATORS[name](), method=method).fit(X[HELD], Y[HELD]).predict_proba(X[NEW])
        for method in ("auto", "predict_proba", "predict_log_proba")
    ]
    np.testing.assert_allclose(by_method[1], by_method[0], atol=1e-5)
    np.testing.assert_allclose(by_method[2], by_method[0], atol=1e-5)


def test_what_was_taken_is_said():
    forest = RandomForestClassifier(20, max_leaf_nodes=10, random_state=0).fit(X[TRAIN], Y[TRAIN])
    assert CalibratedModel(forest, PlattScaling()).fit(X[HELD], Y[HELD]).method_ == "predict_proba"
    svm = LinearSVC().fit(X[TRAIN], Y[TRAIN])
    assert CalibratedModel(svm, PlattScaling()).fit(X[HELD], Y[HELD]).method_ == "decision_function"


def test_weights_reach_the_calibrator():
    classifier = LogisticRegression().fit(X[TRAIN], Y[TRAIN])
    copies = np.arange(300) % 3
    weighted = CalibratedModel(classifier, TemperatureScaling()).fit(X[HELD], Y[HELD], sample_weight=copies)
    rows = np.repeat(np.arange(300), copies)
    repeated = CalibratedModel(classifier, TemperatureScaling()).fit(X[HELD][rows], Y[HELD][rows])
    assert weighted.calibrator_.temperature_ == pytest.approx(repeated.calibrator_.temperature_)


def test_tools_leave_the_classifier_as_it_is():
    classifier = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[TRAIN], Y[TRAIN])
    before = classifier.predict_proba(X)
    model = CalibratedModel(classifier, HistogramBinning(bins=5))
    assert clone(model).classifier is classifier
    out_of_fold = cross_val_predict(model, X[HELD], Y[HELD], method="predict_proba")
    assert out_of_fold.shape == (300, 3)
    search = GridSearchCV(
        model, {"calibrator__bins": [2, 10], "calibrator": [HistogramBinning()]}, scoring="neg_brier_score"
    )
    search.fit(X[HELD], Y[HELD])
    assert search.best_params_["calibrator__bins"] in (2, 10)
    assert search.classes_.tolist() == NAMES.tolist()
    piped = make_pipeline(FunctionTransformer(), model).fit(X[HELD], Y[HELD])
    np.testing.assert_allclose(piped.predict_proba(X[NEW]), clone(model).fit(X[HELD], Y[HELD]).predict_proba(X[NEW]))
    np.testing.assert_array_equal(classifier.predict_proba(X), before)


class Network(nn.Module):
    def __init__(self, columns):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(12, 16), nn.Dropout(0.9), nn.Linear(16, columns))

    def forward(self, rows):
        return self.layers(rows)


def test_a_module():
    network = Network(3).train()
    network.layers[1].eval()  # a part that its owner holds fixed
    outputs = network.layers(torch.from_numpy(X[HELD]).float()).detach().numpy()
    labels = (outputs + np.random.default_rng(0).gumbel(size=outputs.shape)).argmax(1)  # drawn from the softmax
    model = CalibratedModel(network, TemperatureScaling(), classes=NAMES).fit(X[HELD], NAMES[labels])
    assert clone(model).classes is NAMES
    assert model.calibrator_.temperature_ == pytest.approx(1, abs=0.3)
    assert model.classes_.tolist() == NAMES.tolist()
    assert [part.training for part in network.modules()] == [True, True, True, False, True]
    with torch.no_grad():
        logits = network.eval()(torch.from_numpy(X[NEW]).float())
    expected = (logits / model.calibrator_.temperature_).softmax(1)
    np.testing.assert_allclose(model.predict_proba(X[NEW]), expected, rtol=1e-5)
    np.testing.assert_allclose(model.predict_proba(pd.DataFrame(X[NEW])), expected, rtol=1e-5)
    torch.testing.assert_close(model.predict_proba(torch.from_numpy(X[NEW])), expected)
    assert model.predict(X[NEW]).tolist() == NAMES[expected.argmax(1)].tolist()
    numbers = CalibratedModel(network, TemperatureScaling()).fit(X[HELD], labels)
    assert numbers.classes_.tolist() == [0, 1, 2]


def test_a_module_of_one_column():
    model = CalibratedModel(Network(1), PlattScaling()).fit(X[HELD], INDEX[HELD] == 2)
    assert model.predict_proba(X[NEW]).shape == (300, 2)


def test_saved_without_its_classifier_and_loaded_before_it(tmp_path):
    for classifier in (LinearSVC().fit(X[TRAIN], Y[TRAIN]), LogisticRegression().fit(X[TRAIN], Y[TRAIN])):
        model = CalibratedModel(classifier, PlattScaling()).fit(X[HELD], Y[HELD])
        model.save(tmp_path / "model.json")
        twin = CalibratedModel.load(tmp_path / "model.json", classifier)
        np.testing.assert_allclose(twin.predict_proba(X[NEW]), model.predict_proba(X[NEW]))
        assert twin.predict(X[NEW]).tolist() == model.predict(X[NEW]).tolist()
        assert (twin.method_, twin.n_features_in_) == (model.method_, model.n_features_in_)
    network = Network(3)
    CalibratedModel(network, PlattScaling(), classes=["a", "b", "c"]).fit(
        X[HELD], np.array(list("abc"))[INDEX[HELD]]
    ).save(tmp_path / "network.json")
    assert CalibratedModel.load(tmp_path / "network.json", network).predict(X[NEW]).tolist()[0] in "abc"
    with pytest.raises(ValueError, match="classifier must have the classes of the saved model"):
        CalibratedModel.load(tmp_path / "model.json", LinearSVC().fit(X[TRAIN], INDEX[TRAIN]))
    PlattScaling().fit(X[HELD][:, :3], INDEX[HELD]).save(tmp_path / "other.json")
    with pytest.raises(ValueError, match=r"is no saved CalibratedModel; pass a file that its save\(\) wrote"):
        CalibratedModel.load(tmp_path / "other.json", network)
