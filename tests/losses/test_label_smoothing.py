import pytest
import torch
import torch.nn.functional as F
from support.engines import ENGINES

from focalcal.losses import LOSSES, CrossEntropyLoss, FocalCalibrationLoss, LabelSmoothingLoss, functional
from focalcal.losses.functional import label_smoothing

TAKES_LABEL_SMOOTHING = ["ce", "focal", "brier", "fcl"]


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3])
def test_others_is_cross_entropy_with_the_literatures_target(epsilon):
    z, labels = torch.randn(9, 6, dtype=torch.float64), torch.randint(0, 6, (9,))
    target = torch.full((9, 6), epsilon / 5, dtype=torch.float64).scatter_(1, labels[:, None], 1 - epsilon)
    expected = F.cross_entropy(z, target, reduction="none")
    torch.testing.assert_close(label_smoothing(z, labels, epsilon=epsilon), expected)
    torch.testing.assert_close(LabelSmoothingLoss(epsilon)(z, labels), expected.mean())


@pytest.mark.parametrize("shape", [(40, 7), (40, 300), (2, 7, 5, 9)])
def test_the_kernel_agrees_with_torch(shape):
    z = (3 * torch.randn(shape, dtype=torch.float64)).requires_grad_()
    labels = torch.randint(0, shape[1], (shape[0], *shape[2:]))
    ours, reference = LabelSmoothingLoss(0.2, "all")(z, labels), F.cross_entropy(z, labels, label_smoothing=0.2)
    torch.testing.assert_close(ours, reference)
    torch.testing.assert_close(torch.autograd.grad(ours, z)[0], torch.autograd.grad(reference, z)[0])


def test_all_is_torchs():
    z, labels = torch.randn(9, 6), torch.randint(0, 6, (9,))
    weight = torch.rand(6)
    ours = LabelSmoothingLoss(0.1, "all", weight=weight)(z, labels)
    torch.testing.assert_close(ours, F.cross_entropy(z, labels, weight, label_smoothing=0.1))


def test_half_precision_is_smoothed_in_single():
    z, labels = torch.randn(9, 6).half(), torch.randint(0, 6, (9,))
    expected = F.cross_entropy(z.float(), labels, label_smoothing=0.1, reduction="none")
    torch.testing.assert_close(functional.cross_entropy(z, labels, label_smoothing=0.1), expected)


def test_what_only_label_smoothing_refuses():
    logits, labels = torch.zeros(3, 2), torch.zeros(3, dtype=torch.long)
    with pytest.raises(ValueError, match="spread must be one of 'others', 'all', got 'foo'"):
        label_smoothing(logits, labels, spread="foo")
    with pytest.raises(ValueError, match=r"epsilon must be finite and >= 0, got -0\.1"):
        label_smoothing(logits, labels, epsilon=-0.1)
    with pytest.raises(ValueError, match=r"at most \(K - 1\) / K = 0.5 for K = 2"):
        LabelSmoothingLoss(0.6)(logits, labels)
    with pytest.raises(ValueError, match="K = 1"):
        LabelSmoothingLoss()(logits[:, :1], labels)


# ---- label_smoothing= of the other losses ----


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(40, 7), (2, 5, 4, 3), (6,)])
def test_a_drop_in_for_cross_entropy(engine, weighted, reduction, shape):
    classes = shape[1] if len(shape) > 1 else shape[0]
    weight = torch.rand(classes) + 0.1 if weighted else None
    labels = torch.randint(0, classes, (shape[0], *shape[2:]) if len(shape) > 1 else ())
    if len(shape) > 1:
        labels.view(-1)[::5] = -100
    for target in (labels, torch.randn(shape).softmax(1 if len(shape) > 1 else 0)):
        logits = (3 * torch.randn(shape)).requires_grad_()
        expected = F.cross_entropy(logits, target, weight, reduction=reduction, label_smoothing=0.15)
        (gradient,) = torch.autograd.grad(expected.sum(), logits)
        for loss in (FocalCalibrationLoss(0, 0, label_smoothing=0.15), CrossEntropyLoss(label_smoothing=0.15)):
            loss.engine, loss.reduction, loss.weight = engine, reduction, weight
            value = loss(logits, target)
            torch.testing.assert_close(value, expected)
            torch.testing.assert_close(torch.autograd.grad(value.sum(), logits)[0], gradient)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", TAKES_LABEL_SMOOTHING)
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_expectation_over_the_smoothed_label(engine, name, weighted):
    """Class probabilities that were smoothed by hand give the same, on every engine and with a weight."""
    logits, labels = torch.randn(9, 6, dtype=torch.float64), torch.randint(0, 6, (9,))
    weight = torch.rand(6) if weighted else None
    by_hand = 0.8 * F.one_hot(labels, 6).double() + 0.2 / 6
    smooth = LOSSES[name](label_smoothing=0.2, weight=weight, reduction="none")
    smooth.engine = engine
    torch.testing.assert_close(smooth(logits, labels), LOSSES[name](weight=weight, reduction="none")(logits, by_hand))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_between_the_loss_and_its_mean_over_all_labels(share):
    logits, labels = torch.randn(9, 6, dtype=torch.float64), torch.randint(0, 6, (9,))
    options = {"gamma": 2.5, "lam": 1.5, "scale": "matched"}
    every = [functional.focal_calibration(logits, torch.full((9,), k), **options) for k in range(6)]
    expected = (1 - share) * functional.focal_calibration(logits, labels, **options) + share * sum(every) / 6
    smooth = functional.focal_calibration(logits, labels, **options, label_smoothing=share)
    torch.testing.assert_close(smooth, expected)
