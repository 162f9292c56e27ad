import math

import numpy as np
import pytest
import torch
from support.engines import ENGINES

from focalcal.losses import AdaFocalLoss, FocalLoss
from focalcal.losses.functional import adafocal
from focalcal.predictions import Predictions


def two_bins(gammas):
    return {"edges": torch.tensor([0.0, 0.5, 1.0]), "gammas": torch.tensor(gammas)}


def probabilities(confidence, classes=3):
    """Rows whose first class has the given confidence, the rest shared evenly."""
    confidence = torch.as_tensor(confidence, dtype=torch.float64)
    rest = ((1 - confidence) / (classes - 1)).unsqueeze(1).expand(-1, classes - 1)
    return torch.cat([confidence.unsqueeze(1), rest], 1)


def test_starts_as_focal_with_equal_bins():
    loss = AdaFocalLoss(gamma_init=1.0)
    z, labels = torch.randn(20, 5, dtype=torch.float64), torch.randint(0, 5, (20,))
    torch.testing.assert_close(loss(z, labels), FocalLoss(1)(z, labels))
    assert loss.gammas.tolist() == [1.0] * 15
    torch.testing.assert_close(loss.edges, torch.arange(16) / 15)


def test_each_example_takes_the_gamma_of_its_own_probability():
    # p_y = 0.5 exactly belongs to the upper bin: training bins are [lo, hi)
    z = torch.tensor([[0.0, 2.0], [2.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    labels = torch.zeros(3, dtype=torch.long)
    p = z.softmax(1)[:, 0]
    each = adafocal(z, labels, **two_bins([3.0, -2.0]))
    torch.testing.assert_close(each[0], -((1 - p[0]) ** 3) * p[0].log())
    torch.testing.assert_close(each[1:], -((1 + p[1:]) ** 2) * p[1:].log())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("gamma", [-20.0, -2.0, -0.2, 0.0, 0.2, 20.0])
def test_engines_agree_on_both_signs(engine, gamma):
    loss = AdaFocalLoss(bins=3)
    loss.gammas.copy_(torch.tensor([gamma, 1.0, gamma]))
    z = (3 * torch.randn(40, 6, dtype=torch.float64)).requires_grad_()
    labels = torch.randint(0, 6, (40,))
    loss.engine = "formula"
    expected = torch.autograd.grad(loss(z, labels), z)[0]
    loss.engine = engine
    torch.testing.assert_close(torch.autograd.grad(loss(z, labels), z)[0], expected)


def test_update_follows_the_published_rule():
    """Steps 1 to 4 of the method, written out with NumPy."""
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.4, 1.0, 300)
    right = rng.uniform(size=300) < confidence**2  # over-confident
    loss = AdaFocalLoss(bins=5)
    loss.gammas.copy_(torch.tensor([1.0, -1.0, 0.21, -0.21, 19.9]))
    loss.update(probabilities(confidence), torch.as_tensor(np.where(right, 0, 1)))
    edges = np.interp(np.linspace(0, 300, 6), np.arange(300), np.sort(confidence))
    bins = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, 4)
    for b, gamma in enumerate(np.array([1.0, -1.0, 0.21, -0.21, 19.9], dtype=np.float32).astype(float)):
        gap = confidence[bins == b].mean() - right[bins == b].mean()
        moved = gamma * math.exp(gap if gamma > 0 else -gap)
        if abs(moved) < 0.2:
            moved = math.copysign(0.2, -moved)
        assert loss.gammas[b].item() == pytest.approx(np.clip(moved, -20, 20), rel=1e-6)
    torch.testing.assert_close(loss.edges.double(), torch.as_tensor(edges), rtol=1e-6, atol=1e-7)


def test_overconfidence_raises_gamma_and_underconfidence_turns_it_round():
    wrong = torch.ones(90, dtype=torch.long)
    loss = AdaFocalLoss(bins=3, gamma_max=4.0)
    for _ in range(30):
        loss.update(probabilities([0.9] * 90), wrong)
    assert loss.gammas.max() == 4.0  # the limit holds
    timid = AdaFocalLoss(bins=1, gamma_min=-3.0)
    history = []
    for _ in range(60):
        timid.update(probabilities([0.4] * 90), torch.zeros(90, dtype=torch.long))  # always right, 40 % sure
        history.append(timid.gammas.item())
    assert history[0] > 0 > history[-1]
    assert history[-1] == -3.0
    assert all(abs(g) >= 0.2 - 1e-6 for g in history)  # it jumps over the neighbourhood of zero


def test_state_survives_a_checkpoint():
    loss = AdaFocalLoss(bins=4)
    loss.update(torch.randn(200, 6).softmax(1), torch.randint(0, 6, (200,)))
    twin = AdaFocalLoss(bins=4)
    twin.load_state_dict(loss.state_dict())
    z, labels = torch.randn(10, 6), torch.randint(0, 6, (10,))
    assert torch.equal(twin.gammas, loss.gammas)
    assert torch.equal(twin.edges, loss.edges)
    assert twin(z, labels) == loss(z, labels) != AdaFocalLoss(bins=4)(z, labels)


def test_update_takes_images_and_ignores_labels():
    loss, flat = AdaFocalLoss(bins=3), AdaFocalLoss(bins=3)
    probs, labels = torch.randn(4, 5, 6, 6).softmax(1), torch.randint(0, 5, (4, 6, 6))
    labels[:, 0] = -100
    loss.update(probs, labels)
    keep = labels.flatten() != -100
    flat.update(probs.movedim(1, -1).reshape(-1, 5)[keep], labels.flatten()[keep])
    torch.testing.assert_close(loss.gammas, flat.gammas)


@pytest.mark.parametrize(
    ("probs", "labels", "message"),
    [
        (torch.randn(4, 3), torch.zeros(4, dtype=torch.long), "pass softmax"),
        (torch.full((4, 3), torch.nan), torch.zeros(4, dtype=torch.long), "probs must be finite"),
        (torch.full((4, 3), 1 / 3), torch.full((4,), 3), "from 0 to 2"),
        (torch.full((4, 3), 1 / 3), torch.full((4,), -100), "not ignored"),
        (torch.full((4, 3), 1 / 3), torch.zeros(5, dtype=torch.long), "shape"),
    ],
)
def test_update_refuses_what_is_not_a_prediction(probs, labels, message):
    loss = AdaFocalLoss()
    with pytest.raises(ValueError, match=message):
        loss.update(probs, labels)
    assert loss.gammas.tolist() == [1.0] * 15


def test_update_refuses_class_probabilities_for_labels():
    probs = torch.full((4, 3), 1 / 3)
    with pytest.raises(TypeError, match=r"target of AdaFocalLoss\.update must hold class indices"):
        AdaFocalLoss().update(probs, probs)


def test_update_does_not_look_at_ignored_rows():
    probs, labels = torch.randn(50, 3).softmax(1), torch.randint(0, 3, (50,))
    probs[7], labels[7] = torch.nan, -100
    loss = AdaFocalLoss(bins=3)
    loss.update(probs, labels)
    assert torch.isfinite(loss.gammas).all()


def test_update_takes_logits_too():
    logits, labels = 3 * torch.randn(200, 5), torch.randint(0, 5, (200,))
    logits[::7, 2] = -torch.inf  # a masked class
    by_probs, by_logits = AdaFocalLoss(), AdaFocalLoss()
    by_probs.update(logits.softmax(1), labels)
    by_logits.update(logits=logits, labels=labels)
    torch.testing.assert_close(by_logits.gammas, by_probs.gammas)
    torch.testing.assert_close(by_logits.edges, by_probs.edges)
    for arguments in ({"labels": labels}, {"logits": logits}, {"probs": logits, "logits": logits, "labels": labels}):
        with pytest.raises(TypeError, match="update must be given labels and either probs or logits"):
            by_logits.update(**arguments)
    with pytest.raises(ValueError, match="logits must be finite, got nan in row 3"):
        by_logits.update(logits=logits.index_put((torch.tensor(3),), torch.tensor(torch.nan)), labels=labels)


def test_steps_may_be_lists_and_must_fit():
    z, labels = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    expected = adafocal(z, labels, **two_bins([2.0, 1.0]))
    torch.testing.assert_close(adafocal(z, labels, edges=[0, 0.5, 1], gammas=np.array([2, 1])), expected)
    for edges, gammas, error, message in (
        ([0, 1], [1, 2], ValueError, "edges must have one entry more than gammas"),
        ([0.0, 1.0, 0.5], [1, 1], ValueError, "edges must not fall"),
        ([0, 1], None, TypeError, "gammas must be a tensor, an array or a list of numbers, got None"),
        ([0, 1], 2.0, ValueError, "gammas must have one dimension"),
    ):
        with pytest.raises(error, match=message):
            adafocal(z, labels, edges=edges, gammas=gammas)


def test_update_takes_the_arrays_that_predictions_hold():
    logits, labels = torch.randn(200, 4, dtype=torch.float64), torch.randint(4, (200,))
    of_arrays, of_tensors = AdaFocalLoss(), AdaFocalLoss()
    held_out = Predictions(logits=logits, labels=labels, split="val")
    of_arrays.update(logits=held_out.logits, labels=held_out.labels)
    of_tensors.update(logits=logits, labels=labels)
    assert of_arrays.gammas.tolist() == of_tensors.gammas.tolist()
