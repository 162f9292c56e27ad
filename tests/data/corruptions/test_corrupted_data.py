import json

import numpy as np
import pytest

from focalcal.data import DataSet, Examples, load_data
from focalcal.data.corruptions import corrupt, corrupted


def colours(count, prefix):
    images = np.random.default_rng(len(prefix)).integers(0, 256, (count, 3, 32, 32), dtype=np.uint8)
    ids = np.array([f"{prefix}-{i}" for i in range(count)])
    return Examples(images, np.arange(count, dtype=np.int64) % 4, ids)


@pytest.fixture
def data():
    parts = [colours(count, prefix) for count, prefix in ((6, "train"), (5, "val"), (9, "test"))]
    return DataSet("colours", ("a", "b", "c", "d"), *parts, provenance={"split": "by hand"})


def test_the_test_split_is_corrupted_and_keeps_its_labels_and_ids(data):
    snowed = corrupted(data, "snow", 3, seed=5)
    assert np.array_equal(snowed.test.inputs, corrupt(data.test.inputs, "snow", 3, seed=5, ids=data.test.ids))
    assert np.array_equal(snowed.test.labels, data.test.labels)
    assert np.array_equal(snowed.test.ids, data.test.ids)
    assert len(snowed.train) == len(snowed.val) == 0
    assert snowed.classes == data.classes
    assert snowed.name == "colours_snow_3"


def test_a_part_is_corrupted_as_in_the_whole(data):
    some = np.array([7, 0, 3])
    part = DataSet("part", data.classes, data.train, data.val, data.test.take(some))
    whole = corrupted(data, "glass_blur", seed=0).test.inputs
    same = corrupted(part, "glass_blur", seed=0).test.inputs
    assert np.abs(same.astype(int) - whole[some]).max() <= 1  # a level, where rounding decides


def test_the_provenance_says_what_was_done(data):
    provenance = corrupted(data, "fog", np.int64(2), seed=1).provenance
    assert provenance["corrupted"] == {"corruption": "fog", "severity": 2, "seed": 1, "regenerated": True}
    assert provenance["corrupted_from"] == "colours"
    assert provenance["split"] == "by hand"
    assert provenance["counts"] == {"train": 0, "val": 0, "test": 9}
    json.dumps(provenance)


def test_what_is_no_colour_image_is_refused():
    with pytest.raises(ValueError, match=r"\(N, 3, H, W\) or \(N, H, W, 3\), got \(360, 1, 8, 8\)"):
        corrupted(load_data("digits"), "fog", seed=0)
