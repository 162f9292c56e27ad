"""Files that are cut off, damaged, hostile or from the future: one error, never wrong numbers from a .npz."""

import io
import json
import pickle
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from prediction_samples import SUFFIXES, full, sample

from focalcal.predictions import Predictions, PredictionsFileError

every_suffix = pytest.mark.parametrize("suffix", SUFFIXES)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of one file in each format, and what they hold."""
    folder, made = tmp_path_factory.mktemp("whole"), full(n=12)
    for suffix in SUFFIXES:
        made.save(folder / f"a{suffix}")
    return made, {suffix: (folder / f"a{suffix}").read_bytes() for suffix in SUFFIXES}


def each_way(path, **names):
    """The file loaded, streamed and, where there is such a thing, mapped: results and errors."""
    ways = [
        lambda: Predictions.load(path, **names),
        lambda: Predictions.concatenate(Predictions.stream(path, rows=5, **names)),
    ]
    if path.suffix == ".npz":
        ways.append(lambda: Predictions.load(path, mmap=True, **names))
    for way in ways:
        try:
            yield way()
        except PredictionsFileError as error:
            yield error


def refused(path, message, **names):
    for outcome in each_way(path, **names):
        assert isinstance(outcome, PredictionsFileError), outcome
        assert str(outcome).startswith(f"{path}: ")
        assert message in str(outcome)


@every_suffix
def test_a_cut_file_never_loads(tmp_path, whole, suffix):
    made, contents = whole
    path, content = tmp_path / f"a{suffix}", contents[suffix]
    comment = len(b"focalcal predictions") if suffix == ".npz" else 0  # the end of an archive, behind all that it says
    for length in {*range(0, len(content), max(1, len(content) // 150)), *range(len(content) - 40, len(content))}:
        path.write_bytes(content[:length])
        for outcome in each_way(path):
            if length < len(content) - comment or not isinstance(outcome, Predictions):
                assert isinstance(outcome, PredictionsFileError), f"{length} of {len(content)} bytes"
            else:
                assert outcome.equals(made)


@every_suffix
@given(data=st.data())
@settings(max_examples=400)
def test_a_flipped_bit_is_noticed(tmp_path_factory, whole, suffix, data):
    made, contents = whole
    content = bytearray(contents[suffix])
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path_factory.getbasetemp() / f"flipped{suffix}"
    path.write_bytes(content)
    for outcome in each_way(path):
        # .npz has checksums of everything. Pages of .parquet have, its footer has not. Text has none.
        if suffix == ".npz":
            assert isinstance(outcome, PredictionsFileError) or outcome.equals(made), at
        else:
            assert isinstance(outcome, (PredictionsFileError, Predictions)), at


@pytest.mark.parametrize("suffix", [".npz"])
def test_no_single_bit_of_an_archive_changes_what_it_says(tmp_path, whole, suffix):
    made, contents = whole
    content, path = contents[suffix], tmp_path / "a.npz"
    # Every byte outside the big arrays: local headers, array headers, the directory.
    starts = [m for m in range(len(content)) if content[m : m + 2] == b"PK"]
    places = sorted({at for start in starts for at in range(start, min(start + 80, len(content)))})
    for at in places:
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)
        for outcome in each_way(path):
            assert isinstance(outcome, PredictionsFileError) or outcome.equals(made), at


def test_damaged_pages_of_parquet_are_noticed(tmp_path, whole):
    made, contents = whole
    path, content = tmp_path / "a.parquet", contents[".parquet"]
    value = np.float32(made.scores[3, 1]).tobytes()
    at = content.find(value)
    assert at > 0
    path.write_bytes(content[:at] + bytes([value[0] ^ 1]) + content[at + 1 :])
    refused(path, "CRC")


@every_suffix
@given(
    content=st.binary(min_size=1, max_size=200),
    start=st.sampled_from([b"", b"PK\x03\x04", b"PAR1", b"label,logit_0\n"]),
)
def test_noise_is_refused(tmp_path_factory, suffix, content, start):
    path = tmp_path_factory.getbasetemp() / f"noise{suffix}"
    path.write_bytes(start + content)
    refused(path, "")


@every_suffix
def test_paths_that_hold_nothing(tmp_path, suffix):
    refused(tmp_path / f"missing{suffix}", "must exist, got nothing of that name")
    (tmp_path / f"folder{suffix}").mkdir()
    refused(tmp_path / f"folder{suffix}", "got a folder or a device")
    (tmp_path / f"empty{suffix}").touch()
    refused(tmp_path / f"empty{suffix}", "got an empty file")


def test_an_unknown_suffix(tmp_path):
    for name in ("a.pkl", "a", "a.npy", "a.npz.gz"):
        with pytest.raises(PredictionsFileError, match=r"suffix must be one of \.npz, \.parquet, \.csv"):
            Predictions.load(tmp_path / name)


@pytest.mark.parametrize("inside", SUFFIXES)
@every_suffix
def test_a_suffix_that_does_not_fit_the_content(tmp_path, whole, suffix, inside):
    if suffix != inside:
        path = tmp_path / f"a{suffix}"
        path.write_bytes(whole[1][inside])
        refused(path, f"begins like a {inside} file: rename it" if inside != ".csv" else "")


class Trap:
    def __reduce__(self):
        return (exec, ("import pytest; pytest.fail('code of a file was run')",))


def npy(array=None, *, header=None, data=b"") -> bytes:
    out = io.BytesIO()
    if array is not None:
        np.save(out, array, allow_pickle=True)
    else:
        text = repr(header).encode() + b"\n"
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data)
    return out.getvalue()


def archive(path, compression=zipfile.ZIP_STORED, **members):
    with zipfile.ZipFile(path, "w", compression) as out:
        for name, content in members.items():
            out.writestr(f"{name}.npy", content)


def test_pickled_objects_are_not_opened(tmp_path):
    path = tmp_path / "a.npz"
    trap = np.array([Trap(), Trap()], dtype=object)
    with pytest.raises(pytest.fail.Exception):
        pickle.loads(pickle.dumps(Trap()))  # the trap is armed
    good = npy(np.eye(2)), npy(np.array([0, 1]))
    archive(path, logits=npy(trap), labels=good[1])
    refused(path, "pickled Python objects, which can run any code")
    archive(path, logits=good[0], labels=good[1], ids=npy(trap))
    refused(path, "'ids' must hold numbers or text")
    assert Predictions.load(path, ids=False).n == 2  # the rest is fine
    archive(path, logits=good[0], labels=good[1], focalcal=npy(np.array(Trap(), dtype=object)))
    refused(path, "pickled Python objects")


def test_claims_that_a_file_cannot_hold(tmp_path):
    path = tmp_path / "a.npz"
    labels = npy(np.zeros(2, int))
    for shape in [(2, 2**40), (2**62, 2**62), (-1, 2), (2, 2, 2)]:
        huge = {"descr": "<f4", "fortran_order": False, "shape": shape}
        archive(path, logits=npy(header=huge, data=bytes(16)), labels=labels)
        refused(path, "'logits' must hold")
    for descr in ("O", "<M8[s]", "V8", "<c8", [("a", "<f4")], "<U0", "S4"):
        odd = {"descr": descr, "fortran_order": False, "shape": (2, 2)}
        archive(path, logits=npy(header=odd, data=bytes(16)), labels=labels)
        refused(path, "logits")


def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch):
    path, rows = tmp_path / "a.npz", 30_000_000  # two members, each below the limit
    bomb = npy(header={"descr": "<f8", "fortran_order": False, "shape": (rows, 1)})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        with out.open("logits.npy", "w", force_zip64=True) as member:
            member.write(bomb)
            for start in range(0, rows * 8, 1 << 20):
                member.write(bytes(min(1 << 20, rows * 8 - start)))
        out.writestr("labels.npy", npy(np.zeros(rows, np.uint8)))
    monkeypatch.setattr(np, "empty", lambda *_: pytest.fail("memory was asked for"))
    refused(path, "must unpack to at most 268435456, got 2700002")


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressions_that_unpack_without_a_limit(tmp_path, compression):
    path, good = tmp_path / "a.npz", {"logits": npy(np.eye(2)), "labels": npy(np.array([0, 1]))}
    archive(path, compression, **good)
    refused(path, f"'logits' must be stored or deflated, got compression method {compression}; make it again")
    archive(path, zipfile.ZIP_DEFLATED, **good)
    assert Predictions.load(path).n == 2


def test_an_array_header_can_be_a_bomb_too(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        with out.open("logits.npy", "w", force_zip64=True) as member:
            member.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", 300 << 20))
            for _ in range(300):
                member.write(bytes(1 << 20))
        out.writestr("labels.npy", npy(np.zeros(2, int)))
    refused(path, "must unpack to at most 268435456, got 314572812")


def test_two_members_of_one_name(tmp_path):
    path = tmp_path / "a.npz"
    archive(path, logits=npy(np.eye(2)), labels=npy(np.array([0, 1])))
    with zipfile.ZipFile(path, "a") as out, pytest.warns(UserWarning, match="Duplicate"):
        out.writestr("logits.npy", npy(np.ones((2, 2))))
    refused(path, "member names must differ")


def stated(**changed) -> str:
    header = {"schema": 1, "kind": "logits", "multilabel": False, "split": "test", "rows": 2, "dtype": "float64"}
    return json.dumps(header | {"ids": None, "groups": None, "posterior": None, "provenance": {}} | changed)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (stated(schema=2), "the schema must be at most 1, got 2; read it with a newer focalcal"),
        (stated(schema="1"), "must state schema"),
        (stated(schema=0), "must state schema"),
        (stated(schema=True), "must state schema"),
        (stated(kind="scores"), "must state kind"),
        (stated(kind="probs"), "prob"),
        (stated(kind=["logits"]), "must state kind"),
        (stated(rows=3), "3"),
        (stated(rows=-1), "-1"),
        (stated(rows=10**30), "0" * 30),
        (stated(split=None), "must state split"),
        (stated(split=""), "split must be the name"),
        (stated(dtype="object"), "must state dtype"),
        (stated(dtype="float32"), "must be stored as float32, as the header states float32, got float64"),
        (stated(ids="str"), "id"),
        (stated(posterior="float64"), "posterior"),
        (stated(multilabel=1), "must state multilabel"),
        (stated(multilabel=True), "shape"),
        (stated(provenance=[]), "must state provenance"),
        (stated(provenance={"a": float("nan")}), "provenance must be what JSON can say"),
        ("{}", "must state schema as documented, got nothing"),
        ("[]", "must hold a JSON object"),
        ("{", "JSONDecodeError"),
        (" " * (1 << 23) + stated(), "must have at most 8388608 characters"),
        ("[" * 100_000, "RecursionError"),
    ],
)
@every_suffix
def test_headers_that_lie(tmp_path, suffix, header, message):
    path = tmp_path / f"a{suffix}"
    columns = {"label": [0, 1], "logit_0": [1.0, 0.0], "logit_1": [0.0, 1.0]}
    if suffix == ".npz":
        archive(path, logits=npy(np.eye(2)), labels=npy(np.array([0, 1])), focalcal=npy(np.array(header)))
    elif suffix == ".csv":
        rows = "\n".join(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))
        path.write_text(f"# focalcal: {header}\n{','.join(columns)}\n{rows}\n")
    else:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table(columns).replace_schema_metadata({"focalcal": header}), path)
    if suffix == ".csv" and "must be stored as" in message:
        assert Predictions.load(path).scores.dtype is not torch.float64  # text has no width of its own
    else:
        refused(path, message)


def test_two_headers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"# focalcal: {stated()}\n# focalcal: {stated(split='val')}\nlabel,logit_0,logit_1\n0,1,0\n1,0,1\n")
    refused(path, "line 2 must not be a second '# focalcal:'")


def test_text_of_a_table_without_nul(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"id": ["b", "a\0"], "label": [0, 1], "logit_0": [1.0, 0.0], "logit_1": [0.0, 1.0]}
    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet", "column 'id' must be text without NUL characters")


def test_ids_are_of_the_type_that_is_stated(tmp_path):
    path, fields = tmp_path / "a.npz", {"logits": npy(np.eye(2)), "labels": npy(np.array([0, 1]))}
    archive(path, **fields, ids=npy(np.array(["1", "2"])), focalcal=npy(np.array(stated(ids="int"))))
    with pytest.raises(PredictionsFileError, match="ids must be stored as int, as the header states, got str"):
        Predictions.load(path)


@every_suffix
def test_a_header_that_does_not_lie(tmp_path, suffix):
    test = test_headers_that_lie
    with pytest.raises(AssertionError, match="Predictions"):
        test(tmp_path, suffix, stated(), "")


@every_suffix
def test_values_are_checked_when_they_are_read(tmp_path, suffix):
    good = sample(n=12)
    scores = good.scores.clone()
    scores[7, 2] = float("inf")
    good._with_known(scores=scores).save(tmp_path / f"a{suffix}")
    refused(tmp_path / f"a{suffix}", "logits must be finite, got inf in row")
    good._with_known(labels=good.labels + 4).save(tmp_path / f"a{suffix}")
    refused(tmp_path / f"a{suffix}", "labels must be from 0 to 3")
    ids = np.full(12, "ab")
    ids.view(np.uint32)[5] = 0x110000
    if suffix == ".npz":
        good._with_known(ids=ids).save(tmp_path / "a.npz")
        refused(tmp_path / "a.npz", "ids must be text")


# Run in a process of its own, which may not have more than this. A file that is refused in time needs a fraction.
LIMITED = """
import resource, sys
import numpy, pyarrow.compute, pyarrow.parquet
from focalcal.predictions import Predictions, PredictionsFileError
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (600 << 20),) * 2)
for read in (Predictions.load, lambda path: list(Predictions.stream(path, rows=10**9))):
    try:
        read(sys.argv[1])
    except PredictionsFileError as error:
        print(error)
"""


def refused_in_little_memory(path, message):
    pytest.importorskip("resource")
    if sys.platform != "linux":
        pytest.skip("reads /proc")
    done = subprocess.run([sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert all(message in line and "MemoryError" not in line for line in lines), done.stdout


def test_one_long_name_does_not_widen_all(tmp_path):
    path, rows = tmp_path / "a.csv", "b,0,1,2\n" * 1023
    path.write_text("id,label,logit_0,logit_1\n" + ("a" * 131_000 + ",0,1,2\n" + rows) * 16)
    refused_in_little_memory(path, "line 2 must have at most 1024 characters each under 'id', got 131000")
    path.write_text("id,label,logit_0,logit_1\n" + ("a" * 1024 + ",0,1,2\n" + rows) * 80)
    refused_in_little_memory(path, "must unpack to at most 268435456, got 2")


@pytest.mark.parametrize(
    ("length", "dictionary", "message"),
    [
        (50_000, True, "column 'id' must have at most 1024 characters each, got 50000"),
        (1000, True, "must unpack to at most 268435456, got 400000000"),
        (1000, False, "must unpack to at most 268435456, got 400000000"),
    ],
)
def test_text_of_a_table_is_measured_first(tmp_path, length, dictionary, message):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, rows = tmp_path / "a.parquet", 100_000
    ids = arrow.DictionaryArray.from_arrays(np.zeros(rows, np.int32), arrow.array(["a" * length]))
    columns = {"id": ids, "label": np.zeros(rows, np.int8)}
    columns |= {f"logit_{k}": np.zeros(rows, np.float32) for k in range(2)}
    table = arrow.table(columns)
    if not dictionary:
        table = table.set_column(0, "id", ids.dictionary_decode())
    parquet.write_table(table, path, compression="gzip", use_dictionary=dictionary)
    refused_in_little_memory(path, message)


def test_lists_of_a_table_are_counted_first(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, width = tmp_path / "a.parquet", 34_000_000
    values = arrow.array(np.zeros(width))
    lists = arrow.ListArray.from_arrays(arrow.array([0, width], arrow.int32()), values)
    parquet.write_table(arrow.table({"label": [0], "logits": lists}), path, compression="gzip")
    assert path.stat().st_size < 10_000
    refused_in_little_memory(path, "must unpack to at most 268435456, got 27")
