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


def label(value):
    return torch.tensor([0, value, 2, 0])


def row(*probs):
    """Class probabilities with this in row 2."""
    return torch.tensor([[0.2, 0.8, 0.0]]).repeat(4, 1).index_put((torch.tensor(2),), torch.tensor(probs))


def case(names, message, error=ValueError, logits=Z, target=Y):
    return names, error, message, logits, target


def logits(value, message, error=TypeError):
    """Refused with one label per example and, unless the shape is the matter, with several."""
    return case(LOSSES if error is TypeError else SINGLE, f"logits must {message}", error, logits=value)


_RANGE = "target must hold class indices from 0 to 2 or ignore_index = -100, got {} at flat position 1; check"
_SHAPE = r"target must have shape \(4,\) for class indices .* \(4, 3\), got {}; indices drop the class dimension"
_PROBS = "target must hold class probabilities, >= 0 and summing to 1 within 0.001 .*, got {} in row 2; divide"
_COLUMNS = r"target must have shape \(4, 3\) for class probabilities .* got {}; .* probabilities keep it"
_ANSWER = "target must lie from 0 to 1, or be ignore_index = -100, got {}; pass 0 and 1, or probabilities"
_EACH = r"target must have the shape of the logits, \(4, 3\), got \(4,\); each label needs"
_EIGHT_BITS = torch.full((4, 3), 156, dtype=torch.uint8)  # -100
CALLS = {
    "logits: a scalar": logits(torch.tensor(0.0), r"be \(N, K\), .* got a scalar; keep the class", ValueError),
    "logits: no class": logits(torch.zeros(4, 0), r"have at least one class, got shape \(4, 0\)", ValueError),
    "logits: integers": logits(Z.long(), "be floating point, got torch.int64; use logits.float"),
    "logits: complex": logits(Z + 0j, "be floating point, got torch.complex64; use"),
    "logits: an array": logits(Z.numpy(), "be a torch.Tensor, got ndarray; use torch.as_tensor"),
    "logits: a string": logits("logits", "be a torch.Tensor, got str; use torch.as_tensor"),
    "logits: sparse": logits(Z.to_sparse(), r"be a dense tensor, got torch.sparse_coo; use logits.to_dense\(\)"),
    "target: a list": case(LOSSES, "target must be a torch.Tensor, got list; use", TypeError, target=[0, 1, 2, 0]),
    "target: nothing": case(LOSSES, "target must be a torch.Tensor, got NoneType; use", TypeError, target=None),
    "target: sparse": case(LOSSES, "target must be a dense tensor, .*; use target.to", TypeError, target=Y.to_sparse()),
    **{f"label {at}": case(SINGLE, _RANGE.format(at), target=label(at)) for at in (3, -1, 10**12, -(2**63))},
    "indices: rows missing": case(SINGLE, _SHAPE.format(r"\(3,\)"), target=Y[:3]),
    "indices: a column": case(SINGLE, _SHAPE.format(r"\(4, 1\)"), target=Y[:, None]),
    "indices: one-hot": case(SINGLE, _SHAPE.format(r"\(4, 3\)"), target=ANSWERS.long()),
    "indices: bool": case(SINGLE, "class indices .*, got torch.bool; use target.long", TypeError, target=Y.bool()),
    "probabilities: a sum of 3": case(SOFT, _PROBS.format("a sum of 3"), target=row(1.0, 1.0, 1.0)),
    "probabilities: just below 1": case(SOFT, _PROBS.format("a sum of 0.9981"), target=row(0.2, 0.5, 0.2981)),
    "probabilities: negative": case(SOFT, _PROBS.format("-0.5"), target=row(1.0, 0.5, -0.5)),
    "probabilities: two columns": case(SOFT, _COLUMNS.format(r"\(4, 2\)"), target=torch.rand(4, 2)),
    "probabilities: one dimension": case(SOFT, _COLUMNS.format(r"\(4,\)"), target=torch.rand(4)),
    "probabilities: one too many": case(SOFT, _COLUMNS.format(r"\(4, 3, 2\)"), target=torch.rand(4, 3, 2)),
    "several: class indices": case(MULTI, _EACH),
    "several: two": case(MULTI, _ANSWER.format("2"), target=ANSWERS.long() + 2),
    "several: above one": case(MULTI, _ANSWER.format("1.5"), target=ANSWERS + 1.5),
    "several: nan": case(MULTI, _ANSWER.format("nan"), target=ANSWERS * torch.nan),
    "several: eight bits": case(MULTI, _ANSWER.format("156"), target=_EIGHT_BITS),
    "several: complex": case(MULTI, "real numbers, got torch.complex64; pass 0 and 1", TypeError, target=ANSWERS + 1j),
}


@pytest.mark.parametrize("title", CALLS)
def test_a_call(title):
    names, error, message, logits, target = CALLS[title]
    assert_refused(names, lambda name: LOSSES[name]()(logits, target), error, message)
    if title.startswith("probabilities"):
        assert_refused(names, lambda name: LOSSES[name]()(logits, target.double()), error, message)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_logits():
    nested = torch.nested.nested_tensor([Z[0], Z[1]])
    rule = "logits must be a dense tensor, got a nested one; use torch.nested.to_padded_tensor"
    assert_refused(LOSSES, lambda name: LOSSES[name]()(nested, Y), TypeError, rule)


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
    assert_refused(HARD_ONLY, lambda name: LOSSES[name]()(Z, Z.softmax(1)), TypeError, rule)
    rule = "ignore_index = 1 has no meaning for class probabilities; leave it at its default and give .* zeros"
    assert_refused(SOFT, lambda name: LOSSES[name](ignore_index=1)(Z, Z.softmax(1)), ValueError, rule)


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


def taking(option):
    """The losses that have the option."""
    return [name for name, loss in LOSSES.items() if option in inspect.signature(loss).parameters]


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
    names = [name for name in SINGLE if name not in ("mmce", "bsce_gra")]  # which the engines serve in part
    rule = "engine must be one of 'auto', 'native', 'triton', 'torch', 'formula', got 'nativ'"
    assert_refused(names, lambda name: setattr(LOSSES[name](), "engine", "nativ"), ValueError, rule)
