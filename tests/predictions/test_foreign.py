"""Files that this package did not make."""

import zipfile

import numpy as np
import pytest
import torch
from prediction_samples import sample

from focalcal.predictions import Predictions, PredictionsFileError

LOGITS = np.array([[2.0, 0.0, -1.0], [0.0, 1.0, 0.5]])
LABELS = np.array([0, 2])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archives_that_name_the_kind(tmp_path, save):
    path = tmp_path / "a.npz"
    save(path, logits=LOGITS, labels=LABELS.astype(np.uint8), weight=np.ones(7))
    loaded = Predictions.load(path)
    assert (loaded.kind, loaded.split, loaded.multilabel, dict(loaded.provenance)) == ("logits", "unknown", False, {})
    assert torch.equal(loaded.logits, torch.tensor(LOGITS))
    assert loaded.labels.tolist() == [0, 2]
    assert Predictions.load(path, split="val").split == "val"
    assert Predictions.load(path, dtype="float32").scores.dtype is torch.float32
    assert Predictions.concatenate(Predictions.stream(path, rows=1)).equals(loaded)
    probs = sample(n=2, classes=3, kind="probs").probs.numpy()
    save(path, probs=probs, labels=LABELS, ids=np.array(["a", "b"]), groups=np.array([1, 2]), posterior=probs)
    loaded = Predictions.load(path)
    assert loaded.kind == "probs"
    assert (loaded.ids.tolist(), loaded.groups.tolist()) == (["a", "b"], [1, 2])
    assert torch.equal(loaded.posterior, loaded.probs)
    assert Predictions.load(path, posterior=False, ids=False, groups=False).ids is None


def test_keys_are_named_by_the_caller(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, resnet=LOGITS, y=LABELS, name=np.array(["a", "b"]))
    loaded = Predictions.load(path, logits="resnet", labels="y", ids="name", split="test")
    assert (loaded.kind, loaded.n_classes, loaded.ids.tolist()) == ("logits", 3, ["a", "b"])
    remedy = r"got neither in 'resnet', 'y', 'name'; name one, e.g. load\(path, logits='...', labels='...'\)"
    with pytest.raises(PredictionsFileError, match=remedy):
        Predictions.load(path)
    with pytest.raises(PredictionsFileError, match="must hold 'labels', got 'resnet', 'y', 'name'"):
        Predictions.load(path, logits="resnet")
    with pytest.raises(PredictionsFileError, match="must hold 'nope'"):
        Predictions.load(path, logits="resnet", labels="y", groups="nope")
    with pytest.raises(TypeError, match="at most one of logits= and probs="):
        Predictions.load(path, logits="resnet", probs="resnet")
    with pytest.raises(ValueError, match="dtype must be one of"):
        Predictions.load(path, dtype="int8")
    with pytest.raises(TypeError):
        Predictions.stream(path, scores="resnet")


def test_both_kinds_need_a_word(tmp_path):
    path = tmp_path / "a.npz"
    probs = torch.tensor(LOGITS).softmax(1).numpy()
    np.savez(path, logits=LOGITS, probs=probs, labels=LABELS)
    with pytest.raises(PredictionsFileError, match="got both in"):
        Predictions.load(path)
    assert Predictions.load(path, probs="probs").kind == "probs"
    assert Predictions.load(path, logits="logits").kind == "logits"


def test_two_dimensional_labels_are_not_guessed(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, logits=LOGITS, labels=np.array([[1, 0, 0], [0, 0, 1]]))
    with pytest.raises(PredictionsFileError, match="multilabel=True"):
        Predictions.load(path)
    assert Predictions.load(path, multilabel=True).labels.tolist() == [[True, False, False], [False, False, True]]


def test_archives_that_cannot_be_mapped_or_streamed_say_so(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, logits=LOGITS, labels=LABELS)
    with pytest.raises(
        PredictionsFileError, match=r"uncompressed and aligned to be mapped, got compressed; .*stream it"
    ):
        Predictions.load(path, mmap=True)
    np.savez(path, logits=np.asfortranarray(np.tile(LOGITS, (3, 1))), labels=np.tile(LABELS, 3))
    assert torch.equal(Predictions.load(path).logits, torch.tensor(LOGITS).repeat(3, 1))
    with pytest.raises(PredictionsFileError, match="row by row to be streamed"):
        list(Predictions.stream(path, rows=2))
    with zipfile.ZipFile(tmp_path / "a.npz") as old, zipfile.ZipFile(tmp_path / "b.npz", "w") as new:
        for name in old.namelist():
            info = zipfile.ZipInfo(name)
            info.extra = b"\x35\xd9\x01\x00\x00"  # one byte too many
            new.writestr(info, old.read(name))
    with pytest.raises(PredictionsFileError, match="unaligned"):
        Predictions.load(tmp_path / "b.npz", mmap=True)
    assert Predictions.load(tmp_path / "b.npz").equals(Predictions.load(path))
    sample(dtype="bfloat16").save(path)
    with pytest.raises(PredictionsFileError, match="half precision"):
        Predictions.load(path, mmap=True)
    sample().save(tmp_path / "a.csv")
    with pytest.raises(PredictionsFileError, match=r"mmap=True maps the arrays of a \.npz"):
        Predictions.load(tmp_path / "a.csv", mmap=True)


def text(path, content, **options):
    path.write_bytes(content.encode(options.pop("encoding", "utf-8")))
    return Predictions.load(path, **options)


def test_csv_of_others(tmp_path):
    path = tmp_path / "a.csv"
    plain = text(path, "label,logit_0,logit_1\n0,1.5,-2\n1,0,3e-1\n")
    assert (plain.kind, plain.split, plain.ids, plain.scores.dtype) == ("logits", "unknown", None, torch.float64)
    assert plain.logits.tolist() == [[1.5, -2.0], [0.0, 0.3]]
    odd = text(
        path, '\ufeff# made by hand\r\n\r\nlogit_1, logit_0,more,label\r\n-2,1.5,x,0\r\n\r\n3e-1,0,"a\r\nb",1\r\n\r\n'
    )
    assert odd.equals(plain)
    assert text(path, "label,logit_0,logit_1\r0,1.5,-2\r1,0,3e-1").equals(plain)
    named = text(path, "id,group,label,prob_0,prob_1\n007,a,0,1,0\n8,,1,0.25,0.75\n")
    assert (named.kind, named.ids.tolist(), named.groups.tolist()) == ("probs", ["007", "8"], ["a", ""])
    several = text(path, "label_0,label_1,prob_0,prob_1\n0,1,1,1\n1,1,0.5,0\n")
    assert several.multilabel
    assert several.labels.tolist() == [[False, True], [True, True]]
    one = text(path, "label_0,logit_0\n1,-3\n")
    assert (one.multilabel, one.n_classes) == (True, 1)


def test_columns_are_named_by_the_caller(tmp_path):
    path = tmp_path / "a.csv"
    content = "name,y,cat,dog,z_0,z_1\nn1,1,0.5,0.25,3,4\n"
    listed = text(path, content, logits=["dog", "cat"], labels="y", ids="name")
    assert listed.logits.tolist() == [[0.25, 0.5]]
    assert listed.ids.tolist() == ["n1"]
    assert text(path, content, logits="z", labels="y").logits.tolist() == [[3.0, 4.0]]
    content = "name,y,x,z_0,z_1\nn1,1,0,3,4\n"
    truths = text(path, content, logits="z", labels=["y", "x"])
    assert truths.labels.tolist() == [[True, False]]


def test_rounded_digits_need_a_word(tmp_path):
    content = "label,prob_0,prob_1,prob_2\n0,0.333333,0.333333,0.333333\n"
    with pytest.raises(PredictionsFileError, match=r"got a sum of 0.999999 in row 0.*dtype='float32' allows"):
        text(tmp_path / "a.csv", content)
    assert text(tmp_path / "a.csv", content, dtype="float32").probs.dtype is torch.float32


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n\n", "whether its scores are logits"),
        ("label,logit_0,logit_1\n", r"must hold 1 row\(s\), got 0"),
        ("label,logit_0,logit_1\n0,1,2\n0,1\n", "line 3 must have 3 cells, as the header, got 2"),
        ("label,logit_0,logit_1\n0,1,2\n0,1,2,3\n", "line 3 must have 3 cells, as the header, got 4"),
        (
            '# x\nid,label,logit_0,logit_1\n"a\nb",0,1,2\nc,0,1,zwei\n',
            "line 5 must have a number under 'logit_1', got 'zwei'",
        ),
        ("label,logit_0,logit_1\n0,,2\n", "line 2 must have a number under 'logit_0', got ''"),
        ("label,logit_0,logit_1\n0,1_0,2\n", "line 2 must have a number under 'logit_0', got '1_0'"),
        ("label,logit_0,logit_1\n0.5,1,2\n", "line 2 must have an integer of 64 bits under 'label', got '0.5'"),
        ("label,logit_0,logit_1\n99999999999999999999,1,2\n", "line 2 must have an integer of 64 bits under 'label'"),
        ("label,logit_0,logit_1\n2,1,2\n", "labels must be from 0 to 1, got 2"),
        ("label,logit_0,logit_1\n0,nan,2\n", "logits must be finite, got nan in row 0"),
        ("label,logit_0,logit_1\n0,1e999,2\n", "logits must be finite, got inf in row 0"),
        ("label,logit_0,logit_2\n0,1,2\n", "must have a column 'logit_1', got 'label', 'logit_0', 'logit_2'"),
        ("label,logit_0\n0,1\n", "at least two classes"),
        ("logit_0,logit_1\n1,2\n", "must have a column 'label_0'"),
        ("label,logit_0,logit_0\n0,1,2\n", "column names must differ, got several of 'logit_0'"),
        ("label,label_0,logit_0,logit_1\n0,0,1,2\n", "one of 'label' and 'label_0'"),
        ("label,a,b\n0,1,2\n", "got neither in 'label', 'a', 'b'"),
        ("label,logit_0,prob_0\n0,1,2\n", "got both"),
        ("label;logit_0;logit_1\n0;1;2\n", "got neither in 'label;logit_0;logit_1'"),
        ('label,logit_0,logit_1\n0,1,"2\n', "unexpected end of data"),
        ("label,logit_0,logit_1\n\uff11,1,2\n", "line 2 must have an integer of 64 bits under 'label', got '\uff11'"),
        ("label,logit_0,logit_1\n0,1,\u0662\n", "line 2 must have a number under 'logit_1', got '\u0662'"),
        ("id,label,logit_0,logit_1\nb,0,1,2\na\0,0,1,2\n", r"line \d must be text without NUL .* under 'id', got 'a"),
        ("#id,label,logit_0,logit_1\na,0,1,2\n", "names must not begin with '#', got '#id,label.*take the '#' away"),
        ('label,logit_0,logit_1\n0,1,"2"x\n', "'label'|expected after"),
        ("label,logit_0,logit_1\n0,1," + "2" * 200_000 + "\n", "field larger than field limit"),
    ],
)
def test_text_that_is_wrong(tmp_path, content, message):
    with pytest.raises(PredictionsFileError, match=message):
        text(tmp_path / "a.csv", content)
    with pytest.raises(PredictionsFileError, match=message):
        list(Predictions.stream(tmp_path / "a.csv", rows=1))


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_text_in_another_encoding(tmp_path, encoding):
    with pytest.raises(PredictionsFileError, match="utf-8"):
        text(tmp_path / "a.csv", "id,label,logit_0,logit_1\né,0,1,2\n", encoding=encoding)


def test_parquet_of_others(tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "a.parquet"
    frame = pandas.DataFrame({"id": ["a", "b"], "label": LABELS, **{f"logit_{k}": LOGITS[:, k] for k in range(3)}})
    frame.to_parquet(path)
    loaded = Predictions.load(path)
    assert torch.equal(loaded.logits, torch.tensor(LOGITS))
    assert (loaded.labels.tolist(), loaded.ids.tolist()) == ([0, 2], ["a", "b"])
    frame.astype({"id": "category"}).rename(columns={"label": "y"}).to_parquet(path)
    assert Predictions.load(path, labels="y").equals(loaded)
    pandas.DataFrame({"label": LABELS, "logits": list(LOGITS), "id": ["a", "b"]}).to_parquet(path)
    assert Predictions.load(path).equals(loaded)  # a list in each row
    pandas.DataFrame({"y": [[1, 0, 1], [0, 0, 1]], "probs": [[0.5, 1.0, 0.0]] * 2}).to_parquet(path)
    several = Predictions.load(path, labels="y", multilabel=True)
    assert several.labels.tolist() == [[True, False, True], [False, False, True]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"label": [0, 1], "logits": [[1.0, 2.0], [1.0]]}, "lists of one length"),
        ({"label": [0, 1], "logits": [[1.0, 2.0], None]}, "must have a value in every row, got 1 null"),
        ({"label": [0, 1], "logits": [[1.0, 2.0], [1.0, None]]}, "without nulls"),
        (
            {"label": [0, None], "logit_0": [1.0, 2.0], "logit_1": [1.0, 2.0]},
            "column 'label' must have a value in every row",
        ),
        ({"label": [0, 1], "logit_0": [1.0, None], "logit_1": [1.0, 2.0]}, "column 'logit_0' must have a value"),
        ({"label": ["0", "1"], "logit_0": [1.0, 2.0], "logit_1": [1.0, 2.0]}, "labels must be an array of numbers"),
        ({"label": [0, 1], "logit_0": ["x", "y"], "logit_1": ["1", "2"]}, "logits must be an array of numbers"),
        ({"label": [0, 1], "logit_0": [1, 2], "logit_1": [1, 2]}, "logits must be floating point"),
        ({"label": [0, 1], "a": [1.0, 2.0]}, "got neither in 'label', 'a'"),
        ({"label": [], "logit_0": [], "logit_1": []}, r"must hold some row\(s\), got 0"),
    ],
)
def test_tables_that_are_wrong(tmp_path, columns, message):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet")
    with pytest.raises(PredictionsFileError, match=message):
        Predictions.load(tmp_path / "a.parquet")


def test_a_table_that_unpacks_to_far_too_much(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    schema = arrow.schema([("label", arrow.int8()), ("logit_0", arrow.float32()), ("logit_1", arrow.float32())])
    rows = 30_000_000
    with parquet.ParquetWriter(tmp_path / "a.parquet", schema) as writer:
        zeros = [np.zeros(rows, kind) for kind in (np.int8, np.float32, np.float32)]
        writer.write_table(arrow.table(zeros, schema=schema))
    with pytest.raises(PredictionsFileError, match="must unpack to at most"):
        Predictions.load(tmp_path / "a.parquet")


def test_published_logits(data_folder):
    path = data_folder / "logits" / "cifar10_test_logits_akamaster_resnets.npz"
    loaded = Predictions.load(path, logits="resnet20", split="test")
    assert tuple(loaded.logits.shape) == (10000, 10)
    # the error that the publisher of these networks reports for ResNet-20 on the test set
    assert float((loaded.probs.argmax(1) != loaded.labels).double().mean()) == pytest.approx(0.0827, abs=1e-9)
    assert Predictions.concatenate(Predictions.stream(path, rows=3000, logits="resnet20", split="test")).equals(loaded)


def test_published_probabilities(data_folder):
    path = data_folder / "logits" / "cifar_probs_netcal.npz"
    for which, classes in (("cifar10_lenet_5", 10), ("cifar100_densenet_bc_100", 100)):
        loaded = Predictions.load(path, probs=f"{which}_probs", labels=f"{which}_labels", split="test")
        assert (loaded.kind, loaded.n, loaded.n_classes) == ("probs", 10000, classes)
        with np.load(path) as archive:
            np.testing.assert_array_equal(loaded.probs, archive[f"{which}_probs"])
            np.testing.assert_array_equal(loaded.labels, archive[f"{which}_labels"])


def test_a_binary_task_in_one_column(tmp_path):
    path = tmp_path / "a.csv"
    content = "y,p\n1,0.75\n0,0.5\n"
    loaded = text(path, content, probs=["p"], labels="y", multilabel=True)
    assert (loaded.probs.tolist(), loaded.labels.tolist()) == ([[0.75], [0.5]], [[True], [False]])
    assert text(path, content, probs=["p"], labels=["y"]).equals(loaded)


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ({"split": 5}, TypeError, "split must be the name of the set, such as 'test', got 5"),
        ({"split": ""}, TypeError, "split must be the name of the set, such as 'test', got ''"),
        ({"split": "s" * 1025}, ValueError, "split must have at most 1024 characters, got 1025"),
        ({"multilabel": "yes"}, TypeError, "multilabel must be True, False or None, got 'yes'"),
        ({"probs": []}, ValueError, r"probs must name columns, got \[\]"),
        ({"probs": ""}, ValueError, "probs must name columns, got ''"),
        ({"probs": ["logit_0", "logit_0"]}, ValueError, "probs must name every column once, got 'logit_0' again"),
        ({"labels": ("label", "label")}, ValueError, "labels must name every column once"),
        ({"posterior": ["logit_0", 1]}, TypeError, "posterior must name a key or columns"),
        ({"logits": 3}, TypeError, "logits must name a key or columns, got 3; pass a string or a list of strings"),
        ({"logits": False}, TypeError, "logits must name a key or columns"),
        ({"ids": ["a"]}, TypeError, "ids must name a key or columns, got .*pass a string$"),
        ({"groups": True}, TypeError, "groups must name a key or columns"),
    ],
)
@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".csv"])
def test_a_callers_mistake_is_not_the_files(tmp_path, suffix, names, error, message):
    path = tmp_path / f"a{suffix}"
    sample().save(path)
    for read in (Predictions.load, Predictions.stream):
        with pytest.raises(error, match=message) as caught:
            read(path, **names)
        assert not isinstance(caught.value, PredictionsFileError)
    with pytest.raises(TypeError, match="mmap must be True or False, got 'no'"):
        Predictions.load(path, mmap="no")


def test_a_streams_error_says_where_it_counts_from(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("label,logit_0,logit_1\n0,1,2\n0,1,2\n0,1,2\n0,1,nan\n")
    chunks = Predictions.stream(path, rows=2)
    assert next(chunks).n == 2
    with pytest.raises(PredictionsFileError, match=r"in row 1;.*\(rows counted from row 2 of the file\)"):
        next(chunks)


def test_a_stream_outlives_the_name_of_its_file(tmp_path):
    path = tmp_path / "a.npz"
    sample().save(path)
    chunks = Predictions.stream(path, rows=10**15)
    sample(seed=1).save(path)
    assert next(chunks).equals(sample(seed=1))
    chunks = Predictions.stream(path, rows=20)
    first = next(chunks)
    sample(seed=2).save(path)
    assert Predictions.concatenate([first, *chunks]).equals(sample(seed=1))
