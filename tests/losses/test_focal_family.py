"""Cross-entropy, focal, Brier and FCL: identities, exactness, and three engines that agree."""

from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from references import exact
from references.gradients import value_and_gradient
from support.engines import COMPUTED, ENGINES

from focalcal.losses import CrossEntropyLoss, FocalCalibrationLoss, functional
from focalcal.losses.engines import focal_family
from focalcal.losses.formula import Terms

GAMMAS = [0.0, 0.3, 0.5, 1.0, 2.0, 2.5, 3.0, 5.0]


# ---- identities ----


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", [(128, 10), (7, 1000), (2, 5, 6, 7), (5, 1), (3, 2)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_gamma_and_lam_zero_is_cross_entropy(engine, shape, weighted, reduction):
    logits = 3 * torch.randn(shape)
    target = torch.randint(0, shape[1], (shape[0], *shape[2:]))
    target.view(-1)[::5] = -100
    weight = torch.rand(shape[1]) + 0.1 if weighted else None
    loss = FocalCalibrationLoss(gamma=0, lam=0, weight=weight, reduction=reduction)
    loss.engine = engine
    leaf, twin = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    value, reference = loss(leaf, target), F.cross_entropy(twin, target, weight, reduction=reduction)
    torch.testing.assert_close(value, reference)
    value.sum().backward()
    reference.sum().backward()
    torch.testing.assert_close(leaf.grad, twin.grad)


def test_each_function_is_its_definition():
    logits, labels = 2 * torch.randn(30, 5, dtype=torch.float64), torch.randint(0, 5, (30,))
    p = logits.softmax(1)
    own = p.gather(1, labels[:, None]).squeeze(1)
    anchor = (p - F.one_hot(labels, 5)).square().sum(1)
    torch.testing.assert_close(functional.cross_entropy(logits, labels), -own.log())
    torch.testing.assert_close(functional.brier(logits, labels), anchor)
    torch.testing.assert_close(functional.focal(logits, labels, gamma=2.5), -((1 - own) ** 2.5) * own.log())
    torch.testing.assert_close(
        functional.focal_calibration(logits, labels, gamma=0.5, lam=3.0),
        -((1 - own) ** 0.5) * own.log() + 3 * anchor,
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("terms", [Terms(1.0, 2.0, 0.7), Terms(1.0, 0.5, 0.0), Terms(0.0, 0.0, 1.0)], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_of_a_mean_over_pixels_is_the_weighted_mean_of_theirs(engine, terms, weighted):
    logits, labels = 3 * torch.randn(3, 5, 4, dtype=torch.float64), torch.randint(0, 5, (3, 4))
    labels[1] = -100
    weight = torch.rand(5, dtype=torch.float64) + 0.1 if weighted else None
    options = {"weight": weight, "ignore_index": -100, "reduction": "mean"}
    value, gradient = value_and_gradient(logits, labels, terms, engine, **options)

    kept = labels != -100
    each, own = value_and_gradient(logits.movedim(1, -1)[kept], labels[kept], terms, engine, reduction="none")
    share = torch.ones_like(each) if weight is None else weight[labels[kept]]
    share = share / share.sum()
    torch.testing.assert_close(value, (share * each).sum())
    torch.testing.assert_close(gradient.movedim(1, -1)[kept], share[:, None] * own)
    assert (gradient.movedim(1, -1)[~kept] == 0).all()


# ---- exactness ----


LEADS = (0.0, 0.5, 1, 2, 4, 8, 12, 16, 17, 18, 20, 24, 30, 40, 50, 60)
LAGS = (-8, -12, -16, -17, -18, -20, -24, -30, -40, -50, -60)


def led_by(leads):
    """Rows of nine float32 logits whose label leads the best other class by so much, and the labels."""
    rng = np.random.default_rng(3)
    logits, labels = [], []
    for lead in leads:
        for spread in (0.5, 5.0):
            row = spread * rng.standard_normal(9)
            label = int(rng.integers(9))
            row[label] = max(v for k, v in enumerate(row) if k != label) + lead
            logits.append(row + 10 * rng.standard_normal())
            labels.append(label)
    return torch.tensor(np.array(logits), dtype=torch.float32), torch.tensor(labels)


@pytest.mark.parametrize(
    ("leads", "terms"),
    [(LEADS, Terms(1.0, gamma, lam)) for gamma in GAMMAS for lam in (0.0, 1.0)]
    + [(LAGS, Terms(1.0, 3.0, 0.2)), (LAGS, Terms(1.0, 0.5, 0.0)), (LAGS, Terms(0.0, 0.0, 1.0))]
    + [(LEADS, Terms(0.0, 0.0, 1.0))],
    ids=str,
)
def test_float32_gradients_are_right_in_every_entry_up_to_a_lead_of_60(leads, terms):
    """Against 50 digits, relative to each entry: an absolute test would pass a formula that cancels.

    Where another class leads, Brier alone too, whose gradient at the winning class is a small difference of large
    numbers. lam is below 1/2 beside a focal term there, or an entry could change sign, and no precision survives that.
    """
    z, labels = led_by(leads)
    rows = [
        exact.fcl(row, y, terms.gamma, terms.lam, terms.focal)
        for row, y in zip(z.tolist(), labels.tolist(), strict=True)
    ]
    losses, gradients = np.array([float(loss) for loss, _ in rows]), np.array([[*map(float, row)] for _, row in rows])
    smallest = 2.0**-126  # below, float32 has no relative precision, and the kernel flushes to zero
    for engine in ENGINES:
        value, grad = value_and_gradient(z, labels, terms, engine, reduction="none")
        np.testing.assert_allclose(value.double(), losses, rtol=1e-4, atol=4 * smallest, err_msg=engine)
        np.testing.assert_allclose(grad.double(), gradients, rtol=1e-4, atol=4 * smallest, err_msg=engine)


def test_float64_gradients_are_right_to_twelve_digits():
    z = 6 * torch.randn(12, 30, dtype=torch.float64)
    labels = z.argmax(1)
    gradients = [[*map(float, exact.fcl(row, int(np.argmax(row)), 2.5, 0.7)[1])] for row in z.tolist()]
    for engine in ENGINES:
        _, grad = value_and_gradient(z, labels, Terms(1.0, 2.5, 0.7), engine, reduction="sum")
        np.testing.assert_allclose(grad, gradients, rtol=1e-12, atol=0, err_msg=engine)


@pytest.mark.parametrize("engine", COMPUTED)
def test_second_derivatives_with_weights(engine):
    z = torch.randn(4, 3, dtype=torch.float64).requires_grad_()
    weight = torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64)
    options = {"target": torch.tensor([0, 1, 2, 0]), "terms": Terms(1.0, 2.0, 0.7), "weight": weight}
    assert torch.autograd.gradgradcheck(partial(focal_family, engine=engine, **options), (z,))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("gamma", [0.0, 0.5, 3.0])
def test_p_exactly_one_and_exactly_zero(engine, gamma):
    z = torch.tensor([[1e4, -1e4, 0.0], [-1e4, 1e4, 0.0]])
    value, grad = value_and_gradient(
        z, torch.zeros(2, dtype=torch.long), Terms(1.0, gamma, 1.0), engine, reduction="none"
    )
    assert value[0] == 0.0  # p_y = 1: nothing to gain
    assert not grad[0].any()
    assert value[1] == 20002.0  # p_y = 0: 20,000 nats and the largest Brier score
    torch.testing.assert_close(grad[1], torch.tensor([-1.0, 1.0, 0.0]))


@given(
    gamma=st.floats(0, 8),
    lam=st.floats(0, 50),
    scale=st.floats(0, 200),
    shift=st.floats(-1e3, 1e3),
    seed=st.integers(0, 10**6),
)
def test_finite_bounded_and_agreed_upon_for_any_hyper_parameters(gamma, lam, scale, shift, seed):
    generator = torch.Generator().manual_seed(seed)
    z = (scale * torch.randn(4, 6, generator=generator) + shift).double()
    labels = torch.randint(0, 6, (4,), generator=generator)
    terms = Terms(1.0, gamma, lam)
    results = [value_and_gradient(z, labels, terms, engine, reduction="none") for engine in ENGINES]
    for value, grad in results:
        assert (value >= 0).all()
        assert torch.isfinite(grad).all()
        torch.testing.assert_close(value, results[0][0], rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(grad, results[0][1], rtol=1e-7, atol=1e-10 * (1 + lam))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("terms", [Terms(1.0, 2.0, 1.0), Terms(), Terms(0.0, 0.0, 1.0)], ids=str)
@pytest.mark.parametrize("classes", [3, 70])
def test_nan_and_infinity_reach_what_cross_entropy_would_spoil(engine, terms, classes):
    inf, nan = torch.inf, torch.nan
    rows = [[nan, 1.0, 2.0], [inf, 1.0, 2.0], [1.0, inf, 2.0], [-inf, 1.0, 2.0], [-inf] * 3, [0.0, -inf, -inf]]
    z = torch.tensor(rows).repeat(5, 1)  # so that every lane of a vector meets one
    z = torch.cat([z, torch.full((len(z), classes - 3), -inf)], 1)
    labels = torch.zeros(len(z), dtype=torch.long)
    twin = z.clone().requires_grad_()
    reference = F.cross_entropy(twin, labels, reduction="none")
    reference.sum().backward()
    value, grad = value_and_gradient(z, labels, terms, engine, reduction="none")
    assert torch.equal(value.isnan(), reference.isnan())
    if terms.focal:  # the Brier score is bounded
        assert torch.equal(value == inf, reference == inf)
    spoilt = twin.grad.isnan()
    assert torch.equal(grad.isnan().any(1), spoilt.any(1))
    if engine != "formula":
        assert torch.equal(grad.isnan(), spoilt)


# ---- targets ----


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_any_integer_labels(dtype):
    z, labels = torch.randn(6, 4), torch.randint(0, 4, (6,))
    torch.testing.assert_close(FocalCalibrationLoss()(z, labels.to(dtype)), FocalCalibrationLoss()(z, labels))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_batch_of_no_examples_has_no_losses(engine):
    logits, labels = torch.empty(0, 3), torch.empty(0, dtype=torch.long)
    for ignore_index in (None, -100):
        options = {"ignore_index": ignore_index, "reduction": "none"}
        value, gradient = value_and_gradient(logits, labels, Terms(1.0, 2.0, 0.7), engine, **options)
        assert value.shape == (0,)
        assert gradient.shape == (0, 3)


def test_a_one_hot_soft_target_keeps_the_precision_of_a_label():
    z = torch.tensor([[25.0, 0.0, -3.0, 1.0]], requires_grad=True)
    soft = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    (grad,) = torch.autograd.grad(FocalCalibrationLoss(0.5, 1.0)(z, soft), z)
    _, want = exact.fcl(z[0].tolist(), 0, 0.5, 1.0)
    for got, value in zip(grad[0].tolist(), want, strict=True):
        assert got == pytest.approx(float(value), rel=1e-4)


def test_the_gradient_in_a_soft_target_is_the_loss_of_its_class():
    z = torch.randn(3, 4, dtype=torch.float64)
    soft = torch.tensor([[0.7, 0.3, 0.0, 0.0]] * 3, dtype=torch.float64, requires_grad=True)
    loss = FocalCalibrationLoss(2.0, 1.0, reduction="sum")
    (grad,) = torch.autograd.grad(loss(z, soft), soft)
    for k in range(4):
        torch.testing.assert_close(grad[:, k], functional.focal_calibration(z, torch.full((3,), k), gamma=2.0, lam=1.0))


def test_a_masked_class_without_target_mass_does_no_harm():
    z = torch.tensor([[2.0, 0.0, -torch.inf]], requires_grad=True)
    value = FocalCalibrationLoss()(z, torch.tensor([[0.7, 0.3, 0.0]]))
    value.backward()
    smaller = FocalCalibrationLoss()(z[:, :2].detach(), torch.tensor([[0.7, 0.3]]))
    torch.testing.assert_close(value, smaller)
    assert torch.isfinite(z.grad).all()


# ---- use ----


def test_hyper_parameters_can_be_scheduled():
    loss = FocalCalibrationLoss(3, 1)
    z, labels = torch.randn(6, 4), torch.randint(0, 4, (6,))
    loss.gamma, loss.lam = 0, 0
    torch.testing.assert_close(loss(z, labels), CrossEntropyLoss()(z, labels))


def test_real_networks_saturated_rows_included(data_folder):
    """The published ResNets' CIFAR-10 test logits: float32 engines against the formula in float64."""
    stored = np.load(data_folder / "logits" / "cifar10_test_logits_akamaster_resnets.npz")
    labels = torch.from_numpy(stored["labels"]).long()
    for name in ("resnet20", "resnet56"):
        z = torch.from_numpy(stored[name]).float()
        torch.testing.assert_close(CrossEntropyLoss()(z, labels), F.cross_entropy(z, labels))
        terms = Terms(1.0, 3.0, 1.0)
        value, grad = value_and_gradient(z.double(), labels, terms, "formula", reduction="sum")
        for engine in COMPUTED:
            single, single_grad = value_and_gradient(z, labels, terms, engine, reduction="sum")
            torch.testing.assert_close(single.double(), value, rtol=1e-5, atol=0)
            leading = z.gather(1, labels[:, None]).squeeze(1) == z.amax(1)  # where the gradient has no zero
            error = (single_grad.double() - grad).abs() / grad.abs().clamp(min=1e-30)
            assert error[leading].max() < 1e-4


def test_an_engine_that_cannot_serve_says_so():
    with pytest.raises(ValueError, match="engine='native' needs the compiled kernel"):
        focal_family(torch.zeros(4, 3).half(), torch.zeros(4, dtype=torch.long), Terms(), engine="native")
