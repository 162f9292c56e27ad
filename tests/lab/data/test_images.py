"""SVHN, Fashion-MNIST, Tiny ImageNet, ChestX-ray14, CIFAR-10-C and the digits."""

import gzip
import os
import shutil
import tarfile

import numpy as np
import pytest
from PIL import Image
from references.data_fingerprints import FINGERPRINTS, assert_pinned
from scipy.io import savemat
from support.data_folders import chestxray14, cifar10c, fashion_mnist, idx, pixels, svhn, tiny_imagenet

from focalcal.lab.data import CATALOGUE, DataSetError, fingerprint, load_data

FINDINGS = CATALOGUE["chestxray14"].classes


def test_digits():
    data = load_data("digits")
    assert data.provenance["counts"] == {"train": 1077, "val": 360, "test": 360}
    whole = np.concatenate([examples.inputs for examples in data.splits.values()])
    assert (whole.shape, whole.max()) == ((1797, 1, 8, 8), 255)
    for examples in data.splits.values():  # every digit is a tenth, within what rounding and the data leave
        np.testing.assert_allclose(np.bincount(examples.labels) / len(examples), 0.1, atol=0.005)
    assert data.provenance["fingerprints"] == FINGERPRINTS["digits"]


def test_the_real_svhn_test_digits(data_folder):
    data = load_data("svhn", data_folder, test_only=True)
    assert data.test.inputs.shape == (26_032, 3, 32, 32)
    assert np.bincount(data.test.labels).tolist() == [1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595]
    assert (len(data.train), data.provenance["partial"], data.provenance["test_only"]) == (0, False, True)
    assert_pinned("svhn", data)


def test_svhn_writes_zero_as_ten(tmp_path):
    svhn(tmp_path)
    data = load_data("svhn", tmp_path, allow_partial=True)
    assert data.test.labels[:10].tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
    np.testing.assert_array_equal(data.test.inputs[3], pixels(32, 32, 3, 20)[..., 3].transpose(2, 0, 1))


@pytest.mark.parametrize("zipped", [True, False])
def test_idx_files_gzipped_or_not(zipped, tmp_path):
    images, labels = pixels(30, 28, 28), (np.arange(30) % 10).astype(np.uint8)
    for prefix in ("train", "t10k"):
        idx(tmp_path / "fashion-mnist" / f"{prefix}-images-idx3-ubyte", images, zipped=zipped)
        idx(tmp_path / "fashion-mnist" / f"{prefix}-labels-idx1-ubyte", labels, zipped=zipped)
    data = load_data("fashion_mnist", tmp_path, allow_partial=True, validation=0)
    np.testing.assert_array_equal(data.train.inputs[:, 0], images)
    assert data.test.labels.tolist() == labels.tolist()


def test_a_damaged_idx_file_is_refused_by_name(tmp_path):
    fashion_mnist(tmp_path)
    zipped = tmp_path / "fashion-mnist" / "train-images-idx3-ubyte.gz"
    content = bytearray(zipped.read_bytes())
    content[-6] ^= 1  # in gzip's checksum
    zipped.write_bytes(content)
    with pytest.raises(DataSetError, match=r"train-images-idx3-ubyte.gz: must be an IDX file, got BadGzipFile"):
        load_data("fashion_mnist", tmp_path, allow_partial=True)
    zipped.write_bytes(gzip.compress(b"\0\0\x0d\x03" + bytes(12)))
    with pytest.raises(DataSetError, match="an IDX file of bytes in 3 dimensions, got a header 00000d03"):
        load_data("fashion_mnist", tmp_path, allow_partial=True)


def test_tiny_imagenet_tests_on_the_official_validation_images(tmp_path):
    tiny_imagenet(tmp_path)
    data = load_data("tiny_imagenet", tmp_path, allow_partial=True)
    assert data.test.ids.tolist() == [f"val_{k}.JPEG" for k in range(5)]
    assert data.test.labels.tolist() == [0, 1, 2, 3, 4]
    assert (len(data.train), len(data.val)) == (18, 2)
    assert data.classes[3] == "name of n00000003"
    path = tmp_path / "tiny-imagenet-200" / "val" / "images" / "val_3.JPEG"
    np.testing.assert_array_equal(data.test.inputs[3], np.asarray(Image.open(path)).transpose(2, 0, 1))


def test_images_are_read_and_decoded_again_only_when_they_look_different(tmp_path, monkeypatch):
    tiny_imagenet(tmp_path)
    folder = tmp_path / "tiny-imagenet-200"
    images = sorted(folder.rglob("*.JPEG"))
    for image in images:
        os.utime(image, (1_000_000_000, 1_000_000_000))
    first = load_data("tiny_imagenet", tmp_path, allow_partial=True)
    with monkeypatch.context() as patched:
        patched.setattr("focalcal.lab.data.image_cache._decode", lambda *_: pytest.fail("read again"))
        assert load_data("tiny_imagenet", tmp_path, allow_partial=True).provenance == first.provenance
    Image.fromarray(pixels(1, 64, 64, 3, seed=99)[0]).save(images[0])
    again = load_data("tiny_imagenet", tmp_path, allow_partial=True)
    assert again.provenance["fingerprints"] != first.provenance["fingerprints"]
    Image.fromarray(pixels(1, 64, 64, 3, seed=98)[0]).save(images[0])  # at once, before the clock has moved on
    once_more = load_data("tiny_imagenet", tmp_path, allow_partial=True)
    assert once_more.provenance["fingerprints"] != again.provenance["fingerprints"]


def test_chest_radiographs_keep_patients_apart(tmp_path):
    chestxray14(tmp_path)
    data = load_data("chestxray14", tmp_path, allow_partial=True, size=32)
    assert data.multilabel
    assert (len(data.train), len(data.val), len(data.test)) == (28, 4, 8)  # 14, 2 and 4 patients
    assert data.train.inputs.shape == (28, 1, 32, 32)
    assert data.classes == FINDINGS
    first = data.test.labels[0]  # patient 17, visit 0
    assert [name for name, present in zip(FINDINGS, first, strict=True) if present] == ["Hernia"]
    assert data.test.labels[5].sum() == 0  # patient 19, visit 1: no finding


def test_radiographs_are_unpacked_from_their_archives(tmp_path):
    chestxray14(tmp_path)
    folder = tmp_path / "chestxray14"
    images = sorted((folder / "images").iterdir())
    for number, some in enumerate((images[:25], images[25:]), 1):
        with tarfile.open(folder / f"images_{number:03d}.tar.gz", "w:gz") as archive:
            for image in some:
                archive.add(image, f"images/{image.name}")
    before = load_data("chestxray14", tmp_path, allow_partial=True, size=16)
    shutil.rmtree(folder / "images")
    after = load_data("chestxray14", tmp_path, allow_partial=True, size=16)
    assert fingerprint(after.train) == fingerprint(before.train)
    assert (folder / "images_002" / "images" / images[-1].name).exists()


def test_a_missing_radiograph_is_named(tmp_path):
    chestxray14(tmp_path)
    (tmp_path / "chestxray14" / "images" / "00000002_000.png").unlink()
    with pytest.raises(
        DataSetError, match=r"00000002_000.png: must be there, as the 32 images of train.*got 1 missing.*partial"
    ):
        load_data("chestxray14", tmp_path)
    data = load_data("chestxray14", tmp_path, allow_partial=True, size=8)
    assert sum(data.provenance["counts"].values()) == 39


def test_corrupted_images_keep_the_ids_of_the_clean_ones(tmp_path):
    cifar10c(tmp_path)
    data = load_data("cifar10c", tmp_path, allow_partial=True, severity=2)
    assert data.test.ids[:2].tolist() == ["test-0", "test-1"]
    np.testing.assert_array_equal(data.test.inputs, pixels(100, 32, 32, 3)[20:40].transpose(0, 3, 1, 2))
    with pytest.raises(ValueError, match="corruption must be one of 'gaussian_noise'"):
        load_data("cifar10c", tmp_path, corruption="rain")
    with pytest.raises(ValueError, match="severity must be a whole number >= 1 and <= 5, got 6"):
        load_data("cifar10c", tmp_path, severity=6)


def eleven(folder):
    savemat(folder / "svhn" / "test_32x32.mat", {"X": pixels(32, 32, 3, 2), "y": np.array([[1], [11]], np.uint8)})


def outside(folder):
    (folder / "tiny-imagenet-200" / "val" / "val_annotations.txt").write_text("../../x.JPEG\tn00000000\t0\n")


def misspelt(folder):
    table = folder / "chestxray14" / "Data_Entry_2017.csv"
    table.write_text(table.read_text().replace("Hernia", "Hernja"))


def pickled(folder):
    np.save(folder / "CIFAR-10-C" / "labels.npy", np.array([{}] * 100, object), allow_pickle=True)


@pytest.mark.parametrize(
    ("make", "harm", "message"),
    [
        (svhn, eleven, "test_32x32.mat: y must be from 1 to 10, got 11"),
        (tiny_imagenet, outside, "val_annotations.txt: must name images"),
        (chestxray14, misspelt, "Data_Entry_2017.csv: findings must be .*, got Hernja"),
        (cifar10c, pickled, "labels.npy: .*allow_pickle=False"),
    ],
)
def test_wrong_content_is_refused_by_name(make, harm, message, tmp_path):
    make(tmp_path)
    harm(tmp_path)
    with pytest.raises(DataSetError, match=message):
        load_data(make.__name__, tmp_path, allow_partial=True)
