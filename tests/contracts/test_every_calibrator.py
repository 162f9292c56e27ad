"""What every entry of CALIBRATORS promises, whatever its map."""

import copy
import pickle

import numpy as np
import pytest
import torch
from references.golden import single_label
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import check_is_fitted

from focalcal.core.checks import ProbabilityWarning
from focalcal.posthoc import CALIBRATORS

EVERY = sorted(CALIBRATORS)
MONOTONE = ["temperature", "recovery", "ensemble", "focal_temperature"]  # the order of a row's classes never changes
BY_LIKELIHOOD = ["temperature", "vector", "matrix", "ensemble", "focal_temperature"]
LOGITS, LABELS = single_label()
LOGITS, LABELS = 1.5 * LOGITS[:600, :5], LABELS[:600] % 5


# The same numbers in other memory: the BLAS adds five products below 50 in an order of its own, softmax may round
# differently, and isotonic regression multiplies that by slopes of 1e5. float32 anywhere would be off by 1e-8.
ROUNDING = {"rtol": 0, "atol": 1e-10}
# Fits that stop where the gradient is small, from sums in another order.
FITTED_APART = {"rtol": 0, "atol": 2e-6}


@pytest.fixture(scope="module")
def fitted():
    return {name: CALIBRATORS[name]().fit(LOGITS, LABELS) for name in EVERY}


@pytest.mark.parametrize("name", EVERY)
def test_probabilities(fitted, name):
    probs = fitted[name].predict_proba(LOGITS)
    assert probs.shape == LOGITS.shape
    assert (probs >= 0).all()
    torch.testing.assert_close(probs.sum(1), torch.ones(600, dtype=torch.float64), rtol=0, atol=1e-12)
    assert torch.equal(fitted[name].predict(LOGITS), probs.argmax(1))
    accuracy = (probs.argmax(1) == LABELS).double().mean()
    assert fitted[name].score(LOGITS, LABELS) == pytest.approx(accuracy.item())


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_tensor_gives_a_tensor_and_numpy_numpy(fitted, name, dtype):
    given = LOGITS.to(dtype)
    probs = fitted[name].predict_proba(given)
    assert isinstance(probs, torch.Tensor)
    assert probs.dtype == (dtype if dtype in (torch.float32, torch.float64) else torch.float32)
    expected = fitted[name].predict_proba(given.double())
    torch.testing.assert_close(probs.double(), expected, rtol=0, atol=1e-10 if dtype is torch.float64 else 1e-7)
    if dtype is torch.bfloat16:
        return
    array = fitted[name].predict_proba(given.numpy())
    assert isinstance(array, np.ndarray)
    np.testing.assert_allclose(array, probs.numpy(), rtol=0, atol=1e-10 if dtype is torch.float64 else 1e-7)
    labels = fitted[name].predict(given.numpy())
    assert isinstance(labels, np.ndarray)
    assert labels.dtype == np.int64


@pytest.mark.parametrize("name", EVERY)
def test_lists_gradients_and_memory_layouts(fitted, name):
    expected = fitted[name].predict_proba(LOGITS[:7])
    np.testing.assert_allclose(fitted[name].predict_proba(LOGITS[:7].tolist()), expected.numpy(), **ROUNDING)
    probs = fitted[name].predict_proba(LOGITS[:7].clone().requires_grad_())
    assert not probs.requires_grad
    torch.testing.assert_close(fitted[name].predict_proba(LOGITS[:7].T.contiguous().T), expected, **ROUNDING)
    flipped = np.ascontiguousarray(LOGITS[:7].numpy()[::-1])[::-1]
    np.testing.assert_allclose(fitted[name].predict_proba(flipped), expected.numpy(), **ROUNDING)


@pytest.mark.parametrize("name", EVERY)
def test_what_is_fitted_does_not_depend_on_kind(fitted, name):
    twin = CALIBRATORS[name]().fit(LOGITS.numpy(), LABELS.numpy().astype(np.uint8))
    torch.testing.assert_close(twin.predict_proba(LOGITS), fitted[name].predict_proba(LOGITS), **FITTED_APART)


@pytest.mark.parametrize("name", EVERY)
def test_single_precision_is_fitted_in_double(name):
    single = LOGITS.float()
    probs, expected = (
        CALIBRATORS[name]().fit(given, LABELS).predict_proba(single.double()) for given in (single, single.double())
    )
    torch.testing.assert_close(probs, expected, **ROUNDING)


@pytest.mark.parametrize("name", EVERY)
def test_a_constant_added_to_a_row_changes_nothing(fitted, name):
    moved = LOGITS + torch.linspace(-30, 30, 600, dtype=torch.float64)[:, None]
    expected = fitted[name].predict_proba(LOGITS)
    torch.testing.assert_close(CALIBRATORS[name]().fit(moved, LABELS).predict_proba(moved), expected, **FITTED_APART)


@pytest.mark.parametrize("name", EVERY)
def test_classes_have_no_order(fitted, name):
    order = torch.tensor([3, 0, 4, 1, 2])
    permuted = CALIBRATORS[name]().fit(LOGITS[:, order], order.argsort()[LABELS])
    expected = fitted[name].predict_proba(LOGITS)[:, order]
    torch.testing.assert_close(permuted.predict_proba(LOGITS[:, order]), expected, **FITTED_APART)


@pytest.mark.parametrize("name", EVERY)
def test_rows_have_no_order(fitted, name):
    order = torch.randperm(600)
    shuffled = CALIBRATORS[name]().fit(LOGITS[order], LABELS[order])
    expected = fitted[name].predict_proba(LOGITS)
    torch.testing.assert_close(shuffled.predict_proba(LOGITS), expected, **FITTED_APART)


@pytest.mark.parametrize("name", EVERY)
def test_fitting_again_forgets_the_first_fit(fitted, name):
    twin = CALIBRATORS[name]().fit(LOGITS[:100, :3], LABELS[:100] % 3).fit(LOGITS, LABELS)
    assert twin.n_features_in_ == 5
    torch.testing.assert_close(twin.predict_proba(LOGITS), fitted[name].predict_proba(LOGITS), **FITTED_APART)


@pytest.mark.parametrize("name", EVERY)
def test_scikit_learns_protocol(fitted, name):
    calibrator = fitted[name]
    check_is_fitted(calibrator)
    assert is_classifier(calibrator)
    assert calibrator.n_features_in_ == 5
    np.testing.assert_array_equal(calibrator.classes_, np.arange(5))
    fresh = clone(calibrator)
    assert not hasattr(fresh, "n_features_in_")
    assert fresh.get_params() == calibrator.get_params()
    assert repr(calibrator).startswith(type(calibrator).__name__ + "(")
    for twin in (copy.deepcopy(calibrator), pickle.loads(pickle.dumps(calibrator))):
        torch.testing.assert_close(twin.predict_proba(LOGITS), calibrator.predict_proba(LOGITS), **ROUNDING)


@pytest.mark.parametrize("name", MONOTONE)
def test_the_order_of_the_classes_stays(fitted, name):
    assert torch.equal(fitted[name].predict_proba(LOGITS).argsort(1), LOGITS.argsort(1))


@pytest.mark.parametrize("name", BY_LIKELIHOOD)
@pytest.mark.parametrize("scale", [0.2, 1.0, 8.0])
def test_the_likelihood_of_the_fitted_rows_never_falls(name, scale):
    logits = scale * LOGITS
    probs = CALIBRATORS[name]().fit(logits, LABELS).predict_proba(logits)
    own = LABELS.unsqueeze(1)
    assert probs.gather(1, own).log().mean() >= logits.log_softmax(1).gather(1, own).mean() - 1e-12


@pytest.mark.parametrize("name", EVERY)
def test_one_row_is_what_it_is_among_others_and_checked_like_them(fitted, name):
    """A row of float64 in NumPy takes a way of its own, where microseconds count."""
    calibrator, rows = fitted[name], LOGITS[:40].numpy()
    expected = calibrator.predict_proba(rows)
    for at in range(40):
        row = rows[at : at + 1]
        np.testing.assert_allclose(calibrator.predict_proba(row), expected[at : at + 1], **ROUNDING)
        assert calibrator.predict(row).tolist() == [expected[at].argmax()]
    assert calibrator.predict_proba(np.array([[1e308, 1e308, 1e308, 0.0, -1e308]])).sum() == pytest.approx(1)
    for wrong in (np.nan, np.inf):
        with pytest.raises(ValueError, match="logits must be finite"):
            calibrator.predict_proba(np.array([[wrong, 0.0, 0.0, 1.0, 0.5]]))
    with pytest.raises(ValueError, match=f"{type(calibrator).__name__} is expecting 5 features"):
        calibrator.predict_proba(rows[:1, :4])
    with pytest.warns(ProbabilityWarning, match="A single row is taken as logits"):
        calibrator.predict_proba(np.array([[0.25, 0.25, 0.25, 0.125, 0.125]]))


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("lead", [40.0, 200.0, 800.0])
def test_saturated_rows_stay_probabilities(fitted, name, lead):
    logits = torch.eye(5, dtype=torch.float32) * lead
    probs = fitted[name].predict_proba(logits)
    assert torch.isfinite(probs).all()
    torch.testing.assert_close(probs.sum(1), torch.ones(5), rtol=0, atol=1e-6)
    assert torch.equal(probs.argmax(1), torch.arange(5))


@pytest.mark.parametrize("name", EVERY)
def test_logits_of_any_magnitude_give_probabilities(fitted, name):
    for size in (5e-324, 1e-200, 1e200, 1e307):
        probs = fitted[name].predict_proba(LOGITS * size)
        assert ((probs >= 0) & (probs <= 1)).all(), size
        torch.testing.assert_close(probs.sum(1), torch.ones(600, dtype=torch.float64), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", EVERY)
def test_two_classes_and_many_rows(name):
    generator = torch.Generator().manual_seed(0)
    logits = 4 * torch.randn(70_000, 2, generator=generator)  # more than one chunk
    labels = torch.multinomial((logits / 2).softmax(1), 1, generator=generator).squeeze(1)
    probs = CALIBRATORS[name]().fit(logits, labels).predict_proba(logits)
    assert probs.shape == (70_000, 2)
    if name != "recovery":  # which knows nothing of these labels
        assert (probs - (logits / 2).softmax(1)).abs().mean() < 0.05


@pytest.mark.once
@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr")  # torch 2.4 of its own constants
@pytest.mark.parametrize("name", EVERY)
def test_the_module_exports_and_gives_the_same_probabilities(fitted, name):
    module, expected = fitted[name].to_module(), fitted[name].predict_proba(LOGITS)
    torch.testing.assert_close(module(LOGITS), expected, **ROUNDING)
    assert module(LOGITS.float()).dtype == module(LOGITS.half()).dtype == torch.float32
    rows = {"logits": {0: torch.export.Dim("rows")}}
    exported = torch.export.export(module, (LOGITS[:9],), dynamic_shapes=rows, strict=False)
    torch.testing.assert_close(exported.module()(LOGITS), expected, **ROUNDING)


@pytest.mark.parametrize("name", EVERY)
def test_the_modules_state_dict_holds_what_was_learnt(fitted, name):
    other = CALIBRATORS[name]().fit(0.7 * LOGITS, LABELS)
    module = other.to_module()
    state = fitted[name].to_module().state_dict()
    if any(module.state_dict()[key].shape != value.shape for key, value in state.items()):
        return  # as many points as the data had
    module.load_state_dict(state)
    torch.testing.assert_close(module(LOGITS), fitted[name].predict_proba(LOGITS), **ROUNDING)
