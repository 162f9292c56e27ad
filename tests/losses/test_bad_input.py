"""Wrong arguments raise before anything is computed, and say what to do."""

import numpy as np
import pytest
import torch
from support.engines import ENGINES
from torch.nn import functional as F

from focalcal.losses import LOSSES, FocalCalibrationLoss, FocalLoss, functional
from focalcal.losses.engines import focal_family

SINGLE = sorted(name for name in LOSSES if not name.startswith("multilabel"))
Z = torch.randn(4, 3)
Y = torch.tensor([0, 1, 2, 0])


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("name", SINGLE)
def test_every_loss_checks_what_it_is_given(name):
    """Each rule is tested once, on one loss, below."""
    loss = LOSSES[name]()
    for label in (3, -1, 10**12, -(2**63)):
        with pytest.raises(ValueError, match=rf"0 to 2 or ignore_index = -100, got {label} at flat position 1"):
            loss(Z, torch.tensor([0, label, 2, 0]))
    with pytest.raises(ValueError, match=r"target must have shape \(4,\) for class indices"):
        loss(Z, Y[:3])
    with pytest.raises(TypeError, match="logits must be floating point"):
        loss(Z.long(), Y)
    for unread, message in ((Z.to_sparse(), "torch.sparse_coo"), (torch.nested.nested_tensor([Z[0], Z[1]]), "nested")):
        with pytest.raises(TypeError, match=f"logits must be a dense tensor, got .*{message}"):
            loss(unread, Y)
    with pytest.raises(TypeError, match=r"target must be a dense tensor, got torch.sparse_coo; use target.to_dense"):
        loss(Z, Y.to_sparse())
    with pytest.raises(ValueError, match="weight is on meta, without values"):
        LOSSES[name](weight=torch.ones(3, device="meta"))(Z, Y)
    with pytest.raises(ValueError, match=r"one entry per class, shape \(3,\), got \(2,\)"):
        LOSSES[name](weight=torch.ones(2))(Z, Y)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_label_out_of_range_on_every_engine(engine):
    loss = FocalCalibrationLoss()
    loss.engine = engine
    with pytest.raises(ValueError, match="got 7 at flat position 3"):
        loss(torch.randn(2, 5, 3), torch.tensor([[0, 1, 2], [7, 0, 0]]))


@pytest.mark.parametrize(
    ("logits", "target", "error", "message"),
    [
        (Z, Y[:, None], ValueError, r"got \(4, 1\)"),
        (Z, torch.zeros(4, 3, dtype=torch.long), ValueError, "indices drop the class dimension"),
        (torch.randn(4, 3, 5), Y, ValueError, r"shape \(4, 5\)"),
        (torch.randn(()), torch.tensor(0), ValueError, "logits must be .* got a scalar"),
        (torch.randn(4, 0), Y, ValueError, "at least one class"),
        (Z.long(), Y, TypeError, "logits must be floating point, got torch.int64; use logits.float()"),
        (torch.randn(4, 3, dtype=torch.complex64), Y, TypeError, "logits must be floating point"),
        (Z, Y.bool(), TypeError, "use target.long"),
        (Z.numpy(), Y, TypeError, "logits must be a torch.Tensor, got ndarray"),
        (Z, Y.tolist(), TypeError, "target must be a torch.Tensor, got list"),
        (Z, None, TypeError, "target must be a torch.Tensor, got NoneType"),
    ],
)
def test_wrong_shapes_and_types(logits, target, error, message):
    with pytest.raises(error, match=message):
        FocalCalibrationLoss()(logits, target)


@pytest.mark.parametrize("shape", [(4, 2), (4,), (4, 3, 2)])
def test_probabilities_of_another_shape(shape):
    with pytest.raises(ValueError, match="for class probabilities"):
        FocalCalibrationLoss()(Z, torch.rand(shape))


@pytest.mark.parametrize("name", ["ce", "focal", "brier", "ls", "fcl"])
def test_probabilities_that_are_none(name):
    rows = torch.tensor([[0.2, 0.8, 0.0]]).repeat(4, 1)
    for wrong, message in (
        ([1.0, 1.0, 1.0], "summing to 1 within 0.001 over the classes, got a sum of 3 in row 2; divide each row"),
        ([0.2, 0.5, 0.2981], "got a sum of 0.9981 in row 2"),
        ([1.0, 0.5, -0.5], "got -0.5 in row 2"),
    ):
        target = rows.index_put((torch.tensor(2),), torch.tensor(wrong))
        for dtype in (torch.float32, torch.float64):
            with pytest.raises(ValueError, match=message):
                LOSSES[name]()(Z, target.to(dtype))
    images = torch.full((4, 3, 2), 1 / 3)
    images[3, 0, 1] = 1.0
    with pytest.raises(ValueError, match=r"at position \(3, 1\)"):
        LOSSES[name]()(torch.randn(4, 3, 2), images)


@pytest.mark.parametrize("name", ["fcl", "ls"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_rounded_probabilities_are_taken(name, dtype):
    target = torch.tensor([[0.998, 0.002, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.3333, 0.3333, 0.3333]]).to(dtype)
    assert torch.isfinite(LOSSES[name]()(Z[:3], target))
    target[1, 0] = torch.nan  # propagates, as in F.cross_entropy
    assert torch.isnan(LOSSES[name]()(Z[:3], target))


def test_a_target_of_zeros_ignores_its_example():
    target = torch.tensor([[0.2, 0.3, 0.5], [0.0, 0.0, 0.0]])
    for name in ("ce", "focal", "brier", "fcl"):
        each = LOSSES[name](reduction="none")(Z[:2], target)
        assert each[1] == 0
        assert each[0] > 0
    torch.testing.assert_close(LOSSES["ce"]()(Z[:2], target), F.cross_entropy(Z[:2], target))


@pytest.mark.parametrize("name", ["ce", "focal", "brier", "ls", "fcl"])
def test_one_dimension_of_logits_is_one_example(name):
    loss, logits = LOSSES[name](), torch.randn(5)
    for target in (torch.tensor([0.0, 1.0, 1.0, 0.0, 1.0]), torch.zeros(5)):
        with pytest.raises(
            ValueError, match=r"one example with 5 classes; for 5 examples pass logits of shape \(5, K\)"
        ):
            loss(logits, target)
    with pytest.raises(ValueError, match=r"got \(5,\); such logits are one example with 5 classes, and 5 examples are"):
        loss(logits, torch.tensor([0, 1, 1, 0, 1]))
    for target in (torch.tensor([0.0, 0.25, 0.75, 0.0, 0.0]), torch.tensor(2)):
        torch.testing.assert_close(loss(logits, target), loss(logits[None], target[None]))


@pytest.mark.parametrize("name", ["focal", "fcl", "dual_focal", "multilabel_focal", "multilabel_fcl"])
def test_gamma_must_be_finite_and_not_negative(name):
    for gamma in (-1, -1e-9, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="gamma must be finite and >= 0, got"):
            LOSSES[name](gamma=gamma)


@pytest.mark.parametrize("name", ["mmce", "fcl", "multilabel_fcl"])
def test_lam_must_be_finite_and_not_negative(name):
    for lam in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="lam must be finite and >= 0, got"):
            LOSSES[name](lam=lam)


def test_hyper_parameters_must_be_numbers():
    with pytest.raises(TypeError, match="gamma must be a number, got 'three' of type str; pass a float"):
        FocalLoss("three")
    for several in (torch.ones(2), np.ones(2)):
        with pytest.raises(TypeError, match="gamma must be one number, got"):
            FocalLoss(several)
    with pytest.raises(ValueError, match="gamma must be finite and >= 0, got 1000"):
        FocalLoss(10**400)


@pytest.mark.parametrize("weight", [[1, 2, 3], np.array([1.0, 2.0, 3.0]), np.array([1, 2, 3]), torch.tensor([1, 2, 3])])
def test_weights_may_be_lists_and_arrays(weight):
    expected = FocalLoss(weight=torch.tensor([1.0, 2.0, 3.0]))(Z, Y)
    torch.testing.assert_close(FocalLoss(weight=weight)(Z, Y), expected)


def test_the_label_to_ignore_is_a_whole_number():
    for wrong in (1.5, "1", None, 2**70):
        for loss in LOSSES.values():
            with pytest.raises(TypeError, match="ignore_index must be a whole number of 64 bits"):
                loss(ignore_index=wrong)
    with pytest.raises(TypeError, match=r"ignore_index must be a whole number of 64 bits or None, got 1\.5"):
        functional.mmce(Z, Y, ignore_index=1.5)


def test_the_steps_of_adafocal_may_be_lists_and_must_fit():
    expected = functional.adafocal(Z, Y, edges=torch.tensor([0.0, 0.5, 1.0]), gammas=torch.tensor([2.0, 1.0]))
    torch.testing.assert_close(functional.adafocal(Z, Y, edges=[0, 0.5, 1], gammas=np.array([2, 1])), expected)
    with pytest.raises(ValueError, match="edges must have one entry more than gammas"):
        functional.adafocal(Z, Y, edges=[0, 1], gammas=[1, 2])
    with pytest.raises(TypeError, match="gammas must be a tensor, an array or a list of numbers, got None"):
        functional.adafocal(Z, Y, edges=[0, 1], gammas=None)
    with pytest.raises(ValueError, match="gammas must have one dimension"):
        functional.adafocal(Z, Y, edges=[0, 1], gammas=2.0)


def test_reduction_must_be_known():
    for loss in LOSSES.values():
        with pytest.raises(ValueError, match="reduction must be one of 'mean', 'sum', 'none', got 'avg'"):
            loss(reduction="avg")


@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        (torch.tensor([1.0, 2.0j]), TypeError, "weight must hold real numbers, got torch.complex64"),
        (["heavy", "light"], TypeError, "weight must be a tensor, an array or a list of numbers, got"),
        ([[1.0], [2.0, 3.0]], TypeError, "weight must be a tensor, an array or a list of numbers, got"),
        (torch.ones(3).to_sparse(), TypeError, "weight must be a dense tensor, got torch.sparse_coo"),
        (torch.ones(3, 1), ValueError, "one dimension"),
        (torch.tensor([1.0, -1.0, 1.0]), ValueError, "finite and >= 0"),
        (torch.tensor([1.0, torch.nan, 1.0]), ValueError, "finite and >= 0"),
    ],
)
def test_weights_are_checked_when_the_loss_is_made(weight, error, message):
    with pytest.raises(error, match=message):
        FocalCalibrationLoss(weight=weight)


@pytest.mark.parametrize("name", ["fcl", "ls"])
def test_ignoring_a_class_makes_no_sense_for_probabilities(name):
    with pytest.raises(ValueError, match="no meaning for class probabilities"):
        LOSSES[name](ignore_index=1)(Z, Z.softmax(1))


def test_a_class_can_be_ignored():
    """ignore_index may be a class, as in segmentation's background."""
    kept = torch.tensor([1, 2])
    torch.testing.assert_close(FocalCalibrationLoss(ignore_index=0)(Z, Y), FocalCalibrationLoss()(Z[kept], Y[kept]))
    torch_path = FocalCalibrationLoss(ignore_index=0)
    torch_path.engine = "torch"
    torch.testing.assert_close(torch_path(Z, Y), FocalCalibrationLoss()(Z[kept], Y[kept]))


@pytest.mark.parametrize("value", ["2", True, None, [3.0]])
def test_what_merely_converts_to_a_number_is_not_one(value):
    with pytest.raises(TypeError, match="gamma must be a number"):
        FocalLoss(value)


def test_an_unknown_engine_is_refused():
    loss = FocalCalibrationLoss()
    with pytest.raises(
        ValueError, match="engine must be one of 'auto', 'native', 'triton', 'torch', 'formula', got 'nativ'"
    ):
        loss.engine = "nativ"


def test_an_engine_that_cannot_serve_says_so():
    from focalcal.losses.formula import Terms

    with pytest.raises(ValueError, match="engine='native' needs the compiled kernel"):
        focal_family(Z.half(), Y, Terms(), engine="native")
