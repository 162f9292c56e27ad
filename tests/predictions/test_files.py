"""What goes into a file comes out of it: every format, whole, streamed and mapped."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.prediction_samples import SUFFIXES, full, predictions, sample

from focalcal.predictions import Predictions, PredictionsFileError, parquet_table, text_tables

FORMS = (*SUFFIXES, "")  # no suffix: a folder of .npy files
# Rows of probabilities in half precision miss a sum of one, as is said at every access.
pytestmark = pytest.mark.filterwarnings("ignore::focalcal.core.checks.ProbabilityWarning")
every_form = pytest.mark.parametrize("form", FORMS, ids=[*SUFFIXES, "folder"])


@every_form
@given(made=predictions(), rows=st.integers(1, 7))
@example(made=full(dtype="float64", kind="probs"), rows=7)
@example(made=full(dtype="bfloat16", multilabel=True), rows=40)
@example(made=sample(n=1, split="\U0001f600" * 1024, provenance={"long": "x" * ((1 << 22) - 1000)}), rows=1)
@settings(max_examples=25)
def test_round_trip(tmp_path_factory, form, made, rows):
    path = tmp_path_factory.getbasetemp() / f"anything{form}"
    if not form:
        shutil.rmtree(path, ignore_errors=True)
    made.save(path)
    loaded = Predictions.load(path)
    assert loaded.equals(made)
    np.testing.assert_array_equal(np.signbit(loaded.scores), np.signbit(made.scores))
    parts = list(Predictions.stream(str(path), rows=rows))
    assert [part.n for part in parts] == [min(rows, made.n - start) for start in range(0, made.n, rows)]
    assert Predictions.concatenate(parts).equals(made)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=2, max_size=40))
@example([1.1754942e-38, 1e-45, 3.4028235e38, 1.1754944e-38])
@settings(max_examples=40)
def test_text_has_every_digit_of_a_float32(tmp_path_factory, values):
    path = tmp_path_factory.getbasetemp() / "digits.csv"
    made = Predictions(logits=np.array([values], np.float32), labels=[0], split="test")
    made.save(path)
    assert Predictions.load(path).equals(made)


@every_form
def test_layouts_of_memory_do_not_reach_the_file(tmp_path, form):
    logits, labels = np.random.default_rng(0).normal(size=(12, 3)), np.arange(12) % 3
    ways = [logits, np.asfortranarray(logits), logits[::-1].copy()[::-1], logits.astype(">f8"), torch.tensor(logits)]
    contents = set()
    for number, given_ in enumerate(ways):
        path = tmp_path / f"{number}{form}"
        Predictions(logits=given_, labels=labels.astype(np.uint8), split="test").save(path)
        files = [path] if form else sorted(path.iterdir())
        contents.add(tuple(file.read_bytes() for file in files))
    assert len(contents) == 1


def test_batches_of_a_reader_are_regrouped(tmp_path, monkeypatch):
    monkeypatch.setattr(text_tables, "_BLOCK", 100)  # two lines
    monkeypatch.setattr(parquet_table, "_BATCH", 9)
    made = sample(ids=[f"two\nlines {i}" for i in range(40)])
    for suffix in (".csv", ".parquet"):
        made.save(tmp_path / f"a{suffix}")
        assert Predictions.load(tmp_path / f"a{suffix}").equals(made)
        for rows in (1, 5, 39, 40, 99):
            parts = list(Predictions.stream(tmp_path / f"a{suffix}", rows=rows))
            assert [part.n for part in parts] == [min(rows, 40 - start) for start in range(0, 40, rows)]
            assert Predictions.concatenate(parts).equals(made)


def test_mapped_arrays_stay_in_their_files(tmp_path):
    made = full(n=5000)
    made.save(tmp_path / "test")
    mapped = Predictions.load(tmp_path / "test", mmap=True)
    assert mapped.equals(made)
    assert isinstance(mapped.ids.base, np.memmap) or isinstance(mapped.ids, np.memmap)
    if sys.platform == "linux":
        lines = Path("/proc/self/maps").read_text().splitlines()
        for name, values in (("logits", mapped.scores), ("labels", mapped.labels), ("posterior", mapped.posterior)):
            spans = [line.split()[0].split("-") for line in lines if line.endswith(f"test/{name}.npy")]
            assert any(int(start, 16) <= values.ctypes.data < int(end, 16) for start, end in spans), name
    before = (tmp_path / "test" / "logits.npy").read_bytes()
    mapped.scores[0, 0] = 9.0  # copied on write
    assert (tmp_path / "test" / "logits.npy").read_bytes() == before


def test_what_cannot_be_mapped_says_so(tmp_path):
    for suffix in SUFFIXES:
        sample().save(tmp_path / f"a{suffix}")
        with pytest.raises(PredictionsFileError, match=r"mmap=True maps \.npy files, got .*save to a folder.*stream"):
            Predictions.load(tmp_path / f"a{suffix}", mmap=True)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_that_of_a_batch(tmp_path):
    rows, classes = 100_000, 200  # 80 MB
    zeros = Predictions(logits=np.zeros((rows, classes), np.float32), labels=np.zeros(rows, int), split="test")
    small = Predictions(logits=np.zeros((8, classes), np.float32), labels=np.zeros(8, int), split="test")
    for name in ("a.npz", "a"):
        zeros.save(tmp_path / name)
        small.save(tmp_path / f"small-{name}")
    code = f"""
import os, re, threading, time
from focalcal.predictions import Predictions
os.chdir({str(tmp_path)!r})
def private(): return int(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read())[1])
for path in ("small-a.npz", "small-a"): list(Predictions.stream(path, rows=4096))  # what the first call imports
before, peak, done = private(), 0, False
def watch():
    global peak
    while not done: peak = max(peak, private()); time.sleep(0.001)
thread = threading.Thread(target=watch); thread.start()
counts = [sum(part.n for part in Predictions.stream(path, rows=4096)) for path in ("a.npz", "a")]
counts.append(Predictions.load("a", mmap=True).n)
done = True; thread.join()
assert counts == [{rows}] * 3
print(peak - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 40_000, f"{done.stdout.strip()} kB of memory for 80 MB of scores"


def test_numpy_and_pandas_read_our_files(tmp_path):
    pandas = pytest.importorskip("pandas")
    made = full()
    for form in FORMS:
        made.save(tmp_path / f"a{form}")
    names = {"focalcal", "logits", "labels", "ids", "groups", "posterior"}
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert set(archive.files) == names == {file.stem for file in (tmp_path / "a").iterdir()}
        for name in names:
            np.testing.assert_array_equal(archive[name], np.load(tmp_path / "a" / f"{name}.npy"))
        np.testing.assert_array_equal(archive["logits"], made.logits)
        stated = json.loads(str(archive["focalcal"]))
    assert stated.pop("provenance") == made.provenance
    types = {"dtype": "float32", "ids": "str", "groups": "int", "posterior": "float64"}
    assert stated == {"schema": 1, "kind": "logits", "multilabel": False, "split": "test", "rows": 40, **types}
    for frame in (pandas.read_parquet(tmp_path / "a.parquet"), pandas.read_csv(tmp_path / "a.csv", skiprows=1)):
        columns = ["id", "group", "label", *(f"logit_{k}" for k in range(4)), *(f"posterior_{k}" for k in range(4))]
        assert list(frame.columns) == columns
        np.testing.assert_array_equal(frame[columns[3:7]].to_numpy(np.float32), made.logits)
        assert frame["id"].tolist() == made.ids.tolist()


@every_form
def test_a_failing_write_leaves_what_was_there(tmp_path, form, monkeypatch):
    path = tmp_path / f"a{form}"
    if form:
        sample().save(path)

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        sample(seed=1).save(path)
    assert list(tmp_path.iterdir()) == ([path] if form else [])
    if form:
        assert Predictions.load(path).equals(sample())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_killed_write_is_never_seen_under_the_name(tmp_path):
    code = f"""
import os, signal
import numpy as np
from focalcal.predictions import Predictions
os.chdir({str(tmp_path)!r})
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)  # when bytes are written, and the name is not
for path in ("a.npz", "a"):
    child = os.fork()
    if not child:
        Predictions(logits=np.zeros((9, 3)), labels=np.zeros(9, int), split="test").save(path)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    left = list(tmp_path.iterdir())
    assert len(left) == 2  # both had begun
    assert all(file.name.startswith(".") and file.suffix == ".tmp" for file in left)


def test_a_process_that_refuses_a_table_ends_in_order(tmp_path):
    (tmp_path / "ragged.csv").write_text("label,prob_0,prob_1\n0,0.5\n1,0.5,0.5\n")
    script = """
from focalcal.predictions import Predictions
try:
    Predictions.load("ragged.csv")
except ValueError:
    raise SystemExit(2)
"""
    ended = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (2, "")


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(PredictionsFileError, match=r"folder must exist.*create it first"):
        sample().save(tmp_path / "no" / "a.npz")
    for name in ("a.pkl", "logits.npy"):
        with pytest.raises(PredictionsFileError, match=r"suffix must be one of \.npz, .*, or none for a folder"):
            sample().save(tmp_path / name)
    for name in ("d.csv", "d"):
        (tmp_path / name).mkdir()
        with pytest.raises(PredictionsFileError, match="must be free, got a folder"):
            sample().save(tmp_path / name)
    assert {file.name for file in tmp_path.iterdir()} == {"d.csv", "d"}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_missing_extra_is_named(tmp_path, monkeypatch, suffix):
    sample().save(tmp_path / f"a{suffix}")
    for name in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for use in (lambda: Predictions.load(tmp_path / f"a{suffix}"), lambda: sample().save(tmp_path / f"b{suffix}")):
        with pytest.raises(ModuleNotFoundError, match=r"pip install .+"):
            use()
    assert not (tmp_path / f"b{suffix}").exists()


def test_row_groups_are_streamed_alone(tmp_path):
    import pyarrow.parquet as parquet

    logits = np.random.default_rng(0).normal(size=(50, 3))
    rows = Predictions(logits=logits, labels=np.arange(50) % 3, split="test", ids=np.arange(50))
    rows.save(tmp_path / "a.parquet")
    parquet.write_table(parquet.read_table(tmp_path / "a.parquet"), tmp_path / "b.parquet", row_group_size=10)
    streamed = Predictions.stream(tmp_path / "b.parquet", rows=7, row_groups=range(1, 3))
    assert Predictions.concatenate(streamed).equals(rows[10:30])
