"""Whatever people have becomes the same scores and labels, and nothing is inferred in silence."""

import numpy as np
import pandas
import polars
import pyarrow
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from focalcal import InputWarning, Predictions
from focalcal.core.numerics import softmax
from focalcal.predictions import read_inputs

PROBS = np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]])
LABELS = np.array([1, 0, 2, 2])
NAMES = ["cat", "dog", "emu"]
COLUMNS = {name: PROBS[:, at] for at, name in enumerate(NAMES)}
TABLES = {
    "list": PROBS.tolist(),
    "tensor": torch.from_numpy(PROBS),
    "pandas": pandas.DataFrame(COLUMNS),
    "pandas, nullable": pandas.DataFrame(COLUMNS).convert_dtypes(),
    "pandas column of lists": pandas.Series(PROBS.tolist()),
    "polars": polars.DataFrame(COLUMNS),
    "polars column of lists": polars.Series(PROBS.tolist()),
    "arrow": pyarrow.table(COLUMNS),
    "arrow column of lists": pyarrow.chunked_array([PROBS[:2].tolist(), PROBS[2:].tolist()]),
}
INDICES = {
    "list": LABELS.tolist(),
    "bytes": LABELS.astype(np.uint8),
    "unsigned": LABELS.astype(np.uint64),
    "whole floats": LABELS.astype(np.float32),
    "tensor": torch.from_numpy(LABELS).int(),
    "column": LABELS[:, None],
    "one-hot": np.eye(3, dtype=int)[LABELS],
    "one-hot floats": torch.eye(3)[LABELS],
    "one-hot booleans": np.eye(3, dtype=bool)[LABELS],
    "pandas": pandas.Series(LABELS),
    "pandas, nullable": pandas.Series(LABELS, dtype="Int64"),
    "polars": polars.Series(LABELS),
    "arrow": pyarrow.array(LABELS),
    "digits": [str(label) for label in LABELS],
}
WORDS = [NAMES[at] for at in LABELS]
NAMED = {
    "list": WORDS,
    "array": np.array(WORDS),
    "objects": np.array(WORDS, dtype=object),
    "bytes": np.array([word.encode() for word in WORDS]),
    "pandas": pandas.Series(WORDS),
    "polars": polars.Series(WORDS),
    "polars, categorical": polars.Series(WORDS, dtype=polars.Categorical),
    "arrow": pyarrow.array(WORDS),
    "arrow, dictionary": pyarrow.array(WORDS).dictionary_encode(),
}


@pytest.mark.parametrize("form", TABLES)
def test_scores_of_every_form(form):
    found = read_inputs(TABLES[form], LABELS)
    np.testing.assert_allclose(found.scores, PROBS)
    assert (found.kind, found.classes) == ("probs", None)


@pytest.mark.parametrize("form", INDICES)
def test_labels_of_every_form(form):
    assert read_inputs(PROBS, INDICES[form]).labels.tolist() == LABELS.tolist()
    assert read_inputs(logits=np.log(PROBS), labels=INDICES[form]).labels.dtype == np.int64


@pytest.mark.parametrize("form", NAMED)
def test_names_of_classes(form):
    """Sorted with a warning that shows the mapping; in silence as soon as somebody said the order."""
    names = [name.encode() for name in NAMES] if form == "bytes" else NAMES
    with pytest.warns(InputWarning, match=r"sorted order: b?'cat' -> 0, b?'dog' -> 1, b?'emu' -> 2; say classes="):
        found = read_inputs(PROBS, NAMED[form])
    assert found.labels.tolist() == LABELS.tolist()
    assert found.classes == tuple(names)
    other = [2, 0, 1]
    said = read_inputs(PROBS[:, other], NAMED[form], classes=[names[at] for at in other])
    assert said.labels.tolist() == np.argsort(other)[LABELS].tolist()


def test_a_table_names_its_columns_and_a_categorical_its_classes():
    turned = pandas.DataFrame(COLUMNS)[["emu", "cat", "dog"]]
    for table in (turned, polars.DataFrame(turned), pyarrow.Table.from_pandas(turned)):
        found = read_inputs(table, WORDS)
        assert found.classes == ("emu", "cat", "dog")
        assert found.labels.tolist() == [2, 1, 0, 0]
    category = pandas.CategoricalDtype(["emu", "cat", "dog"])
    ordered = pandas.Series(WORDS, dtype=category), polars.Series(WORDS, dtype=polars.Enum(["emu", "cat", "dog"]))
    for labels in ordered:
        found = read_inputs(PROBS, labels)
        assert found.classes == ("emu", "cat", "dog")
        assert found.labels.tolist() == [2, 1, 0, 0]


def test_digits_are_numbers_and_not_sorted_as_words():
    many = np.full((12, 12), 1 / 12)
    assert read_inputs(many, [str(label) for label in range(12)]).labels.tolist() == list(range(12))
    said = read_inputs(many, [str(label) for label in range(12)], classes=[str(11 - at) for at in range(12)])
    assert said.labels.tolist() == list(range(12))[::-1]


def test_numbers_may_be_names_too():
    assert read_inputs(PROBS, LABELS + 1, classes=[1, 2, 3]).labels.tolist() == LABELS.tolist()
    with_gap = read_inputs(PROBS, [2, 1, -1, 3], classes=[1, 2, 3], ignore_index=-1)
    assert with_gap.labels.tolist() == [1, 0, -1, 2]
    shown = read_inputs(PROBS, LABELS, classes=NAMES)  # indices, and what to call them
    assert (shown.labels.tolist(), shown.classes) == (LABELS.tolist(), tuple(NAMES))


P = np.array([0.9, 0.2, 0.4])
POSITIVE = {
    "0 and 1": ([1, 0, 1], {}),
    "booleans": ([True, False, True], {}),
    "0 is positive": ([0, 1, 0], {"positive": 0}),
    "names": (["spam", "ham", "spam"], {"positive": "spam"}),
    "named in order": (["spam", "ham", "spam"], {"classes": ["ham", "spam"]}),
    "categories": (pandas.Series(["spam", "ham", "spam"], dtype="category"), {"positive": "spam"}),
    "1 and 2": ([2, 1, 2], {"positive": 2}),
    "0 and 1 with names": ([0, 1, 0], {"classes": ["spam", "ham"], "positive": "spam"}),
    "one-hot": ([[0, 1], [1, 0], [0, 1]], {}),
    "digits": (["1", "0", "1"], {}),
    "column": ([[1], [0], [1]], {}),
}


@pytest.mark.parametrize("form", POSITIVE)
def test_one_column_of_scores_is_that_of_the_positive_class(form):
    labels, said = POSITIVE[form]
    for column in (P, P[:, None], P.tolist(), pandas.Series(P), torch.from_numpy(P).float()):
        found = read_inputs(column, labels, **said)
        np.testing.assert_allclose(found.scores, np.stack([1 - P, P], 1), atol=1e-7)
        assert found.labels.tolist() == [1, 0, 1]
    logits = read_inputs(logits=np.log(P / (1 - P)), labels=labels, **said)
    np.testing.assert_allclose(softmax(logits.scores)[:, 1], P)


def test_ignored_rows_of_one_column_and_batches_without_positives():
    assert read_inputs(P, [2, 1, -100], positive=2, ignore_index=-100).labels.tolist() == [1, 0, -100]
    assert read_inputs(P, ["ham"] * 3, positive="spam").labels.tolist() == [0, 0, 0]


def test_maps_with_a_class_dimension():
    maps = np.moveaxis(np.stack([PROBS, PROBS]), -1, 1)
    labels = np.stack([LABELS, LABELS])
    assert read_inputs(maps, labels[:, None]).labels.tolist() == labels.tolist()
    sigmoid = read_inputs(np.stack([P, P])[:, None], [[[1, 0, 1]], [[0, 0, 1]]])
    assert sigmoid.scores.shape == (2, 2, 3)
    assert sigmoid.labels.tolist() == [[1, 0, 1], [0, 0, 1]]


def test_normalize():
    found = read_inputs(PROBS * [[1], [2], [0.5], [100]], LABELS, normalize=True)
    np.testing.assert_allclose(found.scores, PROBS)
    with pytest.raises(ValueError, match="positive and finite sum to be divided by, got another in row 2"):
        read_inputs(PROBS * [[1], [1], [0], [1]], LABELS, normalize=True)
    with pytest.raises(ValueError, match="normalize=True is for probs"):
        read_inputs(logits=PROBS, labels=LABELS, normalize=True)


def test_predictions_and_outcomes():
    predictions = Predictions(logits=np.log(PROBS), labels=LABELS, split="test")
    found = read_inputs(predictions)
    assert (found.kind, found.scores is predictions.scores, found.labels is predictions.labels) == (
        "logits",
        True,
        True,
    )
    outcomes = read_inputs(confidence=pandas.Series([0.5, 0.9]), correct=[1, 0])
    assert (outcomes.kind, outcomes.labels.tolist()) == ("outcomes", [True, False])


WRONG = [
    ({"probs": PROBS}, ValueError, "labels is missing; pass probs or logits=... and labels, or Predictions"),
    ({"labels": LABELS}, ValueError, "probs is missing"),
    ({"probs": PROBS, "logits": PROBS, "labels": LABELS}, ValueError, "probs and logits were both given"),
    (
        {"probs": PROBS, "labels": ["cat", "dog", "cat", "dog"]},
        ValueError,
        r"classes must be 3 different names, .* got 2: 'cat', 'dog'; pass classes=",
    ),
    (
        {"probs": PROBS, "labels": WORDS, "classes": ["cat", "dog", "owl"]},
        ValueError,
        "labels must be among the classes 'cat', 'dog', 'owl', got 'emu' in row 2",
    ),
    ({"probs": PROBS, "labels": WORDS, "classes": ["cat", "dog", "dog"]}, ValueError, "3 different names"),
    ({"probs": PROBS, "labels": ["cat", None, "emu", "emu"]}, ValueError, "must not be missing, got None in row 1"),
    ({"probs": PROBS, "labels": ["cat", np.nan, "emu", "emu"]}, ValueError, "must not be missing, got nan in row 1"),
    (
        {"probs": PROBS, "labels": pandas.Series([1, None, 2, 2], dtype="Int64")},
        ValueError,
        "got nan at flat position 1",
    ),
    ({"probs": PROBS, "labels": ["cat", 1, "emu", "emu"]}, TypeError, "labels must be names of one kind, got 'cat', 1"),
    (
        {"probs": PROBS, "labels": [1.5, 0, 1, 2]},
        ValueError,
        "labels must be whole numbers, .* got 1.5 at flat position 0",
    ),
    (
        {"probs": PROBS, "labels": LABELS, "positive": 1},
        ValueError,
        r"positive is for one column .* \(4, 3\); name the columns",
    ),
    ({"probs": P, "labels": ["a", "b", "a"]}, ValueError, "positive is missing; say which of 'a', 'b' the one column"),
    ({"probs": P, "labels": pandas.Series(["a", "b", "a"], dtype="category")}, ValueError, "positive is missing; say"),
    (
        {"probs": P, "labels": ["a", "b", "a"], "positive": "c"},
        ValueError,
        "positive must be one of the labels, 'a', 'b'; got 'c'",
    ),
    ({"probs": PROBS, "labels": np.ones((4, 3))}, ValueError, "must be one-hot, a single 1 in each row"),
    ({"probs": PROBS, "labels": [True, False, True, True]}, TypeError, "among 3 columns, got booleans; .* correct="),
    (
        {"probs": [[0.5, 0.5], [1.0]], "labels": [0, 1]},
        TypeError,
        "probs must have rows of one length, got a ragged list",
    ),
    ({"confidence": P}, ValueError, "confidence and correct belong together"),
    ({"confidence": P, "correct": [1, 0, 2]}, ValueError, "correct must be True or False, got 2 in row 2"),
    ({"confidence": P + 1, "correct": [1, 0, 1]}, ValueError, "confidence must be a probability .* got 1.9 in row 0"),
    (
        {"confidence": 100 * P, "correct": [1, 0, 1]},
        ValueError,
        "confidence must be a probability from 0 to 1, got 90 in row 0; divide percentages by 100",
    ),
    (  # the value in the user's own file, not what is left of 1
        {"probs": [0.3, 98.8413, 0.5], "labels": [0, 1, 1]},
        ValueError,
        "probs must be probabilities from 0 to 1, got 98.8413 in row 1; divide percentages by 100, or name",
    ),
    ({"probs": P - 0.3, "labels": [0, 1, 1]}, ValueError, r"from 0 to 1, got -0.1 in row 1; divide"),
    ({"probs": [0.3, np.nan], "labels": [0, 1]}, ValueError, "probs must be finite, got nan in row 1; find out"),
    (
        {"probs": [[0.3], [1.2]], "labels": [0, 1], "normalize": True},
        ValueError,
        "probs must be probabilities from 0 to 1, got 1.2 in row 1",
    ),
    ({"confidence": P, "correct": [1, 0]}, ValueError, "one value per row each, got 3 and 2"),
    ({"confidence": [1, 0, 1], "correct": [1, 0, 1]}, TypeError, "confidence must be floating point"),
    ({"probs": P, "confidence": P, "correct": [1, 0, 1]}, TypeError, "give one or the other"),
]


@pytest.mark.parametrize(("arguments", "kind", "message"), WRONG, ids=range(len(WRONG)))
def test_what_cannot_be_meant_is_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        read_inputs(**arguments)


def test_predictions_stand_alone():
    predictions = Predictions(probs=PROBS, labels=LABELS, split="test")
    with pytest.raises(TypeError, match="give nothing else beside them"):
        read_inputs(predictions, LABELS)
    several = Predictions(probs=PROBS, labels=PROBS > 0.3, split="test", multilabel=True)
    with pytest.raises(ValueError, match="use the multilabel_ functions"):
        read_inputs(several)


@given(order=st.permutations(range(3)))
def test_names_are_names_in_any_order_of_columns(order):
    """The label's own probability is the same, whatever the order of columns and names."""
    found = read_inputs(PROBS[:, order], WORDS, classes=[NAMES[at] for at in order])
    own = found.scores[np.arange(4), found.labels]
    assert own.tolist() == PROBS[np.arange(4), LABELS].tolist()


def test_labels_that_only_an_unsigned_integer_holds_are_none_to_ignore():
    wrapped = np.array([1, 2**64 - 100], dtype=np.uint64)  # -100 as int64
    with pytest.raises(ValueError, match=f"labels must fit in 64 bits with sign, got {2**64 - 100}; fix it"):
        read_inputs(np.eye(2), wrapped, ignore_index=-100)
    assert read_inputs(np.eye(2), wrapped[:1].repeat(2), ignore_index=-100).labels.tolist() == [1, 1]
