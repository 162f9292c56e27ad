"""What goes into a file comes out of it: all formats, whole, streamed and mapped."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prediction_samples import SUFFIXES, full, predictions, sample

from focalcal.predictions import Predictions, PredictionsFileError

every_suffix = pytest.mark.parametrize("suffix", SUFFIXES)


@every_suffix
@pytest.mark.parametrize("multilabel", [False, True])
@pytest.mark.parametrize("kind", ["logits", "probs"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("make", [sample, full])
def test_round_trip(tmp_path, suffix, multilabel, kind, dtype, make):
    made, path = make(multilabel=multilabel, kind=kind, dtype=dtype), tmp_path / f"a{suffix}"
    made.save(path)
    assert Predictions.load(path).equals(made)
    assert Predictions.load(str(path)).equals(made)
    for rows in (1, 7, 40, 99):
        parts = list(Predictions.stream(path, rows=rows))
        assert [part.n for part in parts] == [min(rows, 40 - start) for start in range(0, 40, rows)]
        assert Predictions.concatenate(parts).equals(made)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@every_suffix
@given(made=predictions(), rows=st.integers(1, 7))
@settings(max_examples=150)
def test_round_trip_of_anything(tmp_path_factory, suffix, made, rows):
    path = tmp_path_factory.getbasetemp() / f"anything{suffix}"
    made.save(path)
    loaded = Predictions.load(path)
    assert loaded.equals(made)
    assert torch.equal(loaded.scores.signbit(), made.scores.signbit())
    assert Predictions.concatenate(Predictions.stream(path, rows=rows)).equals(made)


@every_suffix
@pytest.mark.parametrize(
    "word", ["\r", "a\rb", "\n", "\r\n", "\n\r", '"', '"\r', ",", "#", "\u2028", "\x85", "\x1c", "é\U0001f600"]
)
def test_names_that_a_format_could_trip_over(tmp_path, suffix, word):
    made = sample(n=3, ids=[word, "a", word * 2], groups=["b", f"{word}c", f"c{word}"])
    made.save(tmp_path / f"a{suffix}")
    assert Predictions.load(tmp_path / f"a{suffix}").equals(made)
    assert Predictions.concatenate(Predictions.stream(tmp_path / f"a{suffix}", rows=1)).equals(made)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=2, max_size=40))
@example([1.1754942e-38, 1e-45, 3.4028235e38, 1.1754944e-38])
def test_nine_digits_are_enough_for_float32(tmp_path_factory, values):
    path = tmp_path_factory.getbasetemp() / "digits.csv"
    made = Predictions(logits=np.array([values], np.float32), labels=[0], split="test")
    made.save(path)
    assert Predictions.load(path).equals(made)


@every_suffix
def test_layouts_of_memory_do_not_reach_the_file(tmp_path, suffix):
    logits = np.random.default_rng(0).normal(size=(12, 3))
    labels = np.arange(12) % 3
    ways = [logits, np.asfortranarray(logits), logits[::-1].copy()[::-1], logits.astype(">f8"), torch.tensor(logits)]
    digests = set()
    for given_ in ways:
        path = tmp_path / f"a{suffix}"
        Predictions(logits=given_, labels=labels.astype(np.uint8), split="test").save(path)
        digests.add(hashlib.sha256(path.read_bytes()).hexdigest())
    assert len(digests) == 1  # and the same predictions make the same bytes


@every_suffix
def test_the_longest_split_and_deepest_provenance_come_back(tmp_path, suffix):
    deep: list = []
    for _ in range(62):
        deep = [deep]
    made = sample(split="\U0001f600" * 1024, provenance={"deep": deep, "long": "x" * ((1 << 22) - 1000)})
    made.save(tmp_path / f"a{suffix}")
    assert Predictions.load(tmp_path / f"a{suffix}").equals(made)


def test_row_groups_and_blocks_join(tmp_path, monkeypatch):
    from focalcal.predictions import csv, npz, parquet

    for module in (csv, npz, parquet):
        monkeypatch.setattr(module, "rows_at_once", lambda classes: 7)
    monkeypatch.setattr(csv, "_BLOCK", 9)
    monkeypatch.setattr(parquet, "_BATCH", 9)
    for suffix in SUFFIXES:
        full().save(tmp_path / f"a{suffix}")
        assert Predictions.load(tmp_path / f"a{suffix}").equals(full())
        for rows in (5, 7, 20):
            parts = list(Predictions.stream(tmp_path / f"a{suffix}", rows=rows))
            assert max(part.n for part in parts) <= rows
            assert Predictions.concatenate(parts).equals(full())


def test_mapped_arrays_stay_in_the_file(tmp_path):
    made, path = full(n=5000), tmp_path / "a.npz"
    made.save(path)
    mapped = Predictions.load(path, mmap=True)
    assert mapped.equals(made)
    for values in (mapped.scores, mapped.labels, mapped.posterior):
        assert values.data_ptr() % 64 == 0
    assert isinstance(mapped.ids.base, np.memmap) or isinstance(mapped.ids, np.memmap)
    if sys.platform == "linux":
        spans = [line.split()[0] for line in Path("/proc/self/maps").read_text().splitlines() if str(path) in line]
        spans = [tuple(int(end, 16) for end in span.split("-")) for span in spans]
        assert any(start <= mapped.scores.data_ptr() < end for start, end in spans)
    before = path.read_bytes()
    mapped.scores[0, 0] = 9.0  # copied on write
    assert path.read_bytes() == before


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "use",
    ["p = Predictions.load(path, mmap=True); n = p.n", "n = sum(p.n for p in Predictions.stream(path, rows=4096))"],
    ids=["mmap", "stream"],
)
def test_memory_is_that_of_a_chunk(tmp_path, use):
    rows, classes = 100_000, 200  # 80 MB
    Predictions(logits=np.zeros((rows, classes), np.float32), labels=np.zeros(rows, int), split="test").save(
        tmp_path / "a.npz"
    )
    code = f"""
import re, threading, time
from focalcal.predictions import Predictions
path = {str(tmp_path / "a.npz")!r}
def private(): return int(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read())[1])
Predictions(logits=[[0.0, 1.0]], labels=[0], split="test")
before, peak, done = private(), 0, False
def watch():
    global peak
    while not done: peak = max(peak, private()); time.sleep(0.001)
thread = threading.Thread(target=watch); thread.start()
{use}
done = True; thread.join()
assert n == {rows}
print(peak - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 30_000, f"{done.stdout.strip()} kB of memory for 80 MB of scores"


def test_numpy_and_pandas_read_our_files(tmp_path):
    pandas = pytest.importorskip("pandas")
    made = full()
    for suffix in SUFFIXES:
        made.save(tmp_path / f"a{suffix}")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert set(archive.files) == {"focalcal", "logits", "labels", "ids", "groups", "posterior"}
        np.testing.assert_array_equal(archive["logits"], made.logits)
        stated = json.loads(str(archive["focalcal"]))
    assert stated["schema"] == 1
    assert (stated["kind"], stated["split"], stated["rows"], stated["dtype"]) == ("logits", "test", 40, "float32")
    assert stated["provenance"] == made.provenance
    for frame in (pandas.read_parquet(tmp_path / "a.parquet"), pandas.read_csv(tmp_path / "a.csv", skiprows=1)):
        columns = ["id", "group", "label", *(f"logit_{k}" for k in range(4)), *(f"posterior_{k}" for k in range(4))]
        assert list(frame.columns) == columns
        np.testing.assert_array_equal(frame[columns[3:7]].to_numpy(np.float32), made.logits)
        assert frame["id"].tolist() == made.ids.tolist()


@every_suffix
def test_a_failing_write_leaves_the_old_file_and_no_other(tmp_path, suffix, monkeypatch):
    path = tmp_path / f"a{suffix}"
    sample().save(path)
    before = path.read_bytes()

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        sample(seed=1).save(path)
    monkeypatch.undo()
    from focalcal.predictions import chunk, npz, table

    for module in (npz, table):
        monkeypatch.setattr(module, "stored", full_disk)
    with pytest.raises(OSError, match="No space left"):
        sample(seed=1).save(path)
    assert chunk.stored(sample().scores).shape == (40, 4)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@every_suffix
def test_a_killed_write_is_never_seen_under_the_name(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    code = f"""
import numpy as np
from focalcal.predictions import Predictions, npz, table, chunk
import time
def slow(values, stored=chunk.stored):
    print("writing", flush=True)
    time.sleep(0.2)
    return stored(values)
npz.stored = table.stored = slow
npz.rows_at_once = lambda k: 10
Predictions(logits=np.zeros((1000, 3)), labels=np.zeros(1000, int), split="test").save({str(path)!r})
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        time.sleep(0.05)
        assert list(tmp_path.iterdir())  # it has begun
        process.send_signal(signal.SIGKILL)
    assert not path.exists()
    assert all(file.name.startswith(".") and file.suffix == ".tmp" for file in tmp_path.iterdir())


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(PredictionsFileError, match=r"folder must exist.*create it first"):
        sample().save(tmp_path / "no" / "a.npz")
    with pytest.raises(PredictionsFileError, match=r"suffix must be one of .npz, .parquet, .csv, got '.pkl'"):
        sample().save(tmp_path / "a.pkl")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(PredictionsFileError, match="must name a file, got a folder"):
        sample().save(tmp_path / "d.csv")
    assert [file.name for file in tmp_path.iterdir()] == ["d.csv"]


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    sample().save(tmp_path / "a.parquet")
    for name in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match=r"focalcal\[study\]"):
        Predictions.load(tmp_path / "a.parquet")
    with pytest.raises(ModuleNotFoundError, match=r"focalcal\[study\]"):
        sample().save(tmp_path / "b.parquet")
    assert not (tmp_path / "b.parquet").exists()
