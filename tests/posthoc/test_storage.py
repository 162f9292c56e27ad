"""Files of calibrators: exact, and refused unless a calibrator wrote them."""

import json
import os
import pickle
import secrets
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from references.golden import single_label
from sklearn.exceptions import NotFittedError

from focalcal.posthoc import (
    CALIBRATORS,
    EnsembleTemperatureScaling,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    PosteriorRecovery,
    TemperatureScaling,
    VectorScaling,
    load_calibrator,
    storage,
)

LOGITS, LABELS = single_label()
LOGITS, LABELS = LOGITS[:300, :4], LABELS[:300] % 4


def saved(tmp_path, calibrator):
    path = tmp_path / "calibrator.json"
    calibrator.fit(LOGITS, LABELS).save(path)
    return path


def changed(path, **fields):
    content = json.loads(path.read_text())
    for key, value in fields.items():
        if isinstance(value, dict) and key in ("params", "state"):
            content[key].update(value)
        else:
            content[key] = value
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("name", CALIBRATORS)
def test_round_trip(tmp_path, name):
    original = CALIBRATORS[name]()
    path = saved(tmp_path, original)
    for twin in (load_calibrator(path), CALIBRATORS[name].load(str(path))):
        assert type(twin) is CALIBRATORS[name]
        assert twin.get_params() == original.get_params()
        torch.testing.assert_close(twin.predict_proba(LOGITS), original.predict_proba(LOGITS), rtol=0, atol=1e-10)
        assert twin.n_features_in_ == 4
        twin.save(path)  # and can be saved again
    assert [p.name for p in tmp_path.iterdir()] == ["calibrator.json"]  # no temporary file is left


def test_arguments_survive(tmp_path):
    """Infinite ones too, in JSON that every reader takes."""
    path = saved(tmp_path, MatrixScaling(off_diagonal_l2=np.float64("inf"), bias_l2=np.float32(0.5), max_iter=50))
    twin = load_calibrator(path)
    assert twin.get_params() == {"off_diagonal_l2": float("inf"), "bias_l2": 0.5, "max_iter": 50, "tol": 1e-8}
    assert "Infinity" not in path.read_text()


@pytest.mark.parametrize("kind", [TemperatureScaling, VectorScaling, MatrixScaling])
def test_how_the_search_went_survives(tmp_path, kind):
    original = kind()
    path = saved(tmp_path, original)
    twin = load_calibrator(path)
    assert twin.n_iter_ == original.n_iter_ > 0
    assert getattr(twin, "converged_", None) == getattr(original, "converged_", None)
    with pytest.raises(ValueError, match="n_iter_ must be a whole number >= 0, got -1"):
        load_calibrator(changed(path, state={"n_iter_": -1}))


@pytest.mark.parametrize("reloaded", [False, True])
@pytest.mark.parametrize(
    ("calibrator", "change"),
    [
        (HistogramBinning(15), {"bins": 5}),
        (HistogramBinning(), {"strategy": "equal_mass"}),
        (PosteriorRecovery(), {"fit_temperature": True}),
        (PosteriorRecovery(fit_temperature=True), {"gamma": 1.0}),
        (MatrixScaling(), {"bias_l2": 1.0}),
    ],
)
def test_changed_arguments_ask_for_another_fit(tmp_path, calibrator, change, reloaded):
    path = saved(tmp_path, calibrator)
    calibrator = load_calibrator(path) if reloaded else calibrator
    before, params = path.read_bytes(), calibrator.get_params()
    calibrator.set_params(**change)
    for use in (lambda: calibrator.save(path), lambda: calibrator.predict_proba(LOGITS)):
        with pytest.raises(NotFittedError, match=f"is fitted for {next(iter(change))}=.*call fit"):
            use()
    assert path.read_bytes() == before
    calibrator.set_params(**params).predict_proba(LOGITS)


def test_changes_that_do_not_matter_are_allowed(tmp_path):
    MatrixScaling().fit(LOGITS, LABELS).set_params(max_iter=5).predict_proba(LOGITS)
    PosteriorRecovery().fit(LOGITS, LABELS).set_params(gamma=1.0).save(tmp_path / "recovery.json")
    assert load_calibrator(tmp_path / "recovery.json").gamma == 1.0


def test_an_argument_that_overflows_is_not_infinite(tmp_path):
    path = saved(tmp_path, VectorScaling(bias_l2=0.5))
    path.write_text(path.read_text().replace('"bias_l2": 0.5', '"bias_l2": 1e400'))
    with pytest.raises(ValueError, match="is damaged: bias_l2 must be within the range of float64"):
        load_calibrator(path)


def test_files_of_any_size_are_not_read(tmp_path, monkeypatch):
    path = saved(tmp_path, TemperatureScaling())
    monkeypatch.setattr(storage, "LARGEST_FILE", path.stat().st_size)
    load_calibrator(path)
    monkeypatch.setattr(storage, "LARGEST_FILE", path.stat().st_size - 1)
    with pytest.raises(ValueError, match=r"is not a saved calibrator.*must have 1 to"):
        load_calibrator(path)


def test_nesting_without_end_is_refused(tmp_path):
    path = changed(saved(tmp_path, MatrixScaling()), state={"bias_": "@"})
    path.write_text(path.read_text().replace('"@"', "[" * 900 + "]" * 900))
    with pytest.raises(ValueError, match="bias_ must be finite numbers"):
        load_calibrator(path)


def test_threads_may_save_one_path(tmp_path):
    calibrators = [TemperatureScaling().fit(s * LOGITS, LABELS) for s in (1.0, 2.0, 3.0, 4.0)]
    path = tmp_path / "calibrator.json"

    def often(calibrator):
        for _ in range(20):
            calibrator.save(path)
            load_calibrator(path)  # whole at any time

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(often, calibrators))
    assert [p.name for p in tmp_path.iterdir()] == ["calibrator.json"]


def test_a_planted_link_is_not_followed(tmp_path, monkeypatch):
    victim, folder = tmp_path / "victim", tmp_path / "folder"
    victim.write_text("precious")
    folder.mkdir()
    calibrator = TemperatureScaling().fit(LOGITS, LABELS)
    (folder / f".calibrator.json.{os.getpid()}.part").symlink_to(victim)  # a name that can be guessed
    calibrator.save(folder / "calibrator.json")
    monkeypatch.setattr(secrets, "token_hex", lambda size: "guessed")
    (folder / ".guessed.tmp").symlink_to(victim)
    with pytest.raises(FileExistsError):
        calibrator.save(folder / "calibrator.json")
    assert victim.read_text() == "precious"
    (folder / "link.json").symlink_to(victim)  # the target itself: replaced, not written through
    monkeypatch.undo()
    calibrator.save(folder / "link.json")
    assert victim.read_text() == "precious"
    assert not (folder / "link.json").is_symlink()


def test_places_that_are_none(tmp_path):
    fitted = TemperatureScaling().fit(LOGITS, LABELS)
    with pytest.raises(IsADirectoryError, match="is a folder; add a file name"):
        fitted.save(tmp_path)
    with pytest.raises(FileNotFoundError, match="is no folder; create it"):
        fitted.save(tmp_path / "none" / "calibrator.json")
    with pytest.raises(FileNotFoundError):
        load_calibrator(tmp_path / "none.json")
    with pytest.raises(ValueError, match="not fitted yet"):
        TemperatureScaling().save(tmp_path / "none.json")
    assert not list(tmp_path.iterdir())


def test_what_needs_no_fit_is_saved_without_one(tmp_path):
    path = tmp_path / "recovery.json"
    PosteriorRecovery(2.0, torch.tensor(0.5)).save(path)
    twin = load_calibrator(path)
    torch.testing.assert_close(twin.predict_proba(LOGITS), PosteriorRecovery(2.0, 0.5).predict_proba(LOGITS))
    with pytest.raises(ValueError, match="is no valid PosteriorRecovery: it must hold the fitted"):
        load_calibrator(changed(path, params={"fit_temperature": True}))


def test_another_class_is_named(tmp_path):
    path = saved(tmp_path, TemperatureScaling())
    with pytest.raises(
        ValueError, match=r"holds a TemperatureScaling, not a MatrixScaling; use TemperatureScaling.load"
    ):
        MatrixScaling.load(path)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"null", b"\xff\xfe\x00", b"[" * 100_000, b'{"format": 1}'])
def test_foreign_files(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a saved calibrator"):
        load_calibrator(path)


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


def test_pickles_and_archives_are_not_opened(tmp_path):
    (tmp_path / "pickle").write_bytes(pickle.dumps(Bomb()))
    np.savez(tmp_path / "archive.npz", bomb=np.array([Bomb()], dtype=object))
    torch.save({"bomb": Bomb()}, tmp_path / "torch.pt")
    for path in tmp_path.iterdir():
        with pytest.raises(ValueError, match="is not a saved calibrator"):
            load_calibrator(path)


def test_every_truncation_is_noticed(tmp_path):
    whole = saved(tmp_path, MatrixScaling()).read_bytes()
    path = tmp_path / "part"
    for keep in {0, 1, len(whole) // 3, len(whole) // 2, len(whole) - 2, len(whole) - 1}:
        path.write_bytes(whole[:keep])
        with pytest.raises(ValueError, match="is not a saved calibrator"):
            load_calibrator(path)


@pytest.mark.parametrize("version", [0, 2, "1", None, True, 1.5])
def test_another_version(tmp_path, version):
    path = changed(saved(tmp_path, TemperatureScaling()), version=version)
    with pytest.raises(ValueError, match=f"has version {version!r} and this focalcal reads version 1"):
        load_calibrator(path)


@pytest.mark.parametrize(
    ("calibrator", "fields", "message"),
    [
        (TemperatureScaling(), {"class": "os.system"}, "which is none of TemperatureScaling"),
        (TemperatureScaling(), {"class": "Calibrator"}, "which is none of"),
        (TemperatureScaling(), {"class": 3}, "is damaged"),
        (TemperatureScaling(), {"classes": 1}, "is damaged"),
        (TemperatureScaling(), {"classes": "4"}, "is damaged"),
        (TemperatureScaling(), {"classes": 10**12}, "with 2 to 1000000 classes"),
        (TemperatureScaling(), {"classes": 10**400}, "with 2 to 1000000 classes"),
        (TemperatureScaling(), {"state": {"temperature_": 10**400}}, "temperature_ must be a finite number"),
        (MatrixScaling(), {"state": {"bias_": [10**400, 0, 0, 0]}}, "bias_ must be finite numbers"),
        (MatrixScaling(), {"params": {"off_diagonal_l2": 10**400}}, "is no valid MatrixScaling"),
        (MatrixScaling(), {"params": {"max_iter": "inf"}}, "max_iter must be a whole number"),
        (PosteriorRecovery(), {"params": {"gamma": 10**400}}, "is no valid PosteriorRecovery"),
        (TemperatureScaling(), {"extra": 1}, "is damaged"),
        *((TemperatureScaling(), {"names": names}, "is damaged") for names in (5, ["a", "b"], [[]] * 4)),
        (TemperatureScaling(), {"one_column": True}, "is damaged"),
        (TemperatureScaling(), {"clip": 0.7}, "clip must be above 0 and below 0.5, got 0.7"),
        (TemperatureScaling(), {"clip": [0.1]}, "clip must be above 0 and below 0.5"),
        *(
            (TemperatureScaling(), {"columns": columns}, "columns must hold a kind, logits or probs, and names")
            for columns in (5, {"kind": "probs"}, {"kind": "odds", "names": ["p"]}, {"kind": "probs", "names": []})
        ),
        (TemperatureScaling(), {"params": {"gamma": 1}}, "other arguments"),
        (TemperatureScaling(), {"state": {"temperature_": 0}}, "temperature_ must be positive"),
        (TemperatureScaling(), {"state": {"temperature_": float("nan")}}, "must be a finite number"),
        (TemperatureScaling(), {"state": {"temperature_": "1"}}, "must be a finite number"),
        (TemperatureScaling(), {"state": {"__class__": 1}}, "must hold the fitted"),
        (TemperatureScaling(), {"classes": None}, "must hold the fitted"),
        (MatrixScaling(), {"classes": 5}, r"weight_ must be finite numbers of shape \(5, 5\)"),
        (MatrixScaling(), {"state": {"bias_": [0, 0, 0, None]}}, "bias_ must be finite numbers"),
        (MatrixScaling(), {"state": {"bias_": [[0], [0, 1], 0, 0]}}, "bias_ must be finite numbers"),
        (MatrixScaling(), {"params": {"off_diagonal_l2": -1}}, "off_diagonal_l2 must be finite and >= 0"),
        (HistogramBinning(), {"params": {"bins": 10**6}}, "must have 1000001 and 1000000 numbers"),
        (HistogramBinning(), {"params": {"bins": 10**9}}, "bins must be a whole number >= 1 and <= 1000000"),
        (HistogramBinning(), {"params": {"strategy": "x"}}, "strategy must be one of"),
        (HistogramBinning(), {"state": {"values_": [[2.0] * 15] * 4}}, r"must hold numbers in \[0, 1\]"),
        (HistogramBinning(), {"state": {"edges_": [[1.0, 0.0] * 8] * 4}}, "must not fall"),
        (IsotonicCalibration(), {"state": {"values_": [[0.5]] * 4}}, "as many numbers"),
        (IsotonicCalibration(), {"state": {"values_": 7}}, "one list per class"),
        (EnsembleTemperatureScaling(), {"state": {"weights_": [0.6, 0.6, -0.2]}}, "must be >= 0 and sum to one"),
        (EnsembleTemperatureScaling(), {"state": {"weights_": [0.5, 0.5, 0.1]}}, "must be >= 0 and sum to one"),
        (PosteriorRecovery(), {"params": {"gamma": "3"}}, "gamma must be a number"),
        (PosteriorRecovery(), {"params": {"fit_temperature": 1}}, "fit_temperature must be True or False"),
    ],
)
def test_damaged_and_malicious_files(tmp_path, calibrator, fields, message):
    with pytest.raises(ValueError, match=message):
        load_calibrator(changed(saved(tmp_path, calibrator), **fields))
