"""What a caller may hand over to the theory: kinds of arrays, and clear refusals without warnings."""

import numpy as np
import pytest
import torch

from focalcal.theory.bias import first_order_constant
from focalcal.theory.minimiser import minimise

HALF = np.array([0.5, 0.5])


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


@pytest.mark.parametrize(
    ("eta", "message"),
    [
        (torch.tensor(HALF).to_sparse(), r"eta must be a dense tensor, got torch.sparse_coo; use eta.to_dense\(\)"),
        (
            list(torch.tensor(HALF, requires_grad=True)),
            "eta must be an array of numbers or one tensor, got list: .*stack",
        ),
        ([torch.tensor(HALF, requires_grad=True)], "eta must be an array of numbers or one tensor, got list: .*stack"),
        (torch.tensor(HALF, dtype=torch.complex64), "eta must hold real numbers, got torch.complex64"),
        (torch.tensor([True, False]), "eta must be numbers of at most 64 bits, got bool"),
        (["a", "b"], "eta must be numbers of at most 64 bits, got <U1"),
        (HALF.astype(np.longdouble), "eta must be numbers of at most 64 bits, got"),
    ],
)
def test_what_is_no_array_of_numbers(eta, message):
    with pytest.raises(TypeError, match=message):
        minimise(eta, gamma=2.0, lam=1.0)


@pytest.mark.parametrize("name", ["gamma", "lam"])
def test_parameters_are_named(name):
    with pytest.raises(TypeError, match=f"{name} must be a dense tensor"):
        minimise(HALF, **{"gamma": 2.0, "lam": 1.0, name: torch.ones(1).to_sparse()})


@pytest.mark.parametrize(
    ("eta", "message"),
    [
        ([1e308, 1e308], "eta must be a distribution .* got a sum of inf"),
        ([np.inf, -np.inf], "eta must be a distribution .* got inf; find out"),
        ([np.nan, 1.0], "eta must be a distribution .* got nan; find out"),
        ([[0.5, 0.5], [0.5, 0.6]], "got a sum of 1.1 at index 1; divide it by its sum"),
        ([[0.5, 0.5], [0.5]], "eta must be an array of numbers, got list: "),
        ([0.7, 0.4, -0.1], "got -0.1; pass probabilities"),
        ([0.5, 0.502], "got a sum of 1.002; divide it by its sum"),
        (0.5, r"eta must have shape \(K,\)"),
        ([], "at least one class"),
        (np.zeros((3, 0)), "at least one class"),
    ],
)
def test_no_distribution(eta, message):
    with pytest.raises(ValueError, match=message):
        first_order_constant(eta, gamma=2.0)
