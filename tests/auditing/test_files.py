"""Audits of files: parts, folders, samples of large ones, and what is refused."""

import numpy as np
import pytest

from focalcal.auditing import Gate, audit
from focalcal.auditing.files import audit_files, part_files, read_rows
from focalcal.metrics import METRICS
from focalcal.predictions import Predictions, PredictionsFileError

QUICK = {"calibrate": None, "trained_with": None, "resamples": 100}


def sample(rows=3000, classes=5, seed=0):
    draws = np.random.default_rng(seed)
    logits = 2 * draws.normal(size=(rows, classes))
    labels = np.argmax(logits / 1.5 + draws.gumbel(size=logits.shape), axis=1)
    return Predictions(logits=logits, labels=labels, split="test", ids=np.arange(rows))


@pytest.fixture
def parts(tmp_path):
    rows = sample()
    folder = tmp_path / "parts"
    folder.mkdir()
    for at, cut in enumerate((slice(0, 700), slice(700, 1900), slice(1900, 3000))):
        rows[cut].save(folder / f"part-{at}.parquet")
    (folder / "_SUCCESS").touch()
    return folder


def test_a_folder_of_parts_is_one_set_of_rows(parts, tmp_path):
    sample().save(tmp_path / "whole.parquet")
    of_parts, of_whole = audit_files(parts, **QUICK), audit_files(tmp_path / "whole.parquet", **QUICK)
    assert of_parts.record() == of_whole.record() == audit(sample(), **QUICK).record()


def test_a_sample_of_many_rows_does_not_depend_on_the_parts(parts, tmp_path):
    rows = sample()
    rows.save(tmp_path / "whole.npz")
    first, second = (read_rows(part_files([path]), {}, 400) for path in (parts, tmp_path / "whole.npz"))
    assert first.rows == 3000
    assert first.predictions.n == 400
    np.testing.assert_array_equal(first.predictions.ids, second.predictions.ids)
    assert len(set(first.predictions.ids)) == 400
    expected = np.flatnonzero(np.random.default_rng(0).random(3000).argsort().argsort() < 400)
    np.testing.assert_array_equal(first.predictions.ids, expected)


def test_estimates_of_a_large_file_are_of_all_rows(parts):
    rows = sample()
    found = audit_files(parts, most_rows=400, **QUICK)
    assert found.rows == found.verdict.rows == 3000
    for name in ("error", "nll", "brier", "ece", "classwise_ece", "confidence_gap"):
        assert found.metrics[name].estimate == pytest.approx(METRICS[name](rows.probs, rows.labels), abs=1e-12)
    narrow = audit(rows, **QUICK).metrics["nll"]
    assert found.metrics["nll"].high - found.metrics["nll"].low > narrow.high - narrow.low
    assert any("uniform sample of 400 rows" in note for note in found.notes)
    assert found.reliability.count.sum() == 3000


def test_bad_options_are_refused_after_the_first_rows(parts, monkeypatch):
    monkeypatch.setattr("focalcal.auditing.files.read_rows", lambda *_: pytest.fail("all rows were read"))
    for options in ({"gates": [Gate("mce", ">", 0.1)]}, {"calibrate": "none"}, {"class_names": ["a"]}):
        with pytest.raises(ValueError, match=r"is not a metric of this audit|must name calib|one name per class"):
            audit_files(parts, **options)


def test_what_is_refused(parts, tmp_path):
    (parts / "readme.txt").touch()
    with pytest.raises(PredictionsFileError, match=r"must hold parts of one table and nothing else, got readme.txt"):
        audit_files(parts)
    (parts / "readme.txt").unlink()
    sample(classes=4).save(parts / "part-9.parquet")
    with pytest.raises(
        PredictionsFileError, match=r"part-9.parquet must have 5 classes like the files before it, got 4"
    ):
        audit_files(parts)
    (parts / "part-9.parquet").write_bytes((parts / "part-0.parquet").read_bytes()[:2000])
    with pytest.raises(PredictionsFileError, match=r"part-9.parquet"):
        audit_files(parts)
    (tmp_path / "empty").mkdir()
    with pytest.raises(PredictionsFileError, match="got an empty folder"):
        audit_files(tmp_path / "empty")
    with pytest.raises((PredictionsFileError, FileNotFoundError), match=r"absent.npz"):
        audit_files(tmp_path / "absent.npz")
