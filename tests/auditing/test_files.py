"""Audits of files: parts, folders, samples of large ones, and what is refused."""

import sys

import numpy as np
import pytest
from pyarrow import parquet

from focalcal.auditing import Gate, audit
from focalcal.auditing.files import audit_files, part_files, read_rows
from focalcal.metrics import METRICS, ece, multilabel_brier, multilabel_nll
from focalcal.predictions import Predictions, PredictionsFileError

QUICK = {"calibrate": None, "resamples": 100}


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


@pytest.mark.parametrize("log", ["_delta_log/0.json", "metadata/00001-a.metadata.json"])
def test_a_table_with_versions_is_refused_as_a_folder_and_by_its_files(parts, log, monkeypatch):
    for package in ("deltalake", "pyiceberg", "pyiceberg.table"):
        monkeypatch.setitem(sys.modules, package, None)
    (parts / log).parent.mkdir()
    (parts / log).touch()
    for paths in (parts, sorted(parts.glob("*.parquet")), [parts / "part-1.parquet"]):
        with pytest.raises(PredictionsFileError, match=r"table in .*parts, whose files can hold rows .*python -c"):
            audit_files(paths, **QUICK)
        with pytest.raises(PredictionsFileError, match=r"table in .*parts, whose files can hold rows .*python -c"):
            audit_files(paths, columns={"logits": "logit", "labels": "label"}, **QUICK)


def test_a_sample_of_many_rows_does_not_depend_on_the_parts(parts, tmp_path):
    rows = sample()
    rows.save(tmp_path / "whole.npz")
    first, second = (read_rows(part_files([path]), {}, most_rows=400) for path in (parts, tmp_path / "whole.npz"))
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


def test_the_verdict_on_a_large_file_is_of_all_rows(parts):
    whole, sampled = audit(sample(), **QUICK).verdict, audit_files(parts, most_rows=400, **QUICK).verdict
    assert sampled.finding is whole.finding
    for name in ("rows", "gap", "low", "high"):
        assert getattr(sampled, name) == pytest.approx(getattr(whole, name), abs=1e-9)


@pytest.mark.parametrize("groups", [1, 3])
def test_partitions_change_no_number(parts, tmp_path, monkeypatch, groups):
    """Row groups of a few rows in many partitions, and one partition of everything."""
    monkeypatch.setattr("focalcal.auditing.partitions._ELEMENTS", 5 * 100 * groups)
    table = parquet.read_table(parts / "part-0.parquet")
    parquet.write_table(table, parts / "part-0.parquet", row_group_size=100)
    sample().save(tmp_path / "whole.npz")
    divided, at_once = (read_rows(part_files([path]), {}, most_rows=400) for path in (parts, tmp_path / "whole.npz"))
    assert divided.rows == at_once.rows
    np.testing.assert_array_equal(divided.predictions.ids, at_once.predictions.ids)
    for name, values in divided.sketch.frame().items():
        assert values == pytest.approx(at_once.sketch.frame()[name], abs=1e-12), name


def test_mistakes_in_a_sample_are_named_by_their_row_in_the_files(tmp_path):
    rows = sample()
    for at, cut in enumerate((slice(0, 1800), slice(1800, 3000))):
        Predictions(logits=rows.logits[cut], labels=rows.labels[cut], split="test").save(tmp_path / f"{at}.parquet")
    for mistake in audit_files(tmp_path, most_rows=400, **QUICK).mistakes:
        assert mistake.confidence == pytest.approx(float(rows.probs[mistake.row].max()))
        assert int(mistake.label) == int(rows.labels[mistake.row])


def test_top1_rows(tmp_path):
    import pandas

    rows = sample()
    confidence, predicted = rows.probs.max(1), rows.probs.argmax(1)
    correct = predicted == rows.labels
    sites = np.where(np.arange(3000) % 2, "a", "b")
    pandas.DataFrame({"confidence": confidence, "correct": correct, "site": sites}).to_parquet(
        tmp_path / "top1.parquet"
    )
    of_file = audit_files(tmp_path / "top1.parquet", columns={"groups": "site"}, **QUICK)
    of_arrays = audit(confidence=confidence, correct=correct, groups=sites, **QUICK)
    of_classes = audit(Predictions(logits=rows.logits, labels=rows.labels, groups=sites, split="test"), **QUICK)
    assert of_file.record() == of_arrays.record()
    assert of_file.verdict.sentence == of_classes.verdict.sentence
    assert of_file.groups == of_classes.groups
    assert of_file.thresholds == of_classes.thresholds
    assert [(m.row, m.confidence, m.label) for m in of_file.mistakes] == [
        (m.row, m.confidence, None) for m in of_classes.mistakes
    ]
    for name in ("error", "ece", "adaptive_ece", "smooth_ece", "confidence_gap", "aurc"):
        assert of_file.metrics[name].estimate == pytest.approx(of_classes.metrics[name].estimate, abs=1e-12)
    event = confidence.astype(np.float64)[:, None], correct[:, None]
    sampled = audit_files(tmp_path / "top1.parquet", most_rows=400, **QUICK)
    for found in (of_file, sampled):
        assert found.metrics["brier"].estimate == pytest.approx(multilabel_brier(*event), abs=1e-12)
        assert found.metrics["nll"].estimate == pytest.approx(multilabel_nll(*event), abs=1e-12)
    assert "classwise_ece" not in of_file.metrics
    assert of_file.n_classes is None
    assert of_file.classes == ()
    of_file.html(tmp_path / "audit.html")
    assert "the confidence of each prediction alone" in (tmp_path / "audit.html").read_text()


def test_calibrators_of_top1_rows():
    rows = sample()
    confidence, predicted = rows.probs.max(1), rows.probs.argmax(1)
    fixes = audit(confidence=confidence, correct=predicted == rows.labels, resamples=100).fixes
    assert fixes.recommended in ("platt", "beta")
    assert {fix.name for fix in fixes.tried} == {
        "platt",
        "histogram",
        "isotonic",
        "beta",
        "quadratic",
        "centred_isotonic",
        "venn_abers",
    }
    assert fixes.left_out["temperature"] == "it needs all classes"
    fixed = fixes.calibrator.predict_proba(probs=np.stack([1 - confidence, confidence], 1))[:, 1]
    assert ece(confidence=fixed, correct=predicted == rows.labels) < 0.3 * ece(rows)
    with pytest.raises(TypeError, match="confidence and correct take the place of scores and labels"):
        audit(rows.probs, confidence=confidence, correct=predicted == rows.labels)
    with pytest.raises(ValueError, match="top1 must be of two columns, wrong and right, got 5"):
        audit(rows, top1=True)


def test_inferred_columns_are_notes(tmp_path):
    import pandas

    rows = sample(300)
    table = pandas.DataFrame(rows.probs, columns=[f"p_{k}" for k in range(5)])
    table["y"] = rows.labels
    table.to_parquet(tmp_path / "theirs.parquet")
    assert "labels were taken from 'y'" in audit_files(tmp_path / "theirs.parquet", **QUICK).notes[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"logits": None, "probs": sample(200).probs}, "must have kind logits like the file before it, got probs"),
        ({"ids": None}, "must have ids of type integer like the file before it, got None"),
        ({"classes": list("abcde")}, "must have classes None like the file before it, got"),
    ],
)
def test_parts_of_another_schema_are_refused(parts, change, message):
    rows = sample(200)
    given = {"logits": rows.logits, "labels": rows.labels, "ids": np.arange(200), "split": "test"} | change
    Predictions(**given).save(parts / "part-9.parquet")
    with pytest.raises(PredictionsFileError, match=message):
        audit_files(parts, most_rows=50, **QUICK)


def test_bad_options_are_refused_after_the_first_rows(parts, monkeypatch):
    monkeypatch.setattr("focalcal.auditing.files.collect", lambda *_: pytest.fail("all rows were read"))
    for options in ({"gates": [Gate("mce", ">", 0.1)]}, {"calibrate": "none"}, {"class_names": ["a"]}):
        with pytest.raises(ValueError, match=r"is not a metric of this audit|must name calib|one name per class"):
            audit_files(parts, **options)


def test_the_address_of_a_cluster_that_is_not_asked_for(parts):
    with pytest.raises(
        ValueError, match="address names a Ray cluster, got 'auto' with executor 'local'; use executor ray"
    ):
        audit_files(parts, address="auto", **QUICK)


def test_parts_that_are_empty_bad_or_of_another_width_are_accounted_for(parts, tmp_path):
    """What is left out is named, whoever reads it; what is counted is not."""
    whole = audit_files(parts, **QUICK)
    table = parquet.read_table(parts / "part-0.parquet")
    parquet.write_table(table.slice(0, 0).replace_schema_metadata(None), parts / "part-8.parquet")
    (parts / "part-9.parquet").write_bytes((parts / "part-0.parquet").read_bytes()[:2000])
    with pytest.raises(PredictionsFileError, match=r"part-9.parquet"):
        audit_files(parts, **QUICK)
    with pytest.raises(ValueError, match="on_bad_part must be one of 'refuse', 'skip'"):
        audit_files(parts, on_bad_part="ignore", **QUICK)
    found = audit_files(parts, on_bad_part="skip", **QUICK)
    notes = "; ".join(found.notes)
    assert found.rows == whole.rows
    assert found.metrics["ece"].estimate == pytest.approx(whole.metrics["ece"].estimate, rel=1e-12)
    assert "1 part has no rows: " in notes
    assert "1 part has been left out as unreadable: " in notes
    bad = (parts / "part-9.parquet").read_bytes()
    for name in ("part-8.parquet", "part-9.parquet"):
        (parts / name).unlink()
    (parts / "part--.parquet").write_bytes(bad)  # the first one
    assert audit_files(parts, on_bad_part="skip", **QUICK).rows == whole.rows
    (parts / "part--.parquet").unlink()
    for narrow in sorted(parts.glob("part-*"))[1::-1]:
        rows = Predictions.load(narrow)
        logits = rows.logits.astype("float32")
        Predictions(logits=logits, labels=rows.labels, ids=rows.ids, split=rows.split).save(narrow)
        mixed = audit_files(parts, **QUICK)
        assert mixed.rows == whole.rows
        assert mixed.metrics["nll"].estimate == pytest.approx(whole.metrics["nll"].estimate, rel=1e-6)


def test_names_of_folders_are_columns(tmp_path):
    rows = sample(300)
    for month, part in (("2026-01", rows[:100]), ("2026-02", rows[100:])):
        folder = tmp_path / "rows" / f"month={month}" / "label=9"  # a folder is read where it is named, and never found
        folder.mkdir(parents=True)
        part.save(folder / "part-0.parquet")
    (tmp_path / "rows" / "_SUCCESS").touch()
    found = audit_files(tmp_path / "rows", columns={"groups": "month"}, **QUICK)
    assert {part.name: part.rows for part in found.groups} == {"2026-01": 100, "2026-02": 200}
    assert found.metrics["nll"].estimate == pytest.approx(
        audit_files(tmp_path / "rows", **QUICK).metrics["nll"].estimate
    )


def test_what_is_refused(parts, tmp_path):
    (parts / "readme.txt").touch()
    with pytest.raises(PredictionsFileError, match=r"must hold parts of one table and nothing else, got readme.txt"):
        audit_files(parts)
    (parts / "readme.txt").unlink()
    sample(classes=4).save(parts / "part-9.parquet")
    with pytest.raises(
        PredictionsFileError, match=r"part-9.parquet must have classes 5 like the file before it, got 4"
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
