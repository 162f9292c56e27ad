"""What every entry of LOSSES refuses, and how: the argument, the rule, the value received and the remedy."""

import inspect

import numpy as np
import pytest
import torch
from support.engines import ENGINES
from support.every_loss import HARD_ONLY, LOSSES, MULTI, SINGLE, SOFT
from support.refusals import assert_refused

Z = torch.linspace(-1, 2, 12).reshape(4, 3)
Y = torch.tensor([0, 1, 2, 0])
ANSWERS = torch.zeros(4, 3)
DENSE = torch.full((4, 3), 1 / 3)
NESTED = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")


def nested():
    return torch.nested.nested_tensor([Z[0], Z[1]])


def taking(option):
    """The losses that have the option."""
    return [name for name, loss in LOSSES.items() if option in inspect.signature(loss).parameters]


def label(value):
    return torch.tensor([0, value, 2, 0])


def row(*probs):
    """Class probabilities with this in row 2."""
    return torch.tensor([[0.2, 0.8, 0.0]]).repeat(4, 1).index_put((torch.tensor(2),), torch.tensor(probs))


LOGITS = {
    "a scalar": (torch.tensor(0.0), ValueError, r"logits must be \(N, K\), .* got a scalar; keep the class dimension"),
    "no class": (torch.zeros(4, 0), ValueError, r"logits must have at least one class, got shape \(4, 0\)"),
}
# The same for one label per example and for several.
ANY_LOGITS = {
    "integers": (Z.long(), TypeError, r"logits must be floating point, got torch.int64; use logits.float\(\)"),
    "complex": (Z.to(torch.complex64), TypeError, "logits must be floating point, got torch.complex64; use"),
    "an array": (Z.numpy(), TypeError, "logits must be a torch.Tensor, got ndarray; use torch.as_tensor"),
    "a string": ("logits", TypeError, "logits must be a torch.Tensor, got str; use torch.as_tensor"),
    "sparse": (Z.to_sparse(), TypeError, r"logits must be a dense tensor, got torch.sparse_coo; use logits.to_dense"),
    "nested": (nested, TypeError, "logits must be a dense tensor, got a nested one; use torch.nested.to_padded_tensor"),
}
ANY_TARGET = {
    "a list": ([0, 1, 2, 0], TypeError, r"target must be a torch.Tensor, got list; use torch.as_tensor"),
    "nothing": (None, TypeError, r"target must be a torch.Tensor, got NoneType; use torch.as_tensor"),
    "sparse": (Y.to_sparse(), TypeError, r"target must be a dense tensor, got torch.sparse_coo; use target.to_dense"),
}
_SHAPE = (
    r"target must have shape \(4,\) for class indices with logits of shape \(4, 3\), got {}; indices drop the class"
)
_RANGE = (
    "target must hold class indices from 0 to 2 or ignore_index = -100, got {} at flat position 1; check the labels"
)
CLASSES = {
    **{f"label {at}": (label(at), ValueError, _RANGE.format(at)) for at in (3, -1, 10**12, -(2**63))},
    "rows missing": (Y[:3], ValueError, _SHAPE.format(r"\(3,\)")),
    "a column": (Y[:, None], ValueError, _SHAPE.format(r"\(4, 1\)")),
    "one-hot integers": (ANSWERS.long(), ValueError, _SHAPE.format(r"\(4, 3\)")),
    "bool": (Y.bool(), TypeError, r"target must hold class indices .*, got torch.bool; use target.long\(\)"),
}
_PROBS = "target must hold class probabilities, >= 0 and summing to 1 within 0.001 .*, got {} in row 2; divide each row"
_COLUMNS = (
    r"target must have shape \(4, 3\) for class probabilities .* got {}; indices drop the class dimension .* keep it"
)
PROBABILITIES = {
    "a sum of 3": (row(1.0, 1.0, 1.0), ValueError, _PROBS.format("a sum of 3")),
    "a sum just below 1": (row(0.2, 0.5, 0.2981), ValueError, _PROBS.format("a sum of 0.9981")),
    "negative": (row(1.0, 0.5, -0.5), ValueError, _PROBS.format("-0.5")),
    "columns missing": (torch.rand(4, 2), ValueError, _COLUMNS.format(r"\(4, 2\)")),
    "one dimension": (torch.rand(4), ValueError, _COLUMNS.format(r"\(4,\)")),
    "one too many": (torch.rand(4, 3, 2), ValueError, _COLUMNS.format(r"\(4, 3, 2\)")),
}
_ANSWER = "target must lie from 0 to 1, or be ignore_index = -100, got {}; pass 0 and 1, or probabilities"
SEVERAL = {
    "class indices": (
        Y,
        ValueError,
        r"target must have the shape of the logits, \(4, 3\), got \(4,\); each label needs",
    ),
    "two": (ANSWERS.long() + 2, ValueError, _ANSWER.format("2")),
    "above one": (ANSWERS + 1.5, ValueError, _ANSWER.format("1.5")),
    "nan": (ANSWERS * torch.nan, ValueError, _ANSWER.format("nan")),
    "-100 in eight bits": (torch.full((4, 3), 156, dtype=torch.uint8), ValueError, _ANSWER.format("156")),
    "complex": (ANSWERS + 1j, TypeError, r"target must hold real numbers, got torch.complex64; pass 0 and 1"),
}


@NESTED
@pytest.mark.parametrize("case", [*LOGITS, *ANY_LOGITS])
def test_logits(case):
    logits, error, message = (LOGITS | ANY_LOGITS)[case]
    logits = logits() if callable(logits) else logits
    assert_refused(SINGLE, lambda name: LOSSES[name]()(logits, Y), error, message)
    if case in ANY_LOGITS:
        assert_refused(MULTI, lambda name: LOSSES[name]()(logits, ANSWERS), error, message)


@pytest.mark.parametrize(
    ("names", "target", "error", "message"),
    [
        pytest.param(names, *case, id=f"{title}, {at}")
        for title, names, cases in (
            ("any", LOSSES, ANY_TARGET),
            ("classes", SINGLE, CLASSES),
            ("probabilities", SOFT, PROBABILITIES),
            ("several labels", MULTI, SEVERAL),
        )
        for at, case in cases.items()
    ],
)
def test_targets(names, target, error, message):
    assert_refused(names, lambda name: LOSSES[name]()(Z, target), error, message)
    if error is ValueError and target.is_floating_point():
        assert_refused(names, lambda name: LOSSES[name]()(Z, target.double()), error, message)


def test_targets_of_an_image():
    maps, target = torch.zeros(2, 5, 3), torch.tensor([[0, 1, 2], [7, 0, 0]])
    for engine in ENGINES:
        loss = LOSSES["fcl"]()
        loss.engine = engine
        with pytest.raises(ValueError, match="got 7 at flat position 3"):
            loss(maps, target)
    assert_refused(SINGLE, lambda name: LOSSES[name]()(maps, target[:, 0]), ValueError, r"shape \(2, 3\) .* got \(2,\)")
    soft = torch.full((4, 3, 2), 1 / 3)
    soft[3, 0, 1] = 1.0
    rule = r"got a sum of 1.66\d* at position \(3, 1\)"
    assert_refused(SOFT, lambda name: LOSSES[name]()(torch.zeros(4, 3, 2), soft), ValueError, rule)


def test_class_probabilities_where_they_mean_nothing():
    rule = "target of .* must hold class indices.*, got torch.float32; pass integer labels, or use"
    assert_refused(HARD_ONLY, lambda name: LOSSES[name]()(Z, DENSE), TypeError, rule)
    rule = "ignore_index = 1 has no meaning for class probabilities; leave it at its default and give .* zeros"
    assert_refused(SOFT, lambda name: LOSSES[name](ignore_index=1)(Z, DENSE), ValueError, rule)


def test_one_dimension_of_logits_is_one_example():
    logits, hard = torch.linspace(-1, 1, 5), torch.tensor([0, 1, 1, 0, 1])
    rule = r"one example with 5 classes; for 5 examples pass logits of shape \(5, K\)"
    assert_refused(SOFT, lambda name: LOSSES[name]()(logits, hard.float()), ValueError, rule)
    assert_refused(SOFT, lambda name: LOSSES[name]()(logits, torch.zeros(5)), ValueError, rule)
    rule = r"got \(5,\); such logits are one example with 5 classes, and 5 examples are"
    assert_refused(SINGLE, lambda name: LOSSES[name]()(logits, hard), ValueError, rule)
    for name in SOFT:
        for target in (torch.tensor([0.0, 0.25, 0.75, 0.0, 0.0]), torch.tensor(2)):
            torch.testing.assert_close(LOSSES[name]()(logits, target), LOSSES[name]()(logits[None], target[None]))


WEIGHTS = {
    "complex": (torch.tensor([1.0, 2.0j]), TypeError, "weight must hold real numbers, got torch.complex64; use .float"),
    "words": (["heavy", "light"], TypeError, r"weight must be a tensor, an array or a list of numbers, got \['heavy'"),
    "ragged": (
        [[1.0], [2.0, 3.0]],
        TypeError,
        r"weight must be a tensor, an array or a list of numbers, got \[\[1.0\]",
    ),
    "sparse": (
        torch.ones(3).to_sparse(),
        TypeError,
        "weight must be a dense tensor, .*sparse_coo; use weight.to_dense",
    ),
    "two dimensions": (
        torch.ones(3, 1),
        ValueError,
        r"weight must have one dimension, got shape \(3, 1\); pass a list",
    ),
    "negative": (
        [1.0, -1.0, 1.0],
        ValueError,
        r"weight must be finite and >= 0 in every class, got \[1.0, -1.0, 1.0\]",
    ),
    "nan": ([1.0, torch.nan, 1.0], ValueError, r"weight must be finite and >= 0 in every class, got \[1.0, nan, 1.0\]"),
}
WEIGHTS_OF_A_CALL = {
    "on meta": (torch.ones(3, device="meta"), "weight is on meta, without values, and logits on cpu; give the loss"),
    "too short": (torch.ones(2), r"weight must have one entry per (class, shape \(3,\)|label .*), got.* \(2,\)"),
}


@pytest.mark.parametrize("case", WEIGHTS)
def test_weights(case):
    weight, error, message = WEIGHTS[case]
    assert_refused(LOSSES, lambda name: LOSSES[name](weight=weight), error, message)


@pytest.mark.parametrize("case", WEIGHTS_OF_A_CALL)
def test_weights_that_do_not_fit_the_logits(case):
    weight, message = WEIGHTS_OF_A_CALL[case]
    targets = dict.fromkeys(SINGLE, Y) | dict.fromkeys(MULTI, ANSWERS)
    assert_refused(LOSSES, lambda name: LOSSES[name](weight=weight)(Z, targets[name]), ValueError, message)


# The smallest value of every option that is a number, and a value above its range if there is one.
NUMBERS = {
    **dict.fromkeys(("gamma", "gamma_hard", "gamma_easy", "lam", "step", "switch"), ("0", None)),
    "epsilon": ("0", (1.0, "epsilon must be below 1, got 1.0; 0.05 is usual")),
    "label_smoothing": ("0", (1.1, "label_smoothing must be a probability, from 0 to 1, got 1.1")),
    "threshold": ("0", (1.5, "threshold must be a probability, from 0 to 1, got 1.5")),
    "width": ("0.005", None),
    "gamma_init": ("-20", (30, "gamma_init must be at most gamma_max = 20, got 30")),
    **dict.fromkeys(("gamma_min", "gamma_max"), ("-1000", None)),
}
NO_NUMBER = {
    **{
        repr(value): (value, f"a number, got .* of type {type(value).__name__}") for value in ("three", "2", True, None)
    },
    "a list": ([3.0], r"a number, got \[3.0\] of type list"),
    "a tensor": (torch.ones(2), r"one number, got Tensor of shape \(2,\)"),
    "an array": (np.ones(2), r"one number, got ndarray of shape \(2,\)"),
}
CHOICES = {
    "reduction": "'mean', 'sum', 'none'",
    "scale": "'paper', 'matched'",
    "spread": "'others', 'all'",
    "variant": "'as_coded', 'formula', 'unweighted'",
}


def assert_option_refused(option, value, error, message):
    """By every loss that has it, when it is made, and when the option is set later if it is kept."""
    assert_refused(taking(option), lambda name: LOSSES[name](**{option: value}), error, message)
    kept = [name for name in taking(option) if hasattr(LOSSES[name](), option)]
    if kept:
        assert_refused(kept, lambda name: setattr(LOSSES[name](), option, value), error, message)


def test_every_option_has_its_check():
    options = {option for loss in LOSSES.values() for option in inspect.signature(loss).parameters}
    assert options == NUMBERS.keys() | CHOICES.keys() | {"weight", "ignore_index", "bins", "settings"}


@pytest.mark.parametrize("option", NUMBERS)
def test_numbers(option):
    least, above = NUMBERS[option]
    rule = rf"{option} must be finite and >= {least}, got .*; choose a value in that range"
    for value in (float(least) - 1e-9, -1e6, float("nan"), float("inf"), 10**400):
        assert_option_refused(option, value, ValueError, rule)
    if above:
        assert_option_refused(option, above[0], ValueError, above[1])
    for value, rule in NO_NUMBER.values():
        assert_option_refused(option, value, TypeError, f"{option} must be {rule}; pass a float")


@pytest.mark.parametrize("option", CHOICES)
def test_choices(option):
    for value, shown in (("avg", "'avg'"), (None, "None"), (1, "1"), (np.ones(2), "ndarray of shape"), ([1], r"\[1\]")):
        assert_option_refused(option, value, ValueError, f"{option} must be one of {CHOICES[option]}, got {shown}")


@pytest.mark.parametrize("value", [1.5, "1", None, 2**70])
def test_whole_numbers(value):
    assert_option_refused("ignore_index", value, TypeError, "ignore_index must be a whole number of 64 bits, got")
    if value != 2**70:
        assert_option_refused("bins", value, ValueError, "bins must be a whole number >= 1 and .*, got .*; 15 is usual")


def test_an_unknown_engine():
    names = [name for name in SINGLE if name != "mmce"]  # whose measure has one
    rule = "engine must be one of 'auto', 'native', 'triton', 'torch', 'formula', got 'nativ'"
    assert_refused(names, lambda name: setattr(LOSSES[name](), "engine", "nativ"), ValueError, rule)
