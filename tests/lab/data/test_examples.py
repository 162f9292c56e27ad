import numpy as np
import pytest

from focalcal.lab.data import DataSet, Examples, fingerprint


def examples(ids, labels=None, **more):
    labels = np.zeros(len(ids), np.int64) if labels is None else np.array(labels)
    return Examples(np.zeros((len(ids), 2), np.float32), labels, np.array(ids, "U9"), **more)


def test_splits_that_share_an_id_or_a_patient_or_have_a_label_without_a_class_are_refused():
    with pytest.raises(ValueError, match="toy: train and test must share no ids, got 1 in both, b among them"):
        DataSet("toy", ("one",), examples(["a", "b"]), examples(["c"]), examples(["b", "d"]))
    first, second = examples(["a", "b"], groups=np.array([1, 2])), examples(["c"], groups=np.array([2]))
    with pytest.raises(ValueError, match="train and val must share no groups, got 1 in both, 2 among them"):
        DataSet("toy", ("one",), first, second, second.none())
    for label in (-1, 2):
        with pytest.raises(ValueError, match=f"toy test: labels must be from 0 to 1, got {label} in row 1"):
            DataSet("toy", ("one", "two"), examples(["a"]), examples(["b"]), examples(["c", "d"], [0, label]))
    with pytest.raises(ValueError, match="ids must differ, got a twice"):
        examples(["a", "b", "a"])


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("inputs", np.zeros((2, 3, 4)), "inputs must be images uint8"),
        ("inputs", np.zeros((2, 3), np.uint8), "inputs must be images uint8"),
        ("labels", np.zeros(2, np.int32), "labels must be int64"),
        ("labels", np.zeros(3, np.int64), "labels must have one entry per example, 2, got 3"),
        ("ids", np.zeros(2), "ids must be"),
        ("posterior", np.full((2, 2), 0.6), "posterior must be >= 0 and sum to 1"),
        ("posterior", np.full((2, 2), 0.5, np.float32), "posterior must be float64"),
        ("groups", np.zeros((2, 1), np.int64), "groups must be"),
    ],
)
def test_a_wrong_field_is_refused_by_name(field, value, message):
    right = {"inputs": np.zeros((2, 2)), "labels": np.zeros(2, np.int64), "ids": np.arange(2)}
    with pytest.raises(ValueError, match=message):
        Examples(**{**right, field: value})


def test_several_labels_need_a_column_a_class():
    two = Examples(np.zeros((1, 2)), np.zeros((1, 3), bool), np.arange(1))
    assert DataSet("toy", ("a", "b", "c"), two, two.none(), two.none()).multilabel
    with pytest.raises(ValueError, match="labels must have 2 columns"):
        DataSet("toy", ("a", "b"), two, two.none(), two.none())


def test_a_token_past_the_vocabulary_is_refused():
    rows = Examples(np.array([[0, 2]]), np.zeros(1, np.int64), np.arange(1))
    with pytest.raises(ValueError, match="token 2, past the vocabulary of 2"):
        DataSet("toy", ("a",), rows, rows.none(), rows.none(), ("", "word"))


def test_fingerprint_sees_values_types_and_shapes_but_not_the_layout_in_memory():
    one = examples(["a", "b"])
    again = Examples(np.asfortranarray(one.inputs), one.labels, one.ids.astype("U30"))
    big_endian = Examples(one.inputs.astype(">f4"), one.labels, one.ids)
    assert fingerprint(one) == fingerprint(again) == fingerprint(big_endian)
    others = [
        examples(["a", "c"]),
        examples(["a", "b"], [0, 1]),
        Examples(one.inputs.astype(np.float64), one.labels, one.ids),
        Examples(one.inputs.reshape(2, 2)[:, :1], one.labels, one.ids),
        examples(["a", "b"], groups=np.array([1, 2])),
    ]
    assert len({fingerprint(one), *map(fingerprint, others)}) == 6


def test_take_keeps_every_field_together():
    rows = examples(["a", "b", "c"], [2, 1, 0], posterior=np.eye(3), groups=np.array([7, 8, 9]))
    taken = rows.take(np.array([2, 0]))
    assert taken.ids.tolist() == ["c", "a"]
    assert taken.labels.tolist() == [0, 2]
    assert taken.groups.tolist() == [9, 7]
    assert taken.posterior.tolist() == [[0, 0, 1], [1, 0, 0]]
