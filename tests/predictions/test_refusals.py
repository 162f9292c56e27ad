"""Files that are cut off, damaged, hostile, foreign or from the future: one error that names the file and a remedy."""

import io
import json
import pickle
import re
import shutil
import struct
import subprocess
import sys
import warnings
import zipfile
from contextlib import suppress
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.forked import ended, started
from support.prediction_samples import SUFFIXES, full, sample

from focalcal.predictions import Predictions, PredictionsFileError, header, text_tables

# A flipped bit can leave digits of a .csv that miss a sum of one by no more than printing would.
# A damaged file of ours may look like one of others, of which more is found than is said.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::focalcal.{name}")
    for name in ("core.checks.ProbabilityWarning", "InputWarning")
]

every_suffix = pytest.mark.parametrize("suffix", SUFFIXES)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What a file holds, and its bytes in each format."""
    folder, made = tmp_path_factory.mktemp("whole"), full(n=12)
    for suffix in SUFFIXES:
        made.save(folder / f"a{suffix}")
    return made, {suffix: (folder / f"a{suffix}").read_bytes() for suffix in SUFFIXES}


def outcomes(path, **names):
    """The file loaded and streamed: predictions or errors."""
    for read in (
        lambda: Predictions.load(path, **names),
        lambda: Predictions.concatenate(Predictions.stream(path, rows=5, **names)),
    ):
        try:
            yield read()
        except PredictionsFileError as error:
            yield error


def refused(path, reason="", **names):
    for outcome in outcomes(path, **names):
        assert isinstance(outcome, PredictionsFileError), outcome
        message = str(outcome)
        assert message.startswith(f"{path}: ")
        assert "\n" not in message
        assert reason in message
        assert "; " in message  # behind which the remedy stands


@every_suffix
def test_a_cut_file_never_loads(tmp_path, whole, suffix):
    path, content = tmp_path / f"a{suffix}", whole[1][suffix]
    for length in {*range(0, len(content), len(content) // 40), *range(len(content) - 10, len(content))}:
        path.write_bytes(content[:length])
        refused(path)


@every_suffix
@given(data=st.data())
@settings(max_examples=80)
def test_a_flipped_bit_is_noticed_or_harmless(tmp_path_factory, whole, suffix, data):
    made, contents = whole
    content = bytearray(contents[suffix])
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path_factory.getbasetemp() / f"flipped{suffix}"
    path.write_bytes(content)
    for outcome in outcomes(path):
        assert isinstance(outcome, (PredictionsFileError, Predictions))
        # Members of a .npz have checksums, pages of .parquet too, its footer not. Text has none.
        if suffix == ".npz" and isinstance(outcome, Predictions):
            assert outcome.equals(made)


def test_no_bit_of_an_archives_directory_changes_what_it_says(tmp_path, whole):
    made, content = whole[0], whole[1][".npz"]
    path = tmp_path / "a.npz"
    for at in range(content.index(b"PK\x01\x02"), len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)
        for outcome in outcomes(path):
            assert isinstance(outcome, PredictionsFileError) or outcome.equals(made), at


def test_a_damaged_page_of_parquet_is_noticed(tmp_path, whole):
    made, content = whole[0], whole[1][".parquet"]
    at = content.index(np.float32(made.scores[3, 1]).tobytes())
    (tmp_path / "a.parquet").write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    refused(tmp_path / "a.parquet", "CRC")


def test_no_flipped_bit_of_a_footer_ends_the_process(tmp_path):
    """Those of the schema, of which 24 made pyarrow abort, and in the rest a bit that made others do so."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns, path = {"label": [0, 1], "logit_0": [0.0, 2.0], "logit_1": [1.0, 0.0]}, tmp_path / "a.parquet"
    parquet.write_table(arrow.table(columns), path, store_schema=False)
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    chunks = content.index(b"logit_1", footer) + len("logit_1")
    flips = [*product(range(footer, chunks), range(8)), *product(range(chunks, len(content)), [6])]

    def flip_each_bit():
        warnings.simplefilter("ignore")  # of names that differ by a bit
        for at, bit in flips:
            damaged = bytearray(content)
            damaged[at] ^= 1 << bit
            path.write_bytes(damaged)
            with suppress(PredictionsFileError):
                Predictions.load(path)

    assert ended(started(flip_each_bit)) == 0


def test_no_flipped_bit_of_a_footer_changes_a_number(tmp_path, whole):
    made, content = whole[0], whole[1][".parquet"]
    path = tmp_path / "a.parquet"
    for name in ("logit_0", "posterior_0"):  # to logit_4, which would be the last class
        at = content.index(name.encode()) + len(name) - 1
        path.write_bytes(content[:at] + b"4" + content[at + 1 :])
        refused(path, f"must have a column '{name}'")
    parquet = pytest.importorskip("pyarrow.parquet")
    made.save(path)
    group = parquet.read_metadata(path).row_group(0)
    codecs = {group.column(at).compression for at in range(3, group.num_columns)}
    assert codecs == {"UNCOMPRESSED"}  # Snappy is a bit away from none, which reads what it finds


def test_a_row_that_is_gone_is_missed(tmp_path, whole):
    lines = whole[1][".csv"].splitlines(keepends=True)
    (tmp_path / "a.csv").write_bytes(b"".join(lines[:-1]))
    refused(tmp_path / "a.csv", "must hold 12 row(s), got 11; it may be cut off")


@every_suffix
@given(content=st.binary(min_size=1, max_size=200), start=st.sampled_from([b"", b"PK\x03\x04", b"PAR1", b"label,a\n"]))
@settings(max_examples=40)
def test_noise_is_refused(tmp_path_factory, suffix, content, start):
    path = tmp_path_factory.getbasetemp() / f"noise{suffix}"
    path.write_bytes(start + content)
    refused(path)


def test_paths_that_hold_nothing(tmp_path):
    for suffix in SUFFIXES:
        refused(tmp_path / f"missing{suffix}", "must exist, got nothing of that name; check the path")
        (tmp_path / f"empty{suffix}").touch()
        refused(tmp_path / f"empty{suffix}")
    refused(tmp_path / "missing", "must exist")
    (tmp_path / "folder").mkdir()
    refused(tmp_path / "folder", "got neither in nothing")
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(1))
    refused(
        tmp_path / "a.pkl",
        "suffix must be one of .npz, .npy, .parquet, .csv, .tsv, .txt, .jsonl, .ndjson, or none for a folder of .npy",
    )


@pytest.mark.parametrize(
    ("log", "below", "reason"),
    [
        ("_delta_log/00000000000000000000.json", "part-0.parquet", "a Delta table in {}, .*deltalake.DeltaTable"),
        ("_delta_log/_last_checkpoint", "day=1/hour=2/part-0.parquet", "a Delta table in {}, .*deltalake.DeltaTable"),
        ("metadata/v9.metadata.json", "data/a.parquet", "an Iceberg table in {}, .*pyiceberg.*v9.metadata.json"),
        ("metadata/00010-7c3c.metadata.json", "data/day=1/a.parquet", "an Iceberg table .*00010-7c3c.metadata.json"),
        ("metadata/00010-7c3c.gz.metadata.json", "a.parquet", "an Iceberg table .*00010-7c3c.gz.metadata.json"),
    ],
)
def test_files_of_a_table_with_versions_are_refused(tmp_path, monkeypatch, log, below, reason):
    for package in ("deltalake", "pyiceberg", "pyiceberg.table"):
        monkeypatch.setitem(sys.modules, package, None)
    table = tmp_path / "table"
    part = table / below
    part.parent.mkdir(parents=True)
    sample().save(part)
    monkeypatch.chdir(part.parent)
    assert Predictions.load(part.name).n == 40  # in a folder like another
    (table / log).parent.mkdir()
    (table / log).touch()
    (table / log).with_name("00002-aa.metadata.json").touch()
    (table / log).with_name("notes.metadata.json").touch()
    for path in (part, table, part.parent, Path(part.name)):
        refused(path, "plain files, got ")
        with pytest.raises(PredictionsFileError, match=reason.format(re.escape(str(table))) + r".*to_parquet\('plain"):
            Predictions.load(path)
    sample().save(part.with_suffix(".csv"))
    assert Predictions.load(part.with_suffix(".csv")).n == 40  # such tables have no .csv files


class Trap:
    def __reduce__(self):
        return (exec, ("import pytest; pytest.fail('code of a file was run')",))


def test_bytes_behind_an_array_are_refused_when_it_is_mapped_too(tmp_path):
    sample().save(tmp_path / "a")
    with (tmp_path / "a" / "logits.npy").open("ab") as file:
        file.write(b"more")
    for mmap in (False, True):
        with pytest.raises(PredictionsFileError, match="'logits' must end where its shape says, got more bytes"):
            Predictions.load(tmp_path / "a", mmap=mmap)


def npy(array=None, *, stated=None, data=b"") -> bytes:
    out = io.BytesIO()
    if stated is None:
        np.save(out, array, allow_pickle=True)
    else:
        text = repr(stated).encode() + b"\n"
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data)
    return out.getvalue()


GOOD = {"logits": npy(np.eye(2)), "labels": npy(np.array([0, 1]))}


def archive(path, compression=zipfile.ZIP_STORED, **members):
    with zipfile.ZipFile(path, "w", compression) as out:
        for name, content in members.items():
            out.writestr(f"{name}.npy", content)


def test_pickled_objects_are_never_opened(tmp_path):
    trap = npy(np.array([Trap(), Trap()], dtype=object))
    with pytest.raises(pytest.fail.Exception):
        np.load(io.BytesIO(trap), allow_pickle=True)  # the trap is armed
    path = tmp_path / "a.npz"
    archive(path, **GOOD, ids=trap)
    refused(path, "'ids' must be an array of numbers or text")
    assert Predictions.load(path, ids=False).n == 2  # the rest is fine
    archive(path, **GOOD, focalcal=npy(np.array(Trap(), dtype=object)))
    refused(path, "pickled objects are never opened")
    for name in ("a.npz", "logits.npy"):
        (tmp_path / name).write_bytes(pickle.dumps(Trap()))
        refused(tmp_path / name, labels="labels.npy")
    (tmp_path / "logits.npy").write_bytes(trap)
    (tmp_path / "labels.npy").write_bytes(GOOD["labels"])
    refused(tmp_path / "logits.npy", "pickled objects are never opened")


@pytest.mark.parametrize("shape", [(2, 2**40), (2**62, 2**62), (2, 2), (2, 4), (1, 2), (-1, 2)])
def test_shapes_that_a_file_does_not_hold(tmp_path, shape):
    stated = {"descr": "<f8", "fortran_order": False, "shape": shape}
    archive(tmp_path / "a.npz", **GOOD | {"logits": npy(stated=stated, data=bytes(48))})  # of shape (2, 3)
    refused(tmp_path / "a.npz")


def zeros(path, rows):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"label": np.zeros(rows, int), "logits": np.zeros((rows, 2)).tolist()}), path)


def long_lists(path, rows):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    few = rows // 100
    parquet.write_table(arrow.table({"label": np.zeros(few, int), "logits": np.zeros((few, 200)).tolist()}), path)


def repeated_text(path, rows):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"id": ["a" * 1000] * rows, "label": np.zeros(rows, int)}
    columns |= {f"logit_{k}": np.zeros(rows, np.float32) for k in range(2)}
    parquet.write_table(arrow.table(columns), path)


def long_name(path, rows):
    path.write_text("id,label,logit_0,logit_1\n" + "a" * 1000 + ",0,1,2\n" + "b,0,1,2\n" * rows)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.npz", lambda path, rows: np.savez_compressed(path, logits=np.zeros((rows, 2)), labels=np.zeros(rows, int))),
        ("a.parquet", zeros),
        ("a.parquet", long_lists),
        ("a.parquet", repeated_text),
        ("a.csv", long_name),
    ],
)
def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch, name, write):
    rows = 20_000
    write(tmp_path / name, rows)
    assert Predictions.load(tmp_path / name).n >= rows // 100  # far below the limit
    monkeypatch.setattr(header, "ALLOWED_BYTES", 100 * rows // 8)
    monkeypatch.setattr(header, "ALLOWED_RATIO", 2)
    with pytest.raises(
        PredictionsFileError, match=rf"{name}: a file of \d+ bytes must unpack to at most.*do not trust"
    ):
        Predictions.load(tmp_path / name)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressions_that_unpack_without_a_limit(tmp_path, compression):
    archive(tmp_path / "a.npz", compression, **GOOD)
    refused(tmp_path / "a.npz", "must be stored or deflated")
    archive(tmp_path / "a.npz", zipfile.ZIP_DEFLATED, **GOOD)
    assert Predictions.load(tmp_path / "a.npz").n == 2


def stated(**changed) -> str:
    values = {"schema": 1, "kind": "logits", "multilabel": False, "split": "test", "rows": 2, "dtype": "float64"}
    return json.dumps(values | {"ids": None, "groups": None, "posterior": None, "provenance": {}} | changed)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (stated(schema=2), "schema must be at most 1, got 2; read it with a newer focalcal"),
        (stated(schema=True), "must be the documented header"),
        (stated(kind="scores"), "must be the documented header"),
        (stated(rows="2"), "must be the documented header"),
        (stated(rows=3), "must hold 3 row(s), got 2"),
        (stated(kind="probs"), "prob"),
        (stated(split=""), "split must be the name"),
        (stated(ids="str"), "id"),
        (stated(posterior="float64"), "posterior"),
        (stated(multilabel=True), "shape"),
        (stated(provenance={"a": float("nan")}), "provenance must be what JSON can say"),
        ("{}", "schema"),
        ("[]", "TypeError"),
        ("{", "JSONDecodeError"),
        ("[" * 100_000, "RecursionError"),
    ],
)
@every_suffix
def test_headers_that_lie(tmp_path, suffix, text, reason):
    path = tmp_path / f"a{suffix}"
    with_header(path, text)
    refused(path, reason)


def with_header(path, text):
    columns = {"label": [0, 1], "logit_0": [1.0, 0.0], "logit_1": [0.0, 1.0]}
    if path.suffix == ".npz":
        archive(path, **GOOD, focalcal=npy(np.array(text)))
    elif path.suffix == ".csv":
        path.write_text(f"# focalcal: {text}\nlabel,logit_0,logit_1\n0,1.0,0.0\n1,0.0,1.0\n")
    else:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table(columns).replace_schema_metadata({"focalcal": text}), path)


def test_a_header_that_does_not_lie(tmp_path):
    for suffix in SUFFIXES:
        with_header(tmp_path / f"a{suffix}", stated())
        assert Predictions.load(tmp_path / f"a{suffix}").split == "test"


@every_suffix
def test_values_are_checked_when_they_are_read(tmp_path, suffix):
    good, path = sample(n=12), tmp_path / f"a{suffix}"
    scores = good.scores.copy()
    scores[7, 2] = float("inf")
    good._with_known(scores=scores).save(path)
    with pytest.raises(PredictionsFileError, match=r"a\.\w+: logits must be finite, got inf in row 7"):
        Predictions.load(path)
    batches = Predictions.stream(path, rows=5)
    assert next(batches).n == 5
    with pytest.raises(PredictionsFileError, match=r"inf in row 2;.*\(rows counted from row 5 of the file\)"):
        next(batches)
    good._with_known(labels=good.labels + 4).save(path)
    refused(path, "labels must be from 0 to 3")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("\n\n", "must begin with the names of its columns, got nothing"),
        ("label,logit_0,logit_1\n", "at least one row, got none"),
        ("label,logit_0,logit_1\n\n", "at least one row"),
        ("label,logit_0,logit_1\n0,1,2\n0,1\n", "Row #2: Expected 3 columns, got 2: 0,1"),
        ("label,logit_0,logit_1\n0,,2\n", "column 'logit_0' must hold a number in every row, got '' in row 0"),
        ("label,logit_0,logit_1\n0,1_0,2\n", "got '1_0' in row 0"),
        ("label,logit_0,logit_1\n0.5,1,2\n", "labels must be whole numbers, the index of each row's class, got 0.5"),
        ("label,logit_0,logit_1\n1e23,1,2\n", "labels must be whole numbers, the index of each row's class, got 1e+23"),
        ("label,logit_0,logit_1\n2,1,2\n", "labels must be from 0 to 1, got 2"),
        ("label,logit_0,logit_1\n0,nan,2\n", "logits must be finite, got nan in row 0"),
        ("label,logit_0,logit_2\n0,1,2\n", "must have a column 'logit_1', got 'label', 'logit_0', 'logit_2'"),
        ("label,logit_0\n2,1\n", "labels must be from 0 to 1, got 2"),
        ("logit_0,logit_1\n1,2\n", "must have a column 'label', got 'logit_0', 'logit_1'; name the columns"),
        ("label,logit_0,logit_0\n0,1,2\n", "column names must differ, got several of 'logit_0'"),
        ("label,label_0,logit_0,logit_1\n0,0,1,2\n", "labels must be in one place, got 'label', 'label_0'; say which"),
        ("target,y,logit_0,logit_1\n0,0,1,2\n", "labels must be in one place, got 'target', 'y'; say which"),
        (
            "label,p0,p1,proba_0,proba_1\n0,1,0,1,0\n",
            "probs must be in one set of columns, got 'p0', 'p1' or 'proba_0'",
        ),
        ("label,p0,p_0,p1\n0,1,0,1\n", "one column must be number 0 of 'p', got 'p0', 'p_0'; list the columns"),
        ("label,p1,p3\n1,1,0\n", "must have a column 'p_2', got 'label', 'p1', 'p3'"),
        ("label,cat,dog\n0,0.5,0.5\n", "got neither in 'label', 'cat', 'dog'"),
        ("label,cat,dog\nemu,0.5,0.5\n", "labels must be among the classes 'cat', 'dog', got 'emu' in row 0"),
        ("label:logit_0:logit_1\n0:1:2\n", "got neither in 'label:logit_0:logit_1'"),
        ('label,logit_0,logit_1\n0,1,"2\n', "column 'logit_1' must hold a number in every row, got '2"),
        ("id,label,logit_0,logit_1\nb,0,1,2\na\0,0,1,2\n", "ids must be text"),
        ("id,label,logit_0,logit_1\n" + "a" * 2000 + ",0,1,2\n", "at most 1024 characters"),
    ],
)
@pytest.mark.filterwarnings("ignore::focalcal.InputWarning")
def test_text_that_is_wrong(tmp_path, content, reason):
    (tmp_path / "a.csv").write_text(content)
    for outcome in outcomes(tmp_path / "a.csv"):
        assert isinstance(outcome, PredictionsFileError)
    with pytest.raises(PredictionsFileError) as caught:
        Predictions.load(tmp_path / "a.csv")
    assert reason in str(caught.value)


@pytest.mark.parametrize("cell", ["", "NA", "0,5", "null"])
@pytest.mark.parametrize("comment", ["", "# made elsewhere\n"])
def test_a_score_that_is_no_number_is_named(tmp_path, cell, comment):
    path = tmp_path / "a.csv"
    quoted = f'"{cell}"' if "," in cell else cell
    path.write_text(f"{comment}label,logit_0,other,logit_1\n1,0.3,x,0.7\n0,0.1,x,{quoted}\n1,0.5,x,0.5\n")
    refused(path, f"a.csv: column 'logit_1' must hold a number in every row, got '{cell}' in row 1; ")
    assert all("cut off" not in str(outcome) for outcome in outcomes(path))


@pytest.mark.parametrize("cell", ["-2.44e1308556", "2.44e1308556", '"-1e400"', "-" + "9" * 400])
@pytest.mark.parametrize("infinite", ["-inf", "-Infinity"])
def test_a_number_that_overflows_is_no_infinity(tmp_path, monkeypatch, cell, infinite):
    monkeypatch.setattr(text_tables, "_BLOCK", 1000)  # that is read in several blocks, of which the first has none
    path, few = tmp_path / "a.csv", "0,1,2\n" * 300
    path.write_text(f"# made elsewhere\nlabel,logit_0,logit_1\n{few}0,1e-400,{infinite}\n{few}1,-inf,{cell}\n{few}")
    got = cell.strip('"')[:50]
    refused(path, f"column 'logit_1' must hold numbers within the range of double, got '{got}' in row 601; fix it")
    path.write_text(path.read_text().replace(cell, "-1e-400"))
    assert Predictions.load(path).logits[[300, 601]].tolist() == [[0.0, float("-inf")], [float("-inf"), 0.0]]


def test_a_number_that_its_type_cannot_hold_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("label,logit_0,logit_1\n0,1,2\n0,-1e39,-inf\n")
    assert Predictions.load(tmp_path / "a.csv").logits[1].tolist() == [-1e39, float("-inf")]
    refused(tmp_path / "a.csv", "logits must fit in float32, got -1e+39; load them as float64", dtype="float32")
    for suffix, width in product(SUFFIXES, ("float32", "float16")):
        path = tmp_path / f"{width}{suffix}"
        with_header(path, stated(dtype="float64"))
        assert Predictions.load(path).n == 2
        huge = np.array([[-1e39, 0.0], [0.0, 1.0]])
        if suffix == ".npz":
            archive(path, **GOOD | {"logits": npy(huge)}, focalcal=npy(np.array(stated(dtype=width))))
        elif suffix == ".csv":
            path.write_text(f"# focalcal: {stated(dtype=width)}\nlabel,logit_0,logit_1\n0,-1e39,0.0\n1,0.0,1.0\n")
        else:
            arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
            table = arrow.table({"label": [0, 1], "logit_0": huge[:, 0], "logit_1": huge[:, 1]})
            parquet.write_table(table.replace_schema_metadata({"focalcal": stated(dtype=width)}), path)
        refused(path, "float")


def test_a_label_that_is_empty_is_no_class(tmp_path):
    (tmp_path / "a.csv").write_text("label,logit_0,logit_1\nyes,0.3,0.7\n,0.1,0.2\nyes,0.5,0.5\n")
    refused(
        tmp_path / "a.csv", "column 'label' must have a label in every row, got nothing in row 1; leave such rows out"
    )


PAIR = [1.0, 2.0]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"label": [0, 1], "logits": [PAIR, [1.0]]}, "lists of one length"),
        ({"label": [0, 1], "logits": [PAIR, None]}, "must have a value in every row, got 1 null"),
        ({"label": [0, 1], "logits": [PAIR, [1.0, None]]}, "without nulls"),
        ({"label": [0, None], "logit_0": PAIR, "logit_1": PAIR}, "column 'label' must have a value in every row"),
        ({"label": ["a", "a"], "logit_0": PAIR, "logit_1": PAIR}, "classes must be 2 different names"),
        (
            {"label": [0, 1], "logit_0": ["x", "y"], "logit_1": ["1", "2"]},
            "must hold numbers, got the text 'x' in row 0",
        ),
        ({"label": [0, 1], "logit_0": [1, 2], "logit_1": [1, 2]}, "logits must be floating point"),
        ({"id": [0.5, 1.5], "label": [0, 1], "logit_0": PAIR, "logit_1": PAIR}, "ids must be integers or strings"),
        ({"label": [], "logit_0": [], "logit_1": []}, "row"),
    ],
)
def test_tables_that_are_wrong(tmp_path, columns, reason):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet", reason)


def test_a_folder_that_lacks_what_its_header_states(tmp_path):
    full().save(tmp_path / "whole")
    for name in ("logits", "labels", "ids", "posterior"):
        shutil.copytree(tmp_path / "whole", tmp_path / name)
        (tmp_path / name / f"{name}.npy").unlink()
        refused(tmp_path / name, f"there must be an array '{name}'")
    np.save(tmp_path / "whole" / "labels.npy", np.zeros(39, int))
    refused(tmp_path / "whole", "39")


MEASURE = """
import resource, sys
import pyarrow.csv
from focalcal.predictions import Predictions
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    try:
        print(Predictions.load(path))
    except ValueError as error:
        print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_csv_of_very_many_columns_takes_little_memory(tmp_path):
    """Arrow takes kilobytes for a column: these took 1,000 MB."""
    columns, rest = 100_000, ",0" * 99_998
    for name, first, row in (("scores", "prob_", "0,0"), ("named", "c", "c1,0"), ("others", "c", "0,1")):
        names = ["prob_0", "label"] if name == "others" else ["label", f"{first}0"]
        header = ",".join([*names, *(f"{first}{k}" for k in range(1, columns - 1))])
        (tmp_path / f"{name}.csv").write_text(f"{header}\n{row}{rest}\n")
    command = [sys.executable, "-W", "ignore", "-c", MEASURE]
    command += [str(tmp_path / f"{name}.csv") for name in ("scores", "named", "others")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    scores, named, others, megabytes = done.stdout.splitlines()
    assert "must have at most 32,768 columns of scores and labels, got 100,000; name those that are meant" in scores
    assert "must have at most 32,768 columns of scores and labels, got 100,000" in named
    assert others.startswith("Predictions(probs float64 (1, 2)")  # two columns of many are read
    assert int(megabytes) < 150
