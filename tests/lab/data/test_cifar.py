"""CIFAR's pickles: what is read, and that nothing in them is run."""

import contextlib
import os
import pickle
import tracemalloc

import numpy as np
import pytest
from references.data_fingerprints import FINGERPRINTS, assert_pinned
from support.data_folders import cifar10 as fabricated
from support.data_folders import cifar_batch, pixels

from focalcal.lab.data import DataSetError, load_data
from focalcal.lab.data.pickled_batches import read_pickle
from focalcal.lab.data.source_files import SourceFiles


class Payload:
    def __init__(self, function, *arguments):
        self.reduced = (function, arguments)

    def __reduce__(self):
        return self.reduced


@pytest.mark.slow
def test_the_real_cifar10(data_folder):
    data = load_data("cifar10", data_folder)
    assert data.provenance["fingerprints"] == FINGERPRINTS["cifar10"]
    assert data.train.inputs.shape == (45_000, 3, 32, 32)
    assert np.bincount(np.concatenate([data.train.labels, data.val.labels])).tolist() == [5000] * 10
    assert np.bincount(data.test.labels).tolist() == [1000] * 10
    assert data.provenance["partial"] is False
    assert [data.classes[k] for k in data.test.labels[:4]] == ["cat", "ship", "ship", "airplane"]
    # Eight published digits: one grey level in a hundred thousand pixels would show.
    whole = np.concatenate([data.train.inputs, data.val.inputs])
    values = np.arange(256) / 255
    shares = np.stack([np.bincount(whole[:, channel].ravel(), minlength=256) for channel in range(3)]) / (50_000 * 1024)
    mean = shares @ values
    np.testing.assert_allclose(mean, [0.49139968, 0.48215841, 0.44653091], atol=5e-9)
    np.testing.assert_allclose(np.sqrt(shares @ values**2 - mean**2), [0.24703223, 0.24348513, 0.26158784], atol=5e-9)
    images = [image.tobytes() for examples in data.splits.values() for image in examples.inputs]
    assert len(set(images)) == len(images) == 60_000  # no image is in two splits under two ids


def test_the_real_cifar100_is_a_part(data_folder):
    with pytest.raises(DataSetError, match="cifar100: train must hold 50000"):
        load_data("cifar100", data_folder)
    data = load_data("cifar100", data_folder, allow_partial=True)
    assert np.bincount(data.test.labels).tolist() == [100] * 100
    assert data.provenance["counts"] == {"train": 0, "val": 0, "test": 10_000}
    assert data.provenance["partial"] is True
    assert_pinned("cifar100", data)


@pytest.mark.parametrize("protocol", range(2, 5))
def test_batches_of_these_protocols_are_read(protocol, tmp_path):
    images = pixels(4, 3072)
    found = read_pickle(pickle.dumps({b"data": images, b"labels": [0, 1, 2, 3], "name": b"x"}, protocol=protocol))
    np.testing.assert_array_equal(found["data"], images)
    assert (found["labels"], found["name"]) == ([0, 1, 2, 3], "x")


def test_python_2_pickles_are_read():
    """As the official files: Python 2's str for bytes and text, and NumPy's old module names; made by hand."""
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
    dtype = b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    state = b"(K\x01(K\x01K\x03t" + dtype + b"\x89U\x03\x01\xff\x80tb"
    found = read_pickle(b"\x80\x02}(U\x04data" + array + state + b"U\x06labels](K\x05eu.")
    assert found["data"].tolist() == [[1, 255, 128]]
    assert found["labels"] == [5]


@pytest.mark.parametrize(
    "payload",
    [
        Payload(os.system, "touch was-here"),
        Payload(getattr, "", "join"),
        Payload(np.load, "x"),
        Payload(bytes, 10),
        Payload(np.dtype, "O"),
    ],
    ids=lambda payload: payload.reduced[0].__name__,
)
def test_a_pickle_that_calls_anything_is_refused_by_name_and_calls_nothing(payload, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fabricated(tmp_path)
    victim = tmp_path / "cifar-10-batches-py" / "data_batch_3"
    victim.write_bytes(pickle.dumps({b"data": payload, b"labels": [0]}, protocol=2))
    with pytest.raises(DataSetError, match=r"data_batch_3: must be a pickled CIFAR batch, got UnpicklingError"):
        load_data("cifar10", tmp_path, allow_partial=True)
    assert not (tmp_path / "was-here").exists()


@pytest.mark.parametrize("name", [b"numpy\ndtype", b"_codecs\nencode", b"numpy.core.multiarray\n_reconstruct"])
@pytest.mark.parametrize("state", [b"(dV__defaults__\nN", b"(dV__call__\nN"])
@pytest.mark.parametrize("slots", [True, False])
def test_a_pickle_cannot_change_its_reader(name, state, slots):
    state = b"(N" + state + b"st" if slots else state + b"s"
    with pytest.raises(pickle.UnpicklingError):
        read_pickle(b"c" + name + b"\n" + state + b"b.")
    assert read_pickle(pickle.dumps({"data": pixels(1, 3)}, protocol=2))["data"].shape == (1, 3)


def test_damage_is_noticed_or_harmless_and_asks_for_no_memory():
    good = pickle.dumps({b"data": pixels(3, 30), b"labels": [0, 1, 2], "name": b"x"}, protocol=2)
    draws = np.random.default_rng(0)
    tracemalloc.start()
    for _ in range(1000):
        bad = bytearray(good)
        for at in draws.integers(len(bad), size=draws.integers(1, 4)):
            bad[at] = draws.integers(256)
        with contextlib.suppress(Exception):
            assert isinstance(read_pickle(bytes(bad)), dict)
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()


LONG, OFTEN = 10**6, 10**4
ENCODED_OFTEN = b"X" + LONG.to_bytes(4, "little") + b"x" * LONG + b"q\x00" + b"c_codecs\nencode\nh\x00\x85R" * OFTEN


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps({"labels": [b"x" * LONG] * OFTEN}, protocol=4),
        pickle.dumps({"labels": ["x" * LONG] * OFTEN}, protocol=2),
        b"\x80\x02}X\x01\x00\x00\x00a](" + ENCODED_OFTEN + b"es.",
        b"\x80\x02}r\xff\xff\xff\xff.",  # kept as number 2**32 - 1, for which the reader in C makes room
    ],
    ids=["bytes", "text", "encoded", "number of a memory"],
)
def test_what_a_pickle_refers_to_often_is_there_once(content):
    tracemalloc.start()
    read_pickle(content)
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()


FLAT = "it must hold arrays, text, whole numbers, and lists of text"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *(({"data": np.zeros((1, 3), kind)}, r"uint8|asks for") for kind in (np.float64, object, np.int16)),
        *(({"labels": value}, FLAT) for value in ([[1]], {"labels": [1]}, (1, 2), None, [np.zeros(2, np.uint8)])),
        (b"an array of another shape", "as many as its shape says"),
    ],
)
def test_there_is_one_dict_of_bytes_in_arrays_and_flat_lists(content, message):
    raw = pickle.dumps(content, protocol=2)
    if isinstance(content, bytes):
        raw = pickle.dumps({"data": np.zeros((1, 3), np.uint8)}, protocol=2)
        raw = raw.replace(b"K\x01K\x03\x86", b"K\x7fK\x7f\x86")
    with pytest.raises(pickle.UnpicklingError, match=message):
        read_pickle(raw)


def test_a_wrong_batch_is_refused_by_name(tmp_path):
    fabricated(tmp_path)
    batch = tmp_path / "cifar-10-batches-py" / "test_batch"
    for count, classes, message in (
        (20, 11, "cifar10 test: labels must be from 0 to 9, got 10"),
        (10_010, 10, "test_batch: must hold 10000 images, got 10010"),
    ):
        cifar_batch(batch, count, classes, b"labels")
        with pytest.raises(DataSetError, match=message):
            load_data("cifar10", tmp_path, allow_partial=True)
    batch.write_bytes(pickle.dumps({b"data": pixels(3, 3072), b"labels": [0, 1]}, protocol=2))
    with pytest.raises(DataSetError, match=r"test_batch: data must be \(N, 3072\) for 2 labels, got \(3, 3072\)"):
        load_data("cifar10", tmp_path, allow_partial=True)
    many = np.repeat(np.arange(10), [1001, 999, *[1000] * 8])
    with pytest.raises(
        DataSetError, match="test must hold 10000 examples, 1000 of class 0, got 10000, 1001 of class 0"
    ):
        SourceFiles("cifar10", tmp_path, allow_partial=True).complete({"test": many})


def test_a_batch_that_was_tampered_with_is_refused_by_name(data_folder, tmp_path):
    """One bit of one pixel, an order, two labels: the counts of classes show none of it."""
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    batch = read_pickle((data_folder / "cifar-10-batches-py" / "test_batch").read_bytes())
    altered, swapped, relabelled = ((batch["data"].copy(), list(batch["labels"])) for _ in range(3))
    altered[0][5000, 7] ^= 1
    swapped[0][[0, 1]], swapped[1][:2] = swapped[0][[1, 0]], swapped[1][1::-1]
    other = next(k for k, label in enumerate(relabelled[1]) if label != relabelled[1][0])
    relabelled[1][0], relabelled[1][other] = relabelled[1][other], relabelled[1][0]
    for images, labels in (altered, swapped, relabelled):
        (folder / "test_batch").write_bytes(pickle.dumps({b"data": images, b"labels": labels}, protocol=4))
        with pytest.raises(DataSetError, match="must hold the published images and labels, SHA-256 2c33b053"):
            load_data("cifar10", tmp_path, allow_partial=True)


def test_an_image_of_a_part_keeps_the_id_it_has_in_the_whole(tmp_path):
    fabricated(tmp_path)
    whole = load_data("cifar10", tmp_path, allow_partial=True, validation=0).train
    (tmp_path / "cifar-10-batches-py" / "data_batch_2").unlink()
    part = load_data("cifar10", tmp_path, allow_partial=True, validation=0).train
    assert len(part) == 80
    of_the_same_id = whole.take(np.isin(whole.ids, part.ids))
    np.testing.assert_array_equal(of_the_same_id.inputs, part.inputs)
