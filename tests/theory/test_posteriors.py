"""What every function of posteriors takes: kinds of numbers, batches with their parameters, classes that are absent."""

import inspect

import numpy as np
import pytest
import torch

from focalcal import theory
from focalcal.theory.minimiser import minimise

HALF = np.array([0.5, 0.5])
BY_CLASS = ("first_order_bias", "pre_asymptotic_bias", "recover", "minimise")
BY_POSTERIOR = (
    *("first_order_constant", "asymptote_delay", "global_bound", "entropy_bound", "interior_threshold", "entropy"),
    *("interior_bound", "slope_bound", "keeps_decision", "decision_gap", "propriety_error", "focal_potential"),
)


def called(name, eta, **parameters):
    function = getattr(theory, name)
    taken = inspect.signature(function).parameters
    found = function(eta, **{one: value for one, value in parameters.items() if one in taken})
    return found.unwrap() if name == "minimise" else found


@pytest.mark.parametrize(
    "eta",
    [
        [0.5, 0.5],
        HALF.astype(np.float16),
        torch.tensor(HALF, dtype=torch.bfloat16),
        torch.tensor(HALF, requires_grad=True),
        [torch.tensor(0.5), torch.tensor(0.5)],
    ],
)
def test_kinds_of_numbers(eta):
    np.testing.assert_array_equal(minimise(eta, gamma=torch.tensor(2.0), lam=1).q, HALF)


@pytest.mark.parametrize("name", [*BY_CLASS, *BY_POSTERIOR])
def test_a_batch_is_its_rows(name):
    eta, gamma, lam = (
        np.array([[0.5, 0.3, 0.2], [0.9, 0.1, 0.0]]),
        np.array([[0.5], [1.0], [3.0]]),
        np.array([0.5, 40.0]),
    )
    found = np.broadcast_to(called(name, eta, gamma=gamma, lam=lam), (3, 2, 3) if name in BY_CLASS else (3, 2))
    for i, j in np.ndindex(3, 2):
        alone = called(name, eta[j], gamma=gamma[i, 0], lam=lam[j])
        assert np.ndim(alone) == (name in BY_CLASS)
        assert isinstance(alone, np.ndarray | float | np.bool_)
        np.testing.assert_allclose(found[i, j], alone, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("name", [*BY_CLASS, *BY_POSTERIOR])
def test_a_face_is_a_problem_with_fewer_classes(name):
    on_face, inside, back = [0.6, 0.0, 0.3, 0.1, 0.0], [0.6, 0.3, 0.1], [0, 2, 3]
    found, expected = (called(name, eta, gamma=2.0, lam=1e4) for eta in (on_face, inside))
    if name in BY_CLASS:
        assert found[1] == found[4] == 0
        found = found[back]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
