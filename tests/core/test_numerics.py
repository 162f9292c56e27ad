import mpmath
import numpy as np
import pytest
import torch
from scipy import special

from focalcal.core.numerics import at_least_float32, log_probs_and_complements, log_softmax, logsumexp, softmax

LOGITS = np.random.default_rng(0).normal(0, 30, (40, 7))


def test_half_precision_is_raised_and_nothing_else():
    for dtype, expected in ((torch.float16, torch.float32), (torch.bfloat16, torch.float32), (torch.float64,) * 2):
        assert at_least_float32(torch.ones(1, dtype=dtype)).dtype == expected
    for given, expected in (("float16", "float32"), ("float32", "float32"), ("float64", "float64")):
        assert at_least_float32(np.ones(1, given)).dtype == expected


def test_softmax_is_scipys_under_every_library():
    for mine, theirs in (
        (softmax, special.softmax),
        (log_softmax, special.log_softmax),
        (logsumexp, special.logsumexp),
    ):
        for axis in (0, 1):
            expected = theirs(LOGITS, axis=axis)
            np.testing.assert_allclose(mine(LOGITS, axis=axis), expected, rtol=1e-13, atol=1e-15)
            under_torch = mine(torch.from_numpy(LOGITS), axis=axis).numpy()
            np.testing.assert_allclose(under_torch, expected, rtol=1e-13, atol=1e-15)


def test_an_impossible_class_has_no_probability():
    logits = np.array([[0.0, -np.inf, 1.0]])
    assert softmax(logits)[0, 1] == 0
    assert log_softmax(logits)[0, 1] == -np.inf
    assert log_probs_and_complements(logits)[1][0, 1] == 0


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_logarithms_of_complements_hold_where_floats_end(library):
    log_p, log_not_p = (np.asarray(part) for part in log_probs_and_complements(library(LOGITS)))
    with mpmath.workdps(400):
        for row, logits in enumerate(LOGITS[:10]):
            odds = [mpmath.exp(z) for z in logits]
            for column, own in enumerate(odds):
                p = own / mpmath.fsum(odds)
                assert log_p[row, column] == pytest.approx(float(mpmath.log(p)), rel=1e-13)
                assert log_not_p[row, column] == pytest.approx(float(mpmath.log(1 - p)), rel=1e-12)
