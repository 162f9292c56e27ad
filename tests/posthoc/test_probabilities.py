"""Probabilities are no logits: every calibrator refuses them as such, and takes them by their name."""

import numpy as np
import pytest
import torch
from references.golden import single_label
from sklearn.base import clone

from focalcal.core.checks import ProbabilityWarning
from focalcal.posthoc import CALIBRATORS, PosteriorRecovery, TemperatureScaling, VectorScaling, split_half

LOGITS, LABELS = single_label()
LOGITS, LABELS = 1.5 * LOGITS[:300, :4], LABELS[:300] % 4
PROBS = LOGITS.softmax(1)
REFUSED = (
    r"logits must not be probabilities, got 300 row\(s\) .*; pass probs=\.\.\. instead, or log\(probs\)\. If .* - 1"
)
every = pytest.mark.parametrize("name", CALIBRATORS)


@every
def test_probabilities_are_refused_as_logits(name):
    calibrator = CALIBRATORS[name]()
    for given in (PROBS, PROBS.float(), PROBS.half(), PROBS.numpy().round(4), PROBS.tolist()):
        with pytest.raises(ValueError, match=REFUSED):
            calibrator.fit(given, LABELS)
    calibrator.fit(LOGITS, LABELS)
    for use in (calibrator.predict_proba, calibrator.predict, lambda p: calibrator.score(p, LABELS)):
        with pytest.raises(ValueError, match=REFUSED):
            use(PROBS)
    with pytest.raises(ValueError, match=REFUSED):
        split_half(PROBS, LABELS, calibrator)


@every
def test_probabilities_have_a_name_of_their_own(name):
    """softmax sees no more of logits than of log p, so both give one map, in the kind and dtype of what was given."""
    by_logits, by_probs = (CALIBRATORS[name]() for _ in range(2))
    by_logits.fit(LOGITS, LABELS)
    assert by_probs.fit(probs=PROBS, labels=LABELS) is by_probs
    expected = by_logits.predict_proba(LOGITS)
    torch.testing.assert_close(by_probs.predict_proba(probs=PROBS), expected, atol=2e-6, rtol=0)
    torch.testing.assert_close(by_probs.predict_proba(LOGITS), expected, atol=2e-6, rtol=0)
    assert torch.equal(by_probs.predict(probs=PROBS), by_probs.predict_proba(probs=PROBS).argmax(1))
    assert by_probs.score(probs=PROBS, labels=LABELS) == pytest.approx(by_logits.score(LOGITS, LABELS))
    single = by_probs.predict_proba(probs=PROBS.float().numpy())
    assert isinstance(single, np.ndarray)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected.numpy(), atol=1e-5)
    assert clone(by_probs).get_params() == by_probs.get_params()


@every
def test_rows_that_are_neither(name):
    calibrator = CALIBRATORS[name]()
    with pytest.raises(ValueError, match=r"probs must be probabilities: .* got a sum of \S+ in row 0; pass softmax"):
        calibrator.fit(probs=LOGITS, labels=LABELS)
    with pytest.raises(TypeError, match="give logits or probs=, got both"):
        calibrator.fit(LOGITS, LABELS, probs=PROBS)
    with pytest.raises(ValueError, match="labels must be given, got None"):
        calibrator.fit(probs=PROBS)
    calibrator.fit(probs=PROBS, labels=LABELS)
    with pytest.raises(ValueError, match=r"probs must have as many columns .* X has 3 features"):
        calibrator.predict_proba(probs=torch.full((2, 3), 1 / 3))


def test_zeros_are_clipped_and_counted():
    scaling = TemperatureScaling().fit(LOGITS, LABELS)
    probs = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0], [0.25] * 4], dtype=torch.float64)
    for dtype, smallest in ((torch.float64, 5e-324), (torch.float32, 2**-149), (torch.float16, 2**-24)):
        message = f"probs has 5 entries of 0, in 2 of 3 rows, whose logarithm is taken at {smallest:.2g}, "
        with pytest.warns(ProbabilityWarning, match=message) as caught:
            found = scaling.predict_proba(probs=probs.to(dtype))
        assert [one.filename for one in caught] == [__file__]
        expected = scaling.predict_proba(torch.from_numpy(np.log(probs.clamp(min=smallest).numpy())))
        torch.testing.assert_close(found.double(), expected, atol=1e-7, rtol=1e-6)
    some = PROBS.clone()
    some[0, (LABELS[0] + 1) % 4] = 0
    some[0] /= some[0].sum()
    with pytest.warns(ProbabilityWarning, match="1 entries of 0"):
        refitted = TemperatureScaling().fit(probs=some, labels=LABELS)
    assert refitted.temperature_ == pytest.approx(scaling.temperature_, rel=0.01)  # no label's probability is 0


def test_small_positive_entries_keep_their_digits():
    """Those below the smallest normal number, too: nothing but a zero is changed."""
    probs = torch.tensor([[1.0, 1e-310], [1e-310, 1.0], [0.5, 0.5]], dtype=torch.float64)
    found = PosteriorRecovery(gamma=0.0, lam=1.0).predict_proba(probs=probs)
    torch.testing.assert_close(found, probs, atol=0, rtol=1e-9)


def test_a_single_row_and_logits_that_look_like_probabilities():
    """A row of logits can be >= 0 and sum to one by accident, so one alone is taken, audibly; and a constant helps."""
    scaling = TemperatureScaling().fit(LOGITS[:, :2], LABELS % 2)
    row = np.array([[1.0, 0.0]])
    with pytest.warns(ProbabilityWarning, match=r"got 1 row\(s\) .* A single row is taken as logits") as caught:
        taken = scaling.predict_proba(row)
    assert caught[0].filename == __file__
    np.testing.assert_allclose(taken, scaling.predict_proba(row - 1), atol=1e-15)
    one_hot = np.eye(2)[LABELS % 2]
    with pytest.raises(ValueError, match="logits must not be probabilities"):
        VectorScaling(bias_l2=0.1).fit(one_hot, LABELS % 2)
    noisy = np.eye(2)[(LABELS.numpy() + (np.arange(300) % 9 == 0)) % 2]
    VectorScaling(bias_l2=0.1).fit(noisy - 1, LABELS % 2)


def test_rounded_probabilities_are_mentioned_once_in_a_split_half():
    with pytest.warns(ProbabilityWarning, match="miss a sum of 1") as caught:
        split_half(probs=PROBS.numpy().clip(1e-4).round(4), labels=LABELS, calibrator=TemperatureScaling())
    assert len(caught) == 1
