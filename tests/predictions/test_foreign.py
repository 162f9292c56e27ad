"""Files that this package did not make: what they need not say, what the caller says, and mistakes of the caller."""

import decimal
import re

import numpy as np
import pytest
from support.prediction_samples import sample

from focalcal.core.checks import ProbabilityWarning
from focalcal.core.numerics import softmax
from focalcal.predictions import InputWarning, Predictions, PredictionsFileError

LOGITS = np.array([[2.0, 0.0, -1.0], [0.0, 1.0, 0.5]])
LABELS = np.array([0, 2])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archives_that_name_the_kind(tmp_path, save):
    path = tmp_path / "a.npz"
    save(path, logits=LOGITS, labels=LABELS.astype(np.uint8), weight=np.ones(7))
    loaded = Predictions.load(path)
    assert (loaded.kind, loaded.split, loaded.multilabel, dict(loaded.provenance)) == ("logits", "unknown", False, {})
    np.testing.assert_array_equal(loaded.logits, LOGITS)
    assert loaded.labels.tolist() == [0, 2]
    assert Predictions.load(path, split="val").split == "val"
    assert Predictions.load(path, dtype="float32").scores.dtype == np.float32
    assert Predictions.concatenate(Predictions.stream(path, rows=1)).equals(loaded)
    probs = sample(n=2, classes=3, kind="probs").probs
    save(path, probs=probs, labels=LABELS, ids=np.array(["a", "b"]), groups=np.array([1, 2]), posterior=probs)
    loaded = Predictions.load(path)
    assert (loaded.kind, loaded.ids.tolist(), loaded.groups.tolist()) == ("probs", ["a", "b"], [1, 2])
    np.testing.assert_array_equal(loaded.posterior, loaded.probs)
    bare = Predictions.load(path, posterior=False, ids=False, groups=False)
    assert (bare.ids, bare.groups, bare.posterior) == (None, None, None)


def test_arrays_are_named_by_the_caller(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, resnet=LOGITS, y=LABELS, name=np.array(["a", "b"]))
    loaded = Predictions.load(path, logits="resnet", labels="y", ids="name", split="test")
    assert (loaded.kind, loaded.n_classes, loaded.ids.tolist()) == ("logits", 3, ["a", "b"])
    remedy = r"got neither in 'resnet', 'y', 'name'; name one, e.g. load\(path, logits='...', labels='...'\)"
    with pytest.raises(PredictionsFileError, match=remedy):
        Predictions.load(path)
    with pytest.raises(
        PredictionsFileError, match="an array 'labels' with the labels, got 'resnet', 'y', 'name'; name"
    ):
        Predictions.load(path, logits="resnet")
    with pytest.raises(PredictionsFileError, match="an array 'nope' with the groups"):
        Predictions.load(path, logits="resnet", labels="y", groups="nope")


def test_npy_files(tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    names = np.array(["a", "b"])
    for name, array in {
        "logits": LOGITS,
        "labels": LABELS,
        "resnet": 2 * LOGITS,
        "y": LABELS[::-1],
        "n": names,
    }.items():
        np.save(f"{name}.npy", array)
    pair = Predictions.load("logits.npy", labels="labels.npy", split="test", mmap=True)
    assert (pair.kind, pair.split, pair.labels.tolist()) == ("logits", "test", [0, 2])
    np.testing.assert_array_equal(pair.logits, LOGITS)
    for way in (
        Predictions.load("logits.npy", split="test"),  # labels.npy beside it
        Predictions.load(tmp_path / "out", split="test"),
        Predictions.load(tmp_path / "out" / "logits.npy", labels=tmp_path / "out" / "labels.npy", split="test"),
        Predictions.concatenate(Predictions.stream("logits.npy", rows=1, labels="labels.npy", split="test")),
    ):
        assert way.equals(pair)
    other = Predictions.load("resnet.npy", logits="resnet.npy", labels="y.npy", ids="n.npy")
    np.testing.assert_array_equal(other.logits, 2 * LOGITS)
    assert (other.labels.tolist(), other.ids.tolist()) == ([2, 0], ["a", "b"])
    assert Predictions.load(".", logits="resnet", labels="y", ids="n").equals(other)
    with pytest.raises(PredictionsFileError, match="whether its scores are logits or probabilities"):
        Predictions.load("resnet.npy", labels="labels.npy")  # never logits.npy, which stands beside it
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PredictionsFileError, match=r"an array 'labels\.npy' with the labels, got .*or the path of a"):
        Predictions.load("out/logits.npy", labels="labels.npy")  # a path, and there is none
    assert Predictions.load("out/logits.npy", labels="y").labels.tolist() == [2, 0]  # a name: the file beside
    sample(n=2, classes=3).save("ours")
    np.save("ours/probs.npy", np.full((2, 3), 1 / 3))
    assert Predictions.load("ours/logits.npy").equals(sample(n=2, classes=3))
    theirs = Predictions.load("ours/probs.npy", labels="out/labels.npy")  # of which our header says nothing
    assert (theirs.kind, theirs.split) == ("probs", "unknown")


def test_the_kind_is_not_guessed(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, logits=LOGITS, probs=softmax(LOGITS), labels=LABELS)
    with pytest.raises(PredictionsFileError, match="got both in"):
        Predictions.load(path)
    assert Predictions.load(path, probs="probs").kind == "probs"
    assert Predictions.load(path, logits="logits").kind == "logits"
    np.savez(path, logits=LOGITS, labels=np.array([[1, 0, 1], [0, 0, 1]]))
    with pytest.raises(PredictionsFileError, match="multilabel=True"):
        Predictions.load(path)
    np.savez(path, logits=LOGITS, labels=np.array([[1, 0, 0], [0, 0, 1]]))  # one-hot, unless several labels are meant
    assert Predictions.load(path).labels.tolist() == [0, 2]
    assert Predictions.load(path, multilabel=True).labels.tolist() == [[True, False, False], [False, False, True]]


def test_arrays_stored_by_column_load_but_do_not_stream(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, logits=np.asfortranarray(np.tile(LOGITS, (3, 1))), labels=np.tile(LABELS, 3))
    np.testing.assert_array_equal(Predictions.load(path).logits, np.tile(LOGITS, (3, 1)))
    with pytest.raises(PredictionsFileError, match="row by row to be streamed, got column by column; load it"):
        list(Predictions.stream(path, rows=2))


def text(path, content, **options):
    path.write_bytes(content.encode())
    return Predictions.load(path, **options)


def test_csv_of_others(tmp_path):
    path = tmp_path / "a.csv"
    plain = text(path, "label,logit_0,logit_1\n0,1.5,-2\n1,0,3e-1\n")
    assert (plain.kind, plain.split, plain.ids, plain.scores.dtype) == ("logits", "unknown", None, np.float64)
    assert plain.logits.tolist() == [[1.5, -2.0], [0.0, 0.3]]
    odd = '\ufeff# made by hand\r\n\r\nlogit_1, logit_0,more,label\r\n-2, 1.5,x,0\r\n\r\n3e-1,+0,"a\r\nb",1\r\n\r\n'
    assert text(path, odd).equals(plain)
    named = text(path, "id,group,label,prob_0,prob_1\n007,a,0,1,0\n8,,1,0.25,0.75")
    assert (named.kind, named.ids.tolist(), named.groups.tolist()) == ("probs", ["007", "8"], ["a", ""])
    several = text(path, "label_0,label_1,prob_0,prob_1\n0,1,1,1\n1,1,0.5,0\n")
    assert several.multilabel
    assert several.labels.tolist() == [[False, True], [True, True]]
    single = text(path, "label_0,logit_0\n1,-3\n")
    assert (single.multilabel, single.n_classes) == (True, 1)


def test_columns_are_named_by_the_caller(tmp_path):
    path = tmp_path / "a.csv"
    content = "name,y,cat,dog,z_0,z_1\nn1,1,0.5,0.25,3,4\n"
    listed = text(path, content, logits=["dog", "cat"], labels="y", ids="name")
    assert (listed.logits.tolist(), listed.ids.tolist()) == ([[0.25, 0.5]], ["n1"])
    assert text(path, content, logits="z", labels="y").logits.tolist() == [[3.0, 4.0]]
    truths = text(path, "y_0,y_1,z_0,z_1\n1,0,3,4\n", logits="z", labels="y")
    assert truths.labels.tolist() == [[True, False]]
    assert text(path, "y,x,z_0,z_1\n1,0,3,4\n", logits="z", labels=["y", "x"]).equals(truths)
    binary = "y,p\n1,0.75\n0,0.5\n"
    loaded = text(path, binary, probs=["p"], labels="y", multilabel=True)
    assert (loaded.probs.tolist(), loaded.labels.tolist()) == ([[0.75], [0.5]], [[True], [False]])
    assert text(path, binary, probs=["p"], labels=["y"]).equals(loaded)


@pytest.mark.parametrize(
    ("header", "labels", "classes"),
    [
        ("y,p0,p1,p2", "0 2 1", None),
        ("y_true,p_0,p_1,p_2", "0.0 2.0 1.0", None),
        ("target,probs[0],probs[1],probs[2]", "0 2 1", None),
        ("label,proba.0,proba.1,proba.2", "0 2 1", None),
        ("label,p1,p2,p3", "1 3 2", (1, 2, 3)),
        ("label,prob_cat,prob_dog,prob_emu", "cat emu dog", ("cat", "dog", "emu")),
        ("label,prob_cat,prob_dog,prob_emu", "0 2 1", ("cat", "dog", "emu")),
        ("label,cat,dog,emu", "cat emu dog", ("cat", "dog", "emu")),
    ],
)
def test_columns_are_found_by_their_names(tmp_path, header, labels, classes):
    """The finding is told, and saying the same is silent."""
    content = [[0.5, 0.25, 0.25], [0.125, 0.125, 0.75], [0.0, 0.875, 0.125]]
    names, values = header.split(","), labels.split()
    rows = [",".join([value, *map(str, row)]) for value, row in zip(values, content, strict=True)]
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = dict(zip(names, [[_value(value) for value in values], *np.transpose(content).tolist()], strict=True))
    parquet.write_table(arrow.table(table), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("\n".join([header, *rows, ""]))
    for path in (tmp_path / "a.csv", tmp_path / "a.parquet"):
        with pytest.warns(InputWarning, match=re.escape(f"probs were taken from {str(names[1:])[1:-1]}")):
            found = Predictions.load(path)
        assert (found.kind, found.labels.tolist(), found.classes) == ("probs", [0, 2, 1], classes)
        assert found.probs.tolist() == content
        said = Predictions.load(path, probs=names[1:], labels=names[0], classes=classes)
        assert said.equals(found)
        with pytest.warns(InputWarning):
            assert Predictions.concatenate(Predictions.stream(path, rows=2)).equals(found)


def _value(text):
    return text if text.isalpha() else float(text) if "." in text else int(text)


def test_one_column_and_names_of_labels_in_files(tmp_path):
    path = tmp_path / "a.csv"
    spam = text(path, "answer,score\nyes,0.75\nno,0.5\n", probs="score", labels="answer", positive="yes")
    assert (spam.probs.tolist(), spam.labels.tolist()) == ([[0.25, 0.75], [0.5, 0.5]], [1, 0])
    assert spam.classes == ("no", "yes")
    with pytest.warns(InputWarning, match="probs were taken from 'p1'; say probs="):
        assert text(path, "label,p1\n1,0.75\n").probs.tolist() == [[0.25, 0.75]]
    words = "label,prob_0,prob_1\nham,0.25,0.75\nspam,0.5,0.5\n"
    with pytest.warns(InputWarning, match="sorted order: 'ham' -> 0, 'spam' -> 1"):
        assert text(path, words).labels.tolist() == [0, 1]
    assert text(path, words, classes=["spam", "ham"]).labels.tolist() == [1, 0]
    path.write_text("label,prob_0,prob_1\n" + "b,0.5,0.5\na,0.5,0.5\n" + "b,0.5,0.5\n" * 2)
    with pytest.warns(InputWarning) as caught:  # the first rows decide, once
        assert [part.labels.tolist() for part in Predictions.stream(path, rows=2)] == [[1, 0], [1, 1]]
    assert len(caught) == 1
    counts = "label,prob_0,prob_1\n1,1,3\n"
    assert text(path, counts, normalize=True).probs.tolist() == [[0.25, 0.75]]
    masked = text(path, "label,logit_0,logit_1\n0,1.5,-inf\n")
    assert masked.probs.tolist() == [[1.0, 0.0]]


def test_a_stream_mentions_rounded_digits_once(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("label,prob_0,prob_1,prob_2\n" + "0,0.3333,0.3333,0.3333\n" * 10)
    with pytest.warns(ProbabilityWarning) as caught:
        assert sum(part.n for part in Predictions.stream(path, rows=2)) == 10
    assert len(caught) == 1


def test_parquet_of_others(tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "a.parquet"
    frame = pandas.DataFrame({"id": ["a", "b"], "label": LABELS, **{f"logit_{k}": LOGITS[:, k] for k in range(3)}})
    frame.to_parquet(path)
    loaded = Predictions.load(path)
    np.testing.assert_array_equal(loaded.logits, LOGITS)
    assert (loaded.labels.tolist(), loaded.ids.tolist()) == ([0, 2], ["a", "b"])
    frame.astype({"id": "category", "label": "category"}).rename(columns={"label": "y"}).to_parquet(path)
    assert Predictions.load(path, labels="y").equals(loaded)
    pandas.DataFrame({"label": LABELS, "logits": list(LOGITS), "id": ["a", "b"]}).to_parquet(path)
    assert Predictions.load(path).equals(loaded)  # a list in each row
    assert Predictions.concatenate(Predictions.stream(path, rows=1)).equals(loaded)
    pandas.DataFrame({"y": [[1, 0, 1], [0, 0, 1]], "probs": [[0.5, 1.0, 0.0]] * 2}).to_parquet(path)
    several = Predictions.load(path, labels="y", multilabel=True)
    assert several.labels.tolist() == [[True, False, True], [False, False, True]]


@pytest.mark.parametrize("kind", ["bool", "datetime64[s]", "timedelta64[s]"])
def test_a_column_that_holds_no_numbers_is_named(tmp_path, kind):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"label": [0, 1], "logit_0": np.ones(2).astype(int).astype(kind), "logit_1": [0.5, 2.0]}
    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet")
    with pytest.raises(PredictionsFileError, match=r"must hold numbers, got logit_0 \w+.*, logit_1 double;"):
        Predictions.load(tmp_path / "a.parquet")
    parquet.write_table(arrow.table({"label": [0], "probs": [{"a": 0.5, "b": 0.5}]}), tmp_path / "a.parquet")
    with pytest.raises(PredictionsFileError, match="column 'probs' must hold numbers, got struct<"):
        Predictions.load(tmp_path / "a.parquet")
    halves = arrow.array([decimal.Decimal("0.25"), decimal.Decimal("0.5")])
    parquet.write_table(arrow.table({"label": [0, 1], "score": halves}), tmp_path / "a.parquet")
    assert Predictions.load(tmp_path / "a.parquet", probs="score").probs[:, 1].tolist() == [0.25, 0.5]
    several = {"label_0": [True, False], "label_1": [0, 1], "logit_0": [0.5, 1.5], "logit_1": [1.0, 2.0]}
    parquet.write_table(arrow.table(several), tmp_path / "a.parquet")
    assert Predictions.load(tmp_path / "a.parquet").labels.tolist() == [[True, False], [False, True]]


def test_published_logits(data_folder):
    path = data_folder / "logits" / "cifar10_test_logits_akamaster_resnets.npz"
    loaded = Predictions.load(path, logits="resnet20", split="test")
    assert tuple(loaded.logits.shape) == (10000, 10)
    # the error that the publisher of these networks reports for ResNet-20 on the test set
    assert (loaded.probs.argmax(1) != loaded.labels).mean() == pytest.approx(0.0827, abs=1e-9)
    assert Predictions.concatenate(Predictions.stream(path, rows=3000, logits="resnet20", split="test")).equals(loaded)


def test_published_probabilities(data_folder):
    path = data_folder / "logits" / "cifar_probs_netcal.npz"
    for which, classes in (("cifar10_lenet_5", 10), ("cifar100_densenet_bc_100", 100)):
        loaded = Predictions.load(path, probs=f"{which}_probs", labels=f"{which}_labels", split="test")
        assert (loaded.kind, loaded.n, loaded.n_classes) == ("probs", 10000, classes)
        with np.load(path) as archive:
            np.testing.assert_array_equal(loaded.probs, archive[f"{which}_probs"])
            np.testing.assert_array_equal(loaded.labels, archive[f"{which}_labels"])


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ({"logits": "logits", "probs": "logits"}, TypeError, "at most one of logits= and probs="),
        ({"split": ""}, TypeError, "split must be the name of the set, such as 'test', got ''"),
        ({"split": "s" * 1025}, ValueError, "split must have at most 1024 characters, got 1025"),
        ({"multilabel": "yes"}, TypeError, "multilabel must be True, False or None, got 'yes'"),
        ({"dtype": "int8"}, ValueError, "dtype must be one of"),
        ({"scores": "logits"}, TypeError, "scores"),
        ({"probs": []}, ValueError, r"probs must name columns, got \[\]"),
        ({"probs": ["logit_0", "logit_0"]}, ValueError, "probs must name every column once"),
        ({"posterior": ["logit_0", 1]}, TypeError, "posterior must name a key, a file or columns"),
        ({"logits": False}, TypeError, "logits must name a key.*pass a string or a list of strings"),
        ({"ids": ["a"]}, TypeError, "ids must name a key.*pass a string$"),
        ({"groups": True}, TypeError, "groups must name a key"),
    ],
)
def test_a_callers_mistake_is_not_the_files(tmp_path, names, error, message):
    path = tmp_path / "a.npz"
    sample().save(path)
    for read in (Predictions.load, Predictions.stream):
        with pytest.raises(error, match=message) as caught:
            read(path, **names)
        assert not isinstance(caught.value, PredictionsFileError)
    with pytest.raises(TypeError, match="mmap must be True or False, got 'no'"):
        Predictions.load(path, mmap="no")


def test_a_stream_outlives_the_name_of_its_file(tmp_path):
    path = tmp_path / "a.npz"
    sample(seed=1).save(path)
    batches = Predictions.stream(path, rows=20)
    first = next(batches)
    sample(seed=2).save(path)
    assert Predictions.concatenate([first, *batches]).equals(sample(seed=1))
