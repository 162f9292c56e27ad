"""What a caller may hand over to the theory: kinds of arrays, and clear refusals without warnings."""

import numpy as np
import pytest
import torch

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
