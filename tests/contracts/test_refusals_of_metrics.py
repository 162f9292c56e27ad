"""What every metric refuses, and how: the argument, the rule, the value received and the remedy; on both engines."""

import inspect
from functools import partial

import numpy as np
import pytest
import torch
from support.metric_engines import ENGINES, use
from support.refusals import assert_refused

from focalcal import metrics
from focalcal.integrations import torchmetrics as adapters
from focalcal.metrics import METRICS, MULTILABEL_METRICS

OTHERS = (metrics.summary, metrics.reliability, metrics.murphy, metrics.CalibrationSketch.of)
ROWS = METRICS | {function.__name__: function for function in OTHERS}
ROWS["bootstrap"] = partial(metrics.bootstrap, metrics.ece)
OTHERS = (metrics.multilabel_summary, metrics.multilabel_reliability, metrics.multilabel_murphy)
SEVERAL = MULTILABEL_METRICS | {function.__name__: function for function in OTHERS}
SEVERAL["multilabel_bootstrap"] = partial(metrics.multilabel_bootstrap, metrics.multilabel_ece)

P = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
Y = np.array([1, 0, 0])
_FLOAT8 = torch.tensor(P).to(torch.float8_e4m3fn)
MISSING = -(2**63)  # what NaN is on most processors when it is cast to int64


@pytest.fixture(params=ENGINES, autouse=True)
def engine(request, monkeypatch):
    use(request.param, monkeypatch)


def changed(value, row, column=0):
    array = P.copy()
    array[row, column] = value
    return array


def case(probs, labels, message, error=ValueError, **options):
    return probs, labels, message, error, options


_SUM = r"probs must be probabilities: >= 0 and summing to 1 within 0.001 .*, got {} in row {}; pass softmax"
_RANGE = "labels must be from 0 to 1, got {} at flat position {}; check the labels and the number of columns"
_WHOLE = "labels must be whole numbers, the index of each row's class, got {} at flat position 1; leave out rows"
_MANY, _BEGIN = torch.full((5000, 100), 0.01), torch.zeros(5000, dtype=torch.int64)
_MANY[4321, 7], _BEGIN[:100] = torch.nan, 255
_MAP = torch.full((6, 4, 10, 10), 0.25)
_MAP[3, 1, 5, 5] = 0.3
CASES = {
    "nan": case(changed(np.nan, 1), Y, "probs must be finite, got nan in row 1; find out where"),
    "inf": case(changed(np.inf, 2, 1), Y, "probs must be finite, got inf in row 2; find out where"),
    "nan far in": case(_MANY, _BEGIN, "probs must be finite, got nan in row 4321;", ignore_index=255),
    "a sum of 1.1": case(changed(0.3, 0), Y, _SUM.format("a sum of 1.1", 0)),
    "a sum in half precision": case(torch.tensor(1.1 * P).half(), Y, _SUM.format(r"a sum of 1.\d*", 0)),
    "a sum in a map": case(_MAP, torch.zeros(6, 10, 10).long(), _SUM.format(r"a sum of 1.0[45]\d*", 3)),
    "negative": case(np.array([[-0.1, 1.1]]), [0], _SUM.format("-0.1", 0)),
    "above one": case(P[:, :1] + 1, Y, "probs must be probabilities from 0 to 1, got 1.2 in row 0; divide .* by 100"),
    "integers": case(np.array([[1, 0]]), [0], "probs must be floating point, got int64; convert them", TypeError),
    "words": case(np.array([["a", "b"]]), [0], "probs must be an array of numbers or a tensor, got <U1", TypeError),
    "float8": case(_FLOAT8, Y, r"probs must hold numbers that NumPy has, got .*; use probs\.float", TypeError),
    "no row": case(P[:0], Y[:0], r"probs must hold at least one row, got shape \(0, 2\)"),
    "no probs": case(None, Y, "probs is missing; pass probs or logits=... and labels, or Predictions"),
    "probs and logits": case(P, Y, "probs and logits were both given; pass one of them", logits=P),
    "no labels": case(P, None, "labels is missing; pass probs or logits=... and labels, or Predictions"),
    "label 2": case(P, [1, 0, 2], _RANGE.format(2, 2)),
    "label -1": case(P, [1, -1, 0], _RANGE.format(-1, 1)),
    "label 2 of one column": case(P[:, 0], [0, 1, 2], _RANGE.format(2, 2)),
    "a label that was NaN": case(P, [0, 1, MISSING], _RANGE.format(MISSING, 2)),
    "a label neither to ignore nor known": case(
        P, [0, -100, MISSING], f"0 to 1 or ignore_index = -100, got {MISSING} at flat position 2", ignore_index=-100
    ),
    "half a label": case(P, [0.0, 0.5, 0.0], _WHOLE.format("0.5")),
    "a label of NaN": case(P, [0.0, np.nan, 0.0], _WHOLE.format("nan")),
    "masked labels": case(
        P, np.ma.array(Y, mask=[1, 0, 0]), "labels must have no masked entries, .*; leave", TypeError
    ),
    "labels missing": case(
        P, [1, 0], r"labels must have shape \(3,\) for probs of shape \(3, 2\), got \(2,\); give one"
    ),
    "all hot": case(P, np.ones((3, 2), int), r"labels of the shape of probs, \(3, 2\), must be one-hot, .*; pass"),
}


@pytest.mark.parametrize("title", CASES)
def test_rows(title):
    probs, labels, message, error, options = CASES[title]
    assert_refused(ROWS, lambda name: ROWS[name](probs, labels, **options), error, message)


@pytest.mark.parametrize("inner", [(), (3,)])
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (np.nan, "logits must be finite, got nan in row 37; find out"),
        (np.inf, "logits must be finite, got inf in row 37; find out"),
        (-np.inf, "logits must leave a class possible, got only -inf in row 37;"),
    ],
)
def test_logits(value, rule, dtype, inner):
    logits, labels = np.zeros((50, 4, *inner), dtype), np.zeros((50, *inner), int)
    logits[37, slice(None) if value == -np.inf else 2] = value
    assert_refused(ROWS, lambda name: ROWS[name](logits=logits, labels=labels), ValueError, rule)


def test_labels_of_logits():
    labels = np.zeros((50, 3), int)
    labels[41] = 9
    rule = "labels must be from 0 to 3, got 9 at flat position 123;"
    assert_refused(ROWS, lambda name: ROWS[name](logits=np.zeros((50, 4, 3)), labels=labels), ValueError, rule)


@pytest.mark.parametrize(
    ("weights", "rule"),
    [
        ([1, -1, 1], "sample_weight must be finite and not negative, got -1 in row 1; leave out"),
        ([1, np.nan, 1], "sample_weight must be finite and not negative, got nan in row 1"),
        ([0, 0, 0], "sample_weight must not all be 0"),
        ([1, 1], r"sample_weight must be \(3,\) numbers, one for every row, got int64 \(2,\)"),
        (["1", "2", "3"], "sample_weight must be an array of numbers or a tensor, got <U1"),
    ],
)
def test_weights(weights, rule):
    assert_refused(
        ROWS.keys() - {"of"}, lambda name: ROWS[name](P, Y, sample_weight=weights), (ValueError, TypeError), rule
    )
    with pytest.raises(ValueError, match="a sketch takes no weights"):
        metrics.CalibrationSketch.of(P, Y, sample_weight=[1, 2, 3])


def test_nothing_but_ignored_rows():
    names = ROWS.keys() - {"of"}  # which may be added to others
    rule = "labels must leave a row to look at, got only ignore_index = -100"
    assert_refused(names, lambda name: ROWS[name](P, np.full(3, -100), ignore_index=-100), ValueError, rule)


@pytest.mark.parametrize("scores", ["probs", "logits"])
def test_a_label_that_was_nan_in_torchmetrics(scores):
    classes = {name: getattr(adapters, name) for name in adapters.__all__}
    names = [name for name, made in classes.items() if "num_classes" in inspect.signature(made).parameters]
    more = {"TopKAccuracy": {"k": 1}}
    rows, labels = torch.tensor(P), torch.tensor([0, 1, MISSING])
    assert_refused(
        names,
        lambda name: classes[name](num_classes=2, scores=scores, **more.get(name, {})).update(rows, labels),
        ValueError,
        rf"labels must be from 0 to 1, got {MISSING} at flat position 2",
    )


# What each option may not be; every function that has it refuses it in the same words.
ARRAY = np.ones(2)
OPTIONS = {
    "n_bins": ((0, -1, 1.5, True, "15", float("nan"), ARRAY), "a whole number >= 1 and <= .*, got .*; 15 is usual"),
    "ignore_index": ((255.0, "255", 2**63, True, ARRAY), "a whole number of 64 bits or None, got"),
    "k": ((0, 3, 1.0, True, ARRAY), "a whole number >= 1 and <= 2, got .*; there are 2 classes"),
    "class_index": ((2, -1, True, 1.0, "yes", ARRAY), "a whole number >= 0 and <= 1, got .*; name a column"),
    "accuracy": ((0, 1, -0.1, 95, "0.95", True, None, float("nan"), ARRAY), "between 0 and 1, got .*; 0.95 is usual"),
    "level": ((0, 1, 1.5, -0.1, 95, "0.95"), "between 0 and 1, got"),
    "bandwidth": ((0.0, -0.1, 1.5, float("nan"), ARRAY), "(from 0.0001 to 1|finite and >= 0|one number), got"),
    "resamples": ((0, 1, 2.5, "20"), "a whole number >= 2 and <= 10000000, got"),
    "seed": ((-1, 0.5, None), "a whole number >= 0.*, got"),
    "norm": (("max", None, ARRAY), "one of 'l1', 'l2', got"),
    "convention": (("open", None, ARRAY), "one of '(closed', 'fc|whole', 'relplot)', got"),
    "of": (("top", None, ARRAY), "one of 'confidence', 'classes', got"),
    "binning": (("mass", None, ARRAY), "one of 'equal_width', 'equal_mass', got"),
    "method": (("bca", None, ARRAY), "one of 'adjusted', 'basic', 'percentile', got"),
    "knots": ((2, 4.0, None, ARRAY), "one of 3, 4, 5, got"),
    "average": (("macro", True, ARRAY), "one of 'mean', None, got"),
}
ROWS_AND_THEIR_NAMES = "probs labels logits confidence correct classes positive normalize sample_weight clusters inputs"


def test_every_option_has_its_check():
    functions = [*ROWS.values(), *SEVERAL.values()]
    options = {name for function in functions for name in inspect.signature(function).parameters}
    assert options == OPTIONS.keys() | set(ROWS_AND_THEIR_NAMES.split())


@pytest.mark.parametrize("option", OPTIONS)
def test_options(option):
    values, rule = OPTIONS[option]
    for functions, labels in ((ROWS, Y), (SEVERAL, (P > 0.5).astype(int))):
        names = [name for name, function in functions.items() if option in inspect.signature(function).parameters]
        for value in values if names else ():
            assert_refused(
                names,
                lambda name, of=functions, y=labels, wrong=value: of[name](P, y, **{option: wrong}),
                (ValueError, TypeError),
                f"{option} must (be|lie) {rule}",
            )


@pytest.mark.parametrize(
    ("probs", "labels", "message"),
    [
        ([[0.1, 1.2]], [[0, 1]], r"probs must be probabilities from 0 to 1, got 1.2 in row 0, column 1; pass sigmoid"),
        ([[0.1, np.nan]], [[0, 1]], "probs must be probabilities from 0 to 1, got nan in row 0, column 1; pass"),
        ([[0.1, 0.2]], [[0, 2]], "labels must be 0 or 1, got 2 in row 0, column 1; or name another value as ignore_"),
        ([0.1, 0.2], [0, 1], r"must both be \(N, L\), got \(2,\) and \(2,\); for one label add a dimension"),
        (np.zeros((0, 3)), np.zeros((0, 3)), r"probs must hold at least one row and one label, got shape \(0, 3\)"),
    ],
)
def test_several_labels(probs, labels, message):
    assert_refused(SEVERAL, lambda name: SEVERAL[name](np.array(probs), np.array(labels)), ValueError, message)
