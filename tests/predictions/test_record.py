import copy
import doctest
import pickle
from datetime import date, datetime

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.prediction_samples import full, sample

from focalcal import metrics
from focalcal.core.checks import ProbabilityWarning
from focalcal.predictions import Predictions, record


def test_exactly_one_kind_is_stated():
    scores, labels = torch.eye(2), [0, 1]
    with pytest.raises(TypeError, match="exactly one of logits= and probs=, got neither"):
        Predictions(labels=labels, split="test")
    with pytest.raises(TypeError, match="got both"):
        Predictions(logits=scores, probs=scores, labels=labels, split="test")
    # the same numbers are either, and only the name says which
    assert Predictions(logits=scores, labels=labels, split="test").probs[0, 0] == pytest.approx(0.7310586)
    assert Predictions(probs=scores, labels=labels, split="test").probs is not None
    np.testing.assert_array_equal(Predictions(probs=scores, labels=labels, split="test").probs, scores)


def test_logits_are_not_made_up_from_probabilities():
    with pytest.raises(ValueError, match=r"hold probabilities.*store the logits"):
        _ = sample(kind="probs").logits
    stored = sample()
    assert stored.logits is stored.scores


@pytest.mark.parametrize("wrap", [lambda a: a, torch.from_numpy], ids=["numpy", "torch"])
def test_arrays_stay_where_they_are(wrap):
    logits, labels = np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32), np.arange(9) % 3
    made = Predictions(
        logits=wrap(logits), labels=wrap(labels), split="test", ids=np.arange(9), posterior=np.eye(3)[labels]
    )
    assert np.shares_memory(made.scores, logits)
    assert np.shares_memory(made.labels, labels)
    views = [*made.batches(4), made[2:8], made[1:9:3]]
    assert all(np.shares_memory(view.scores, logits) for view in views)


def test_a_read_only_memory_map_is_not_copied(tmp_path):
    np.save(tmp_path / "logits.npy", np.ones((5, 3), np.float32))
    mapped = np.load(tmp_path / "logits.npy", mmap_mode="r")
    made = Predictions(logits=mapped, labels=np.zeros(5, int), split="test")
    assert np.shares_memory(made.scores, mapped)


def test_multilabel_truths_are_bool_without_a_copy_of_bytes():
    truths = np.array([[0, 1], [1, 1]], np.uint8)
    for ways in (
        truths,
        truths.astype(bool),
        truths.astype(np.float32),
        truths.astype(np.int64),
        torch.tensor(truths),
    ):
        made = Predictions(logits=np.zeros((2, 2)), labels=ways, split="test", multilabel=True)
        assert made.labels.dtype == bool
        assert made.labels.tolist() == [[False, True], [True, True]]
    made = Predictions(logits=np.zeros((2, 2)), labels=truths, split="test", multilabel=True)
    assert np.shares_memory(made.labels, truths)


def test_probs_of_logits():
    single, several = sample(dtype="float64"), sample(dtype="float64", multilabel=True)
    e = np.exp(single.logits)
    np.testing.assert_allclose(single.probs, e / e.sum(1, keepdims=True), rtol=1e-14)
    np.testing.assert_allclose(several.probs, 1 / (1 + np.exp(-several.logits)), rtol=1e-14)
    assert sample(dtype="float32").probs.dtype == np.float32
    assert sample(dtype="float16").probs.dtype == np.float32
    # so that they are probabilities again
    assert Predictions(probs=sample(dtype="bfloat16").probs, labels=single.labels, split="test").n == 40


def wrong(**changed):
    fields = {"logits": np.zeros((3, 2), np.float32), "labels": [0, 1, 0], "split": "test"} | changed
    return {name: value for name, value in fields.items() if value is not None}


DEEP: list = []
for _ in range(5000):
    DEEP = [DEEP]
NAN = np.array([[0.0, 1.0], [0.5, np.nan], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (wrong(labels=[0, 1]), r"labels must have shape \(3,\)"),
        (wrong(labels=[0, 1, 2]), "labels must be from 0 to 1, got 2 at flat position 2"),
        (wrong(labels=[0.0, 0.5, 0.0]), "labels must be whole numbers, .* got 0.5 at flat position 1"),
        (wrong(labels=np.eye(3, 2, dtype=int)), "must be one-hot, a single 1 in each row; .* multilabel=True"),
        (wrong(logits=None, probs=NAN, multilabel=True, normalize=True), "leave them out with multilabel=True"),
        (wrong(classes=["a", "b", "c"]), "classes must be 2 different names, one per column"),
        (wrong(logits=np.zeros((3, 2), int)), "logits must be floating point"),
        (wrong(logits=np.zeros((3, 2, 4)), labels=np.zeros((3, 4), int)), r"logits must be \(N, K\).*make pixels rows"),
        (wrong(logits=np.zeros((0, 2)), labels=np.zeros(0, int)), "at least one row"),
        (wrong(logits=np.zeros((3, 0))), "at least two classes"),
        (wrong(logits=np.full((3, 2), -np.inf)), "logits must leave a class possible, got only -inf in row 0"),
        (wrong(logits=NAN), "logits must be finite, got nan in row 1"),
        (wrong(logits=None, probs=NAN), "probs must be finite, got nan in row 1"),
        (wrong(logits=None, probs=np.full((3, 2), 0.6)), "summing to 1 .*got a sum of 1.2 in row 0"),
        (wrong(logits=None, probs=np.array([[1.5, -0.5]] * 3)), "got -0.5 in row 0"),
        (wrong(labels=[[0, 1]] * 2, multilabel=True), "labels must have the shape of logits"),
        (wrong(labels=[[0, 1], [0, 0], [0, -1]], multilabel=True), "must be 0 or 1 .*got -1 in row 2"),
        (wrong(labels=[[0, 1], [0, 0], [0, np.nan]], multilabel=True), "got nan in row 2"),
        (wrong(logits=None, probs=NAN, labels=[[0, 1]] * 3, multilabel=True), "probs must be finite, got nan in row 1"),
        (wrong(logits=None, probs=NAN * 0 + 2, labels=[[0, 1]] * 3, multilabel=True), "from 0 to 1"),
        (wrong(split=""), "split must be the name of the set"),
        (wrong(multilabel=1), "multilabel must be True or False, got 1"),
        (wrong(ids=[1, 2]), r"ids must have shape \(3,\).*got \(2,\)"),
        (wrong(ids=[1, "b", 2]), "ids must be all integers or all strings, got 'b' of type str in row 1"),
        (wrong(ids=["a", None, "b"]), "got None of type NoneType in row 1"),
        (wrong(ids=[0.5, 1.5, 2.5]), "got 0.5 of type float in row 0"),
        (wrong(ids=np.array([0.5, 1.5, 2.5])), "ids must be integers or strings, got float64"),
        (wrong(ids=[True, False, True]), "got True of type bool in row 0"),
        (wrong(ids=[1, 2, 2**63]), "64 bits"),
        (wrong(ids=np.array([1, 2, 2**63], np.uint64)), "64 bits"),
        (wrong(groups=["a", "b\0", "c"]), "groups must be text .*without NUL .*row 1"),
        (wrong(groups=np.array(["a", "b\0c", "c"])), "groups must be text .*without NUL .*row 1"),
        (wrong(groups=["a", "b", "\ud800"]), "lone surrogates.*row 2"),
        (wrong(groups={}), "groups must have a printable name for each column"),
        (wrong(groups={"a\n": ["a", "b", "c"]}), "groups must have a printable name"),
        (wrong(groups={"site": ["a", "b"]}), r"groups\['site'\] must have shape \(3,\)"),
        (wrong(weights=[1, -2, 1]), "weights must be finite and not negative, got -2 in row 1"),
        (wrong(weights=[1, np.nan, 1]), "weights must be finite .*got nan in row 1"),
        (wrong(weights=[0, 0, 0]), "weights must not all be 0"),
        (wrong(weights=["a", "b", "c"]), "weights must be"),
        (wrong(times=["2026-03-01", "03/01/2026", "2026-03-01"]), "times must be dates .*got '03/01/2026' in row 1"),
        (wrong(times=np.array(["2026", "2026", "NaT"], "M8[D]")), "times must be dates .*row 2"),
        (wrong(times=[1, 2, 3]), "times must be dates .*got '1' in row 0"),
        (wrong(times=np.ones(3)), "times must be dates, datetimes or ISO 8601 text, got float64"),
        (wrong(ids=["a", "b", "c" * 2000]), "at most 1024 characters .*of 2000 characters in row 2; shorten"),
        (wrong(posterior=np.full((3, 3), 1 / 3)), "posterior must have the shape"),
        (wrong(posterior=np.full((3, 2), 1 / 3)), "posterior must be probabilities"),
        (wrong(posterior=np.ones((3, 2), int)), "posterior must be floating point"),
        (wrong(provenance=[1]), "provenance must be a mapping, got list"),
        (wrong(provenance={1: 2}), "provenance must be what JSON can say.*key 1 is not a string"),
        (wrong(provenance={"a": [{2: 3}]}), "key 2 is not a string"),
        (wrong(provenance={"a": "x" * (1 << 22)}), "at most 4194304 characters"),
        (wrong(provenance={"a": DEEP}), "provenance must be what JSON can say.*more than 64 mappings and lists"),
        (wrong(split="s" * 1025), "split must have at most 1024 characters, got 1025; shorten it"),
        (wrong(logits=torch.zeros(3, 2).to_sparse()), "logits must be a dense tensor"),
        (wrong(provenance={"a": float("nan")}), "provenance must be what JSON can say"),
        (wrong(provenance={"a": np.float32(1)}), r"float32 is not JSON serializable.*\.tolist\(\)"),
    ],
)
def test_what_is_wrong_is_said(fields, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Predictions(**fields)


def test_names_of_rows_from_anywhere():
    pandas = pytest.importorskip("pandas")
    words = ["a", "bc", ""]
    ways = [words, tuple(words), np.array(words), np.array(words, object), pandas.Series(words), pandas.Index(words)]
    ways += [pandas.Series(words, dtype="category"), np.array(words, ">U9")[::1]]
    if hasattr(np.dtypes, "StringDType"):
        ways.append(np.array(words, np.dtypes.StringDType()))
    for ids in ways:
        assert Predictions(**wrong(ids=ids)).ids.tolist() == words
    numbers = [3, -1, 2]
    for ids in (
        numbers,
        np.array(numbers, np.int8),
        torch.tensor(numbers),
        pandas.Series(numbers),
        np.array(numbers, object),
    ):
        made = Predictions(**wrong(ids=ids)).ids
        assert (made.tolist(), made.dtype) == (numbers, np.int64)


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet", ""])
def test_half_precision_that_numpy_lacks_is_recognised(tmp_path, suffix):
    """Rows in bfloat16 miss one by more than others may, here and wherever a file of them is read."""
    probs = (3 * torch.randn(50, 30, generator=torch.Generator().manual_seed(0))).softmax(1).bfloat16()
    labels = torch.arange(50) % 30
    with pytest.warns(ProbabilityWarning):
        made = Predictions(probs=probs, labels=labels, split="test")
    assert made.scores.dtype == np.float32
    np.testing.assert_array_equal(made.scores, probs.float())
    made.save(tmp_path / f"a{suffix}")
    with pytest.warns(ProbabilityWarning):
        assert Predictions.load(tmp_path / f"a{suffix}").equals(made)
    with pytest.warns(ProbabilityWarning, match="up to 0.00[1-7]"):
        assert metrics.ece(made[3:]) == metrics.ece(probs[3:], labels[3:]) == metrics.ece(made.probs[3:], labels[3:])
    with pytest.raises(ValueError, match=r"summing to 1 within 0\.001 "):
        metrics.ece(made.probs + np.float32(1e-5), labels)


def test_provenance_cannot_change():
    given = {"seeds": [1, 2]}
    made = sample(provenance=given)
    given["seeds"].append(3)
    made.provenance["seeds"].append(4)
    assert made.provenance == {"seeds": [1, 2]}
    with pytest.raises(TypeError):
        made.provenance["x"] = 1
    with pytest.raises(AttributeError):
        made.split = "val"


@pytest.mark.parametrize("multilabel", [False, True])
def test_rows_are_taken_from_every_field(multilabel):
    whole = full(multilabel=multilabel)
    mask = np.arange(40) % 7 == 3
    ways = [mask, torch.from_numpy(mask), mask.nonzero()[0], mask.nonzero()[0].tolist(), slice(3, None, 7)]
    for rows in ways:
        part = whole[rows]
        assert part.ids.tolist() == [f"näme, {i}" for i in range(3, 40, 7)]
        assert part.groups.tolist() == [i % 3 for i in range(3, 40, 7)]
        for name in ("scores", "labels", "posterior"):
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[3::7])
        assert (part.split, part.kind, part.provenance) == (whole.split, whole.kind, whole.provenance)
    assert whole[::-1].ids[0] == "näme, 39"
    assert whole[[-1]].equals(whole[39:])


@pytest.mark.parametrize("rows", [3, np.int64(3), torch.tensor(3), [40], [[1, 2]], np.ones(3, bool), 1.5, "a"])
def test_rows_that_are_none(rows):
    with pytest.raises((TypeError, IndexError, ValueError)):
        sample()[rows]


@pytest.mark.parametrize("rows", [[], (), np.array([], int), np.zeros(40, bool), slice(5, 5), torch.tensor([])])
def test_no_rows(rows):
    with pytest.raises(ValueError, match="rows must select at least one of 40 rows, got none"):
        sample(dtype="float64")[rows]


@given(st.integers(1, 50), st.booleans())
def test_batches_are_a_partition(rows, multilabel):
    whole = full(multilabel=multilabel)
    parts = list(whole.batches(rows))
    assert [len(part) for part in parts[:-1]] == [rows] * (len(parts) - 1)
    assert Predictions.concatenate(parts).equals(whole)


@pytest.mark.parametrize("rows", [0, -1, 2.5, True, None, "3"])
def test_batches_of_no_size(rows):
    with pytest.raises((TypeError, ValueError), match=r"rows must be (>= 1|a whole number), got"):
        sample().batches(rows)


def test_parts_of_two_widths_have_the_larger():
    narrow, wide = sample(dtype="float32"), sample(dtype="float64")
    for parts in ([narrow, wide], [wide, narrow]):
        whole = Predictions.concatenate(parts)
        assert whole.scores.dtype == np.float64
        np.testing.assert_array_equal(whole.scores, np.concatenate([part.scores.astype(np.float64) for part in parts]))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (sample(kind="probs"), "parts must agree in kind, got probs in part 1 after logits"),
        (sample(classes=5), "n_classes, got 5"),
        (sample(split="val"), "split, got val in part 1 after test; pass split="),
        (sample(provenance={"a": 1}), "provenance.*pass provenance="),
        (sample(multilabel=True), "multilabel"),
        (sample(ids=range(40)), "ids, got integers in part 1 after None; make them alike"),
    ],
)
def test_parts_that_do_not_fit(other, message):
    with pytest.raises(ValueError, match=message):
        Predictions.concatenate([sample(), other])


def test_a_whole_of_different_parts_is_named_by_the_caller():
    both = Predictions.concatenate(
        [sample(split="a"), sample(split="b", provenance={"x": 1})], split="shifts", provenance={"of": ["a", "b"]}
    )
    assert (both.n, both.split, both.provenance) == (80, "shifts", {"of": ["a", "b"]})
    with pytest.raises(ValueError, match="at least one"):
        Predictions.concatenate([])
    with pytest.raises(TypeError, match="parts must be Predictions, got int"):
        Predictions.concatenate([sample(), 3])
    with pytest.raises(TypeError, match="split must be the name"):
        Predictions.concatenate([sample()], split="")


def test_several_groups_are_strings_side_by_side():
    made = sample(n=3, groups={"site": ["a", "b", "a"], "age": [30, 40, 50]})
    assert made.groups.tolist() == [["a", "30"], ["b", "40"], ["a", "50"]]
    assert made.group_names == ("site", "age")
    assert made[[2]].groups.tolist() == [["a", "50"]]
    table = pandas.DataFrame({"site": ["a", "b", "a"], "age": [30, 40, 50]})
    assert sample(n=3, groups=table).equals(made)
    assert not made.equals(sample(n=3, groups={"place": ["a", "b", "a"], "age": [30, 40, 50]}))


def test_times_of_every_sort_are_one_moment():
    moment = np.datetime64("2026-03-01T10:30", "us")
    bare, zoned = ["2026-03-01T10:30", "2026-03-01 10:30:00"], ["2026-03-01T12:30:00+02:00", "2026-03-01T10:30Z"]
    assert all((sample(n=2, times=texts).times == moment).all() for texts in (bare, zoned))
    with pytest.raises(
        ValueError, match=r"times must all have a zone or none, got '2026-03-01T10:30Z' and '2026-03-01 10:30"
    ):
        sample(n=4, times=zoned + bare)  # whose mean two clocks
    stamps = pandas.Series([pandas.Timestamp("2026-03-01 11:30", tz="Europe/Berlin")])
    for each in (stamps, np.array(["2026-03-01T10:30"], "M8[m]"), [datetime(2026, 3, 1, 10, 30)]):
        assert sample(n=1, times=each).times.tolist() == [moment.item()]
    days = sample(n=4, times=["2026", "2026-01", "2026-01-01", date(2026, 1, 1)])
    assert (days.times == np.datetime64("2026-01-01")).all()


def test_equals_sees_every_field():
    whole = full()
    assert whole.equals(full())
    others = [sample(), full(split="val"), full(seed=1), full(dtype="float64"), full(kind="probs"), full(39)]
    others += [whole._with_known(ids=whole.ids[::-1]), whole._with_known(groups=None)]
    others += [None, 3, whole.scores]
    assert not any(whole.equals(other) for other in others)
    assert not whole._with_known(ids=np.arange(40)).equals(whole._with_known(ids=np.arange(40).astype(str)))


def test_pickles_and_copies_for_other_processes():
    whole = full()
    assert pickle.loads(pickle.dumps(whole)).equals(whole)
    assert copy.deepcopy(whole).equals(whole)


def test_repr_is_short():
    text = repr(full(n=2000))
    assert text == (
        "Predictions(logits float32 (2000, 4), split='test', ids, groups, posterior, provenance: model nested seed)"
    )
    assert len(repr(sample(split="s" * 999, provenance={f"{i}" * 99: i for i in range(99)}))) < 300


def test_docstring_example():
    results = doctest.testmod(record)
    assert results.attempted > 0
    assert results.failed == 0


def test_names_of_classes_one_column_and_impossible_classes(tmp_path):
    """What labels and scores people have is read as everywhere, and the names are kept with the file."""
    words = Predictions(probs=[[0.2, 0.8], [0.9, 0.1]], labels=["ham", "spam"], classes=["spam", "ham"], split="test")
    assert (words.labels.tolist(), words.classes) == ([1, 0], ("spam", "ham"))
    assert "classes: spam, ham" in repr(words)
    single = Predictions(probs=[0.8, 0.1], labels=["ham", "spam"], positive="ham", split="test")
    assert (single.classes, single.labels.tolist()) == (("spam", "ham"), [1, 0])
    np.testing.assert_allclose(single.scores, words.scores)
    for suffix in (".npz", ".csv", ".parquet"):
        words.save(tmp_path / f"a{suffix}")
        assert Predictions.load(tmp_path / f"a{suffix}").classes == ("spam", "ham")
    with pytest.raises(ValueError, match="parts must agree in classes"):
        Predictions.concatenate([words, Predictions(probs=words.probs, labels=words.labels, split="test")])
    masked = Predictions(logits=[[0.0, -np.inf], [1.0, 2.0]], labels=[0, 1], split="test")
    assert masked.probs[0].tolist() == [1.0, 0.0]
    scaled = Predictions(probs=[[1.0, 3.0]], labels=[1], split="test", normalize=True)
    assert scaled.probs.tolist() == [[0.25, 0.75]]
