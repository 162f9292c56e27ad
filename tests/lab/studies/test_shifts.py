"""Shifted test sets: which images, in which order, from where; and what is refused before any training."""

import numpy as np
import pytest
from support.data_folders import FABRICATED, pixels

from focalcal.lab.data import DataSetError, load_data
from focalcal.lab.data.corruptions import CORRUPTIONS, corrupt
from focalcal.lab.store import Evaluations, Protocol
from focalcal.lab.studies.shifts import load_shifts
from focalcal.lab.studies.subsets import apply_protocol


def cifar10(folder, *, test_examples=None, **asked):
    """The data, and what `shifts` takes after them."""
    FABRICATED["cifar10"](folder)
    protocol = Protocol(allow_partial=True, test_examples=test_examples)
    data = apply_protocol(load_data("cifar10", folder, allow_partial=True), protocol)
    return data, (Evaluations(**asked), protocol, folder)


def publish(folder, labels, *names):
    """Files in the layout of CIFAR-10-C for as many images as there are labels."""
    place = folder / "CIFAR-10-C"
    place.mkdir(parents=True)
    np.save(place / "labels.npy", np.tile(labels, 5).astype(np.uint8))
    for number, name in enumerate(names):
        np.save(place / f"{name}.npy", pixels(5 * len(labels), 32, 32, 3, seed=number))


def test_no_shift_unless_asked_for(tmp_path):
    data, asked = cifar10(tmp_path)
    assert load_shifts(data, *asked) == []


def test_corruptions_are_made_again_where_nothing_is_published(tmp_path):
    data, asked = cifar10(tmp_path, shifts=("cifar10c",), severities=(1, 5))
    found = load_shifts(data, *asked)
    assert [one.split for one in found][:2] == ["cifar10c/gaussian_noise/1", "cifar10c/gaussian_noise/5"]
    assert {one.split for one in found} == {f"cifar10c/{name}/{level}" for name in CORRUPTIONS for level in (1, 5)}
    fog = next(one for one in found if one.split == "cifar10c/fog/5")
    examples, provenance = fog.load()
    assert "regenerated" in provenance["images"]
    assert provenance["options"]["corruption"] == "fog"
    assert fog.same_classes
    assert np.array_equal(examples.ids, data.test.ids)
    assert np.array_equal(examples.labels, data.test.labels)
    expected = corrupt(data.test.inputs.transpose(0, 2, 3, 1), "fog", 5, seed=0)
    assert np.array_equal(examples.inputs, expected.transpose(0, 3, 1, 2))
    assert examples.inputs.flags.c_contiguous


def test_an_image_is_corrupted_alike_in_the_whole_set_and_in_a_part(tmp_path):
    whole, asked = cifar10(tmp_path, shifts=("cifar10c",))
    part = apply_protocol(whole, Protocol(test_examples=7))
    by_id = {}
    for data in (whole, part):
        examples, _ = load_shifts(data, *asked)[0].load()  # Gaussian noise: random everywhere
        by_id[len(data.test)] = dict(zip(examples.ids.tolist(), examples.inputs, strict=True))
    assert len(by_id[7]) == 7
    assert all(np.abs(image.astype(int) - by_id[20][name]).max() <= 1 for name, image in by_id[7].items())


def test_published_files_come_first_and_are_cut_like_the_test_split(tmp_path):
    data, asked = cifar10(tmp_path, shifts=("cifar10c",), severities=(2,), test_examples=7)
    publish(tmp_path, np.arange(20) % 10, "fog")
    loaded = {one.split: one.load for one in load_shifts(data, *asked)}
    examples, provenance = loaded["cifar10c/fog/2"]()
    assert provenance["images"] == "published"
    assert provenance["files"][0]["sha256"]
    assert np.array_equal(examples.ids, data.test.ids)
    places = [int(name.split("-")[1]) for name in examples.ids]
    stored = np.load(tmp_path / "CIFAR-10-C" / "fog.npy")[20:40]  # the second severity
    assert np.array_equal(examples.inputs, stored[places].transpose(0, 3, 1, 2))
    assert "regenerated" in loaded["cifar10c/snow/2"]()[1]["images"]


def test_published_files_of_other_images_are_refused(tmp_path):
    data, asked = cifar10(tmp_path, shifts=("cifar10c",))
    publish(tmp_path, (np.arange(20) + 1) % 10, "fog")
    fog = next(one for one in load_shifts(data, *asked) if "/fog/" in one.split)
    with pytest.raises(DataSetError, match=r"fog\.npy must hold the corrupted test images of CIFAR-10"):
        fog.load()


def test_svhn_is_its_test_split_with_labels_that_are_no_classes(tmp_path):
    data, asked = cifar10(tmp_path, shifts=("svhn",), test_examples=10)
    FABRICATED["svhn"](tmp_path)
    (shift,) = load_shifts(data, *asked)
    examples, provenance = shift.load()
    assert (shift.split, shift.same_classes, len(examples)) == ("svhn", False, 10)
    assert np.array_equal(np.bincount(examples.labels), [1] * 10)
    assert provenance["partial"] is True
    assert "no classes of the training set" in provenance["labels"]


def test_a_shift_that_is_not_there_is_refused_at_once(tmp_path):
    data, asked = cifar10(tmp_path, shifts=("svhn",))
    with pytest.raises(DataSetError, match=r"must be the folder of svhn.*focalcal data get svhn"):
        load_shifts(data, *asked)


@pytest.mark.parametrize("name", ["svhn", "cifar10c"])
def test_shifts_must_fit_the_data_set(name):
    with pytest.raises(
        ValueError, match=rf"shifts must fit the test images: '{name}' .* digits has inputs \(1, 8, 8\)"
    ):
        load_shifts(load_data("digits"), Evaluations(shifts=(name,)), Protocol())


def test_unknown_shifts_are_refused(tmp_path):
    data, asked = cifar10(tmp_path, shifts=("mnist_c",))
    with pytest.raises(ValueError, match="shifts must be one of 'svhn', 'cifar10c', got 'mnist_c'"):
        load_shifts(data, *asked)


def test_corruptions_are_of_cifar10_alone(tmp_path):
    FABRICATED["cifar100"](tmp_path)
    data = load_data("cifar100", tmp_path, allow_partial=True)
    with pytest.raises(ValueError, match="made of CIFAR-10's test images, got the data set 'cifar100'"):
        load_shifts(data, Evaluations(shifts=("cifar10c",)), Protocol(), tmp_path)
