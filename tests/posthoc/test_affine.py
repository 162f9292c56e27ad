"""Vector and matrix scaling: gradients, limits, optimality."""

import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from references.golden import single_label
from scipy.optimize import minimize

from focalcal.posthoc import CalibrationWarning, MatrixScaling, TemperatureScaling, VectorScaling
from focalcal.posthoc.affine import affine_probs, centred

INF = float("inf")


def nll(calibrator, logits, labels):
    return F.nll_loss(calibrator.predict_proba(logits).log(), labels).item()


@pytest.mark.parametrize("scale", [1.0, 12.0])
def test_each_family_contains_the_one_before(scale):
    logits, labels = single_label()
    logits = scale * logits
    identity = F.cross_entropy(logits, labels).item()
    temperature = nll(TemperatureScaling().fit(logits, labels), logits, labels)
    vector = nll(VectorScaling().fit(logits, labels), logits, labels)
    matrix = nll(MatrixScaling(off_diagonal_l2=0.0).fit(logits, labels), logits, labels)
    assert matrix < vector < temperature < identity


def test_vector_scaling_reaches_the_minimum():
    logits, labels = single_label()
    x = centred(logits).numpy()
    rows = np.arange(len(x))

    def loss(theta):  # numerical gradients, independent of ours
        scores = x * theta[:10] + theta[10:]
        return float((np.logaddexp.reduce(scores, 1) - scores[rows, labels.numpy()]).mean())

    peer = minimize(loss, np.r_[np.ones(10), np.zeros(10)], method="BFGS", options={"gtol": 1e-7})
    fitted = VectorScaling().fit(logits, labels)
    assert fitted.converged_
    assert nll(fitted, logits, labels) <= peer.fun + 1e-9
    np.testing.assert_allclose(fitted.weight_, peer.x[:10], atol=1e-3)
    np.testing.assert_allclose(fitted.bias_, peer.x[10:] - peer.x[10:].mean(), atol=1e-3)
    assert abs(fitted.bias_.sum()) < 1e-12


def test_vector_scaling_held_to_one_weight_is_temperature_scaling():
    logits, labels = single_label()
    fitted = VectorScaling(spread_l2=INF, bias_l2=INF).fit(logits, labels)
    temperature = TemperatureScaling().fit(logits, labels).temperature_
    np.testing.assert_allclose(fitted.weight_, 1 / temperature, rtol=1e-7)
    assert not fitted.bias_.any()
    strong = VectorScaling(spread_l2=1e5, bias_l2=1e5).fit(logits, labels)
    np.testing.assert_allclose(strong.weight_, 1 / temperature, atol=1e-5)


def test_matrix_scaling_held_to_its_diagonal_is_vector_scaling():
    logits, labels = (v[:500] for v in single_label())
    vector = VectorScaling().fit(logits, labels)
    matrix = MatrixScaling(off_diagonal_l2=INF).fit(logits, labels)
    np.testing.assert_allclose(matrix.weight_, np.diag(vector.weight_), atol=1e-6)
    np.testing.assert_allclose(matrix.bias_, vector.bias_, atol=1e-6)
    torch.testing.assert_close(matrix.predict_proba(logits), vector.predict_proba(logits), atol=1e-6, rtol=0)
    strong = MatrixScaling(off_diagonal_l2=1.0).fit(logits, labels)
    torch.testing.assert_close(strong.predict_proba(logits), vector.predict_proba(logits), atol=0.02, rtol=0)
    unbiased = MatrixScaling(off_diagonal_l2=0.1, bias_l2=INF).fit(logits, labels)
    assert not unbiased.bias_.any()


def test_too_few_iterations_say_so():
    logits, labels = single_label()
    with pytest.warns(CalibrationWarning, match="stopped after 2 iterations.*raise max_iter"):
        fitted = MatrixScaling(max_iter=2).fit(logits, labels)
    assert not fitted.converged_
    assert nll(fitted, logits, labels) < F.cross_entropy(logits, labels)


@pytest.mark.parametrize("kind", [VectorScaling, MatrixScaling])
@pytest.mark.parametrize("scale", [1e-200, 12.0, 1e200])
def test_logits_of_any_size_and_strengths_mean_the_same(kind, scale):
    logits, labels = (v[:500] for v in single_label())
    plain = kind(0.01, 0.01).fit(logits, labels).predict_proba(logits)
    fitted = kind(0.01, 0.01).fit(scale * logits, labels)
    torch.testing.assert_close(fitted.predict_proba(scale * logits), plain, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", [VectorScaling, MatrixScaling])
@pytest.mark.parametrize("scale", [1e-200, 1.0])
def test_where_the_product_would_overflow_the_largest_score_takes_all(kind, scale):
    """Weights of 1e200 and logits of 1e307: inf - inf in W x, and yet x has a direction."""
    logits, labels = (v[:500] for v in single_label())
    fitted = kind().fit(scale * logits, labels)
    weight = torch.from_numpy(fitted.weight_ * scale)
    direction = centred(logits) * weight if weight.dim() == 1 else centred(logits) @ weight.T
    expected = F.one_hot(direction.argmax(1), 10).double()
    for size in (1e200, 1e299):  # beyond 1e300 centred() no longer tells distances apart
        torch.testing.assert_close(fitted.predict_proba(logits * size), expected, atol=0, rtol=0)
    largest = fitted.predict_proba(logits * 1e307)
    torch.testing.assert_close(largest.sum(1), torch.ones(500, dtype=torch.float64), atol=1e-12, rtol=0)


def test_the_bias_decides_between_equal_scores_however_large():
    sizes = torch.tensor([[1.0], [1e20], [1e299]], dtype=torch.float64)
    bias = torch.tensor([3.0, 1.0, 1.0], dtype=torch.float64).log()
    probs = affine_probs(torch.ones(3, dtype=torch.float64), bias, sizes * torch.tensor([1.0, 1.0, -2.0]))
    torch.testing.assert_close(probs[:, 0] / probs[:, 1], torch.full((3,), 3.0, dtype=torch.float64))


def test_the_default_holds_many_classes_back():
    """100 classes, 3000 rows, nothing to gain beyond a temperature: 10,000 numbers must not cost much."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(6000, 100, generator=generator, dtype=torch.float64)
    labels = torch.multinomial((logits / 1.7).softmax(1), 1, generator=generator).squeeze(1)
    fitted = MatrixScaling().fit(logits[:3000], labels[:3000])
    held, held_labels = logits[3000:], labels[3000:]
    best = F.cross_entropy(held / 1.7, held_labels).item()
    assert nll(fitted, held, held_labels) < best + 0.06
    assert nll(fitted, held, held_labels) < F.cross_entropy(held, held_labels)


@pytest.mark.parametrize("kind", [VectorScaling, MatrixScaling])
@pytest.mark.parametrize("lead", [1e6, 1e12, 1e100])
def test_one_enormous_row_does_not_spoil_the_others(kind, lead):
    logits, labels = (v[:500].clone() for v in single_label())
    logits[0], labels[0] = 0.0, 2
    logits[0, 2] = lead
    temperature = nll(TemperatureScaling().fit(logits, labels), logits, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # a cliff may stop the search early, and says so
        fitted = kind().fit(logits, labels)
    assert nll(fitted, logits, labels) <= temperature + 1e-9
    rest = kind().fit(logits[1:], labels[1:])
    assert nll(fitted, logits[1:], labels[1:]) < nll(rest, logits[1:], labels[1:]) + 0.05


SHIFT = torch.tensor([2.0, 0.0, -1.0])
WITHOUT_OPTIMUM = {
    "the weights have no finite optimum: every label has": lambda z, _: z.argmax(1),
    "no finite optimum: the fitted map predicts every label": lambda z, _: (z + SHIFT).argmax(1),
    "no finite optimum: no label names class 1": lambda _, labels: torch.where(labels == 1, 2, labels),
}


@pytest.mark.parametrize("kind", [VectorScaling, MatrixScaling])
@pytest.mark.parametrize("message", WITHOUT_OPTIMUM)
def test_what_has_no_finite_optimum_says_so(kind, message):
    logits, labels = single_label()
    logits = logits[:300, :3]
    labels = WITHOUT_OPTIMUM[message](logits, labels[:300] % 3)
    with pytest.warns(CalibrationWarning, match=message):
        fitted = kind().fit(logits, labels)
    assert not fitted.converged_
    if "class 1" in message:
        assert kind(bias_l2=0.01).fit(logits, labels).converged_
    else:
        assert torch.equal(fitted.predict(logits), labels)
