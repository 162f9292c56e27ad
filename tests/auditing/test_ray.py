"""Audits on a real Ray cluster of this machine: the numbers of threads, also when a worker is killed."""

from functools import partial

import numpy as np
import pytest
from support.dying_reader import dies_once

from focalcal.auditing import partitions
from focalcal.auditing.executors import collect_on_ray
from focalcal.auditing.files import audit_files
from focalcal.predictions import Predictions, PredictionsFileError

pytest.importorskip("ray")
QUICK = {"calibrate": None, "resamples": 100, "most_rows": 400}


@pytest.fixture
def parts(tmp_path):
    draws = np.random.default_rng(0)
    folder = tmp_path / "parts"
    folder.mkdir()
    for at in range(4):
        logits = 2 * draws.normal(size=(700, 5))
        labels = np.argmax(logits + draws.gumbel(size=logits.shape), axis=1)
        Predictions(logits=logits, labels=labels, split="test").save(folder / f"{at}.parquet")
    return folder


def test_numbers_are_those_of_threads(cluster, parts):
    assert audit_files(parts, executor="ray", **QUICK).record() == audit_files(parts, **QUICK).record()


def test_a_partition_whose_worker_is_killed_is_read_again(cluster, parts, tmp_path):
    files = sorted(parts.iterdir())
    reading = partitions.Reading({}, Predictions.load(files[0])[:1], top1=False, most=400)
    pieces, total = partitions.partitions_of(files, reading.like)
    assert (len(pieces), total) == (4, 2800)
    marker = tmp_path / "killed"
    survived = partitions.merge(collect_on_ray(partial(dies_once, str(marker), reading), pieces, None), 400)
    assert marker.exists()
    undisturbed = partitions.merge(map(partial(partitions.read_partition, reading), pieces), 400)
    assert survived.rows == undisturbed.rows == 2800
    np.testing.assert_array_equal(survived.keys, undisturbed.keys)
    assert survived.sketch.frame() == undisturbed.sketch.frame()


def test_a_damaged_part_is_named(cluster, parts):
    content = bytearray((parts / "2.parquet").read_bytes())
    content[2000:2100] = bytes(100)
    (parts / "2.parquet").write_bytes(content)
    with pytest.raises(PredictionsFileError, match=r"2\.parquet"):
        audit_files(parts, executor="ray", **QUICK)
