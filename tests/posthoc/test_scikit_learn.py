"""scikit-learn's own checks of an estimator, but for those whose data cannot be logits of K classes."""

import numpy as np
import pandas as pd
import pytest
from references.golden import single_label
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from focalcal.posthoc import CALIBRATORS, PosteriorRecovery, TemperatureScaling

_COLUMNS = "its data have two columns and three classes; here a column is a class"
_INTEGER_LOGITS = "its data are integers; integers are refused, since they are mostly labels in the wrong place"
CANNOT_APPLY = {
    "check_fit_score_takes_y": "the second argument is called labels, as everywhere in the package",
    "check_n_features_in_after_fitting": "calls score(y=...); the argument is called labels (columns are checked)",
    "check_estimators_overwrite_params": _COLUMNS,
    "check_estimators_fit_returns_self": _COLUMNS,
    "check_readonly_memmap_input": _COLUMNS,
    "check_classifiers_train": _COLUMNS,
    "check_estimators_dtypes": _INTEGER_LOGITS,
    "check_classifier_data_not_an_array": _INTEGER_LOGITS,
    "check_sample_weights_pandas_series": _INTEGER_LOGITS,
    "check_sample_weights_not_an_array": _INTEGER_LOGITS,
    "check_sample_weights_shape": _INTEGER_LOGITS,
    "check_sample_weights_not_overwritten": _COLUMNS,
    "check_sample_weight_equivalence_on_dense_data": "calls fit(y=...); test_weights_and_dense.py has the equivalence",
    "check_fit2d_1feature": "one column is that of the positive of two classes, and its labels are of three",
    "check_dtype_object": "looks for scikit-learn's words in the message about Python objects",
    "check_estimators_nan_inf": "looks for scikit-learn's words in the message about NaN and infinite logits",
    "check_classifiers_regression_target": "looks for scikit-learn's words in the message about labels between classes",
    "check_classifiers_classes": _COLUMNS,
    "check_supervised_y_2d": "labels (N, 1) are taken without a warning",
}
ESTIMATORS = [kind() for kind in CALIBRATORS.values()] + [PosteriorRecovery(fit_temperature=True)]


@pytest.mark.filterwarnings("ignore::focalcal.posthoc.CalibrationWarning")  # its labels are noise
@pytest.mark.filterwarnings("ignore:Estimator .* does not inherit")  # so that it waits for no import of scikit-learn
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_scikit_learns_checks(estimator):
    results = check_estimator(estimator, expected_failed_checks=CANNOT_APPLY, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert not failed
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(CANNOT_APPLY)  # none listed in vain
    assert sum(r["status"] == "passed" for r in results) >= 35


def test_columns_have_names():
    logits, labels = single_label()
    frame = pd.DataFrame(logits.numpy()[:, :3], columns=["cat", "dog", "eel"])
    labels = labels.numpy() % 3
    fitted = TemperatureScaling().fit(frame, labels)
    assert fitted.feature_names_in_.tolist() == ["cat", "dog", "eel"]
    assert fitted.score(frame, labels) == np.mean(fitted.predict(frame) == labels)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict_proba(frame[["dog", "cat", "eel"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fitted.predict_proba(frame.to_numpy())
    assert not hasattr(fitted.fit(frame.to_numpy(), labels), "feature_names_in_")


def test_metadata_routing_and_html_are_those_of_scikit_learns_estimators():
    logits, labels = (array.numpy() for array in single_label())
    weights = np.where(np.arange(len(labels)) % 2, 3.0, 1.0)
    with config_context(enable_metadata_routing=True):
        weighted = clone(TemperatureScaling().set_fit_request(sample_weight=True))
        piped = make_pipeline(FunctionTransformer(), weighted).fit(logits, labels, sample_weight=weights)
    expected = TemperatureScaling().fit(logits, labels, sample_weight=weights)
    assert piped[-1].temperature_ == expected.temperature_ != TemperatureScaling().fit(logits, labels).temperature_
    assert "TemperatureScaling" in piped._repr_html_()
    assert "TemperatureScaling" in expected._repr_html_()
    with pytest.raises(ValueError, match="Invalid parameter 'lam'"):
        expected.set_params(lam=1)
    with pytest.raises(AttributeError, match="'TemperatureScaling' object has no attribute 'coef_'"):
        _ = expected.coef_
