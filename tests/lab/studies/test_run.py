"""One run: the same numbers whatever happens around it, everything stored, and what is refused refused first."""

import errno
import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from support.distributed_cell import spec as shared_spec
from support.small_runs import digits_recipe, digits_spec, exploding_spec, same_numbers

from focalcal.core.numerics import softmax
from focalcal.lab.data import DataSetError, fingerprint, load_data
from focalcal.lab.models import PublishedWeightsError
from focalcal.lab.store import Evaluations, Protocol, Store
from focalcal.lab.studies.run import run_spec
from focalcal.lab.studies.spec_builder import recipe_of, spec_of
from focalcal.lab.studies.subsets import apply_protocol
from focalcal.lab.training import NonFiniteLossError, predict, recipe, trained_network
from focalcal.metrics import summary

TESTS = Path(__file__).parents[2]
TOLERANCE = 1e-4  # as stated in tests/lab/training/test_distributed.py


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """A run that nothing disturbed."""
    return run_spec(digits_spec(), Store(tmp_path_factory.mktemp("reference")))


def test_everything_is_stored(reference):
    assert reference.splits == ("train", "val", "test")
    for split in reference.splits:
        made = reference.predictions(split)
        assert made.kind == "logits"
        assert made.ids is not None
        expected = summary(logits=made.logits, labels=made.labels).as_dict()
        assert reference.metrics(split) == expected
    assert [one["epoch"] for one in reference.epochs()] == [1, 2, 3]
    last = reference.epochs()[-1]
    assert last["test"]["nll"] == pytest.approx(reference.metrics("test")["nll"], rel=1e-6)
    assert reference.record["epochs"] == 3
    assert reference.record["seconds"] == pytest.approx(sum(one["seconds"] for one in reference.epochs()))
    provenance = reference.record["provenance"]
    assert set(provenance) == {"software", "machine", "data", "started", "finished", "elapsed", "earlier_attempts"}
    assert provenance["elapsed"] > reference.record["seconds"]
    assert provenance["data"]["counts"] == {"train": 150, "val": 60, "test": 60}
    spec = digits_spec()
    seen = apply_protocol(load_data("digits", **dict(recipe_of(spec).data_options)), spec.protocol)
    assert provenance["data"]["fingerprints"] == {split: fingerprint(one) for split, one in seen.splits.items()}
    assert provenance["machine"]["threads"] == 1
    assert provenance["earlier_attempts"] == []
    assert reference.predictions("test").provenance["run"] == reference.key
    assert reference.files.count("weights.pt") == 1, "small ones are kept without being asked for"


def test_what_ran_before_and_the_callers_settings_change_nothing(reference, tmp_path):
    torch.manual_seed(99)
    np.random.seed(99)  # noqa: NPY002
    random.seed(99)
    torch.rand(10), random.random()
    states = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    within = []
    torch.set_num_threads(2)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            again = run_spec(
                digits_spec(), Store(tmp_path), report=lambda progress: within.append(torch.get_num_threads())
            )
        assert torch.get_num_threads() == 2
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_num_threads(1)
        torch.set_default_dtype(torch.float32)
    assert set(within[:-1]) == {1}
    assert same_numbers(again, reference)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.random.get_state()[1].tolist() == states[1]  # noqa: NPY002
    assert random.getstate() == states[2]


def test_another_seed_gives_other_numbers_on_the_same_examples(reference, tmp_path):
    other = run_spec(digits_spec(seed=1), Store(tmp_path))
    assert not same_numbers(other, reference)
    before, after = (run.record["provenance"]["data"]["fingerprints"] for run in (reference, other))
    assert before == after


def test_a_run_that_is_there_is_not_made_again(reference):
    store = Store(reference.path.parent.parent)
    before = (reference.path / "record.json").stat().st_mtime_ns
    told = []
    again = run_spec(digits_spec(), store, report=told.append, data_dir=Path("/nowhere"))
    assert [(one.done, one.of, one.note) for one in told] == [(4.0, 4.0, "already stored")]
    assert again.key == reference.key
    assert (again.path / "record.json").stat().st_mtime_ns == before


def test_progress_grows_from_step_to_step_and_ends_at_the_end(tmp_path):
    told = []
    spec = digits_spec()
    run_spec(spec, Store(tmp_path), report=told.append)
    done = [one.done for one in told]
    assert {(one.key, one.of) for one in told} == {(spec.key, 4.0)}
    assert all(after > before for before, after in pairwise(done))
    assert done[-1] == 4.0
    assert len(told) == 3 * 5 + 3 + 1  # steps, splits and the storing
    assert told[0].note == "epoch 1 of 3"
    assert told[14].note == "epoch 3 of 3"
    assert [one.note for one in told[15:]] == ["predicted train", "predicted val", "predicted test", "stored"]


def test_an_interrupted_run_goes_on(reference, tmp_path):
    store, spec = Store(tmp_path), digits_spec()
    calls = 0

    def interrupt(progress):
        nonlocal calls
        calls += 1
        if calls == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_spec(spec, store, report=interrupt, checkpoint_seconds=0)
    assert not store.has(spec)
    assert torch.get_num_threads() == 1
    told = []
    resumed = run_spec(spec, store, report=told.append)
    assert told[0].done > 1  # the first epoch is not trained again
    provenance = resumed.record["provenance"]
    (earlier,) = provenance["earlier_attempts"]
    assert earlier["started"] <= provenance["started"]
    assert [earlier[name] for name in ("software", "machine")] == [provenance["software"], provenance["machine"]]
    assert same_numbers(resumed, reference)


@pytest.mark.parametrize("moments", [2, pytest.param(12, marks=[pytest.mark.slow, pytest.mark.release])])
def test_sigkill_at_any_moment_changes_nothing(tmp_path, moments):
    tests = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tests), *sys.path]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(tests / "support" / "killed_cells.py"), str(tmp_path), str(moments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == moments
    assert all(one["killed"] for one in found)
    assert not found[0]["there"]
    assert all(one["equal"] for one in found), found
    assert all(one["left"] == [] for one in found), found


def test_a_loss_that_is_not_finite_is_recorded_and_raised(tmp_path):
    store, spec = Store(tmp_path), exploding_spec()
    with pytest.raises(NonFiniteLossError) as caught:
        run_spec(spec, store)
    assert not store.has(spec)
    (failure,) = store.failures()
    assert (failure["key"], failure["kind"]) == (spec.key, "non-finite loss")
    assert failure["details"]["epoch"] == caught.value.epoch
    assert failure["details"]["ids"] == caught.value.ids
    assert failure["message"] == str(caught.value)
    assert torch.get_num_threads() == 1


def test_data_that_are_not_there_are_known_before_training(tmp_path):
    spec = spec_of(recipe("cifar10_resnet8_lite"), "ce", {}, seed=0)
    told = []
    with pytest.raises(DataSetError, match=r"must be the folder of cifar10.*focalcal data get cifar10"):
        run_spec(spec, Store(tmp_path / "store"), data_dir=tmp_path, report=told.append)
    assert told == []


def test_weights_that_do_not_fit_are_known_before_data_are_read(tmp_path):
    weights = tmp_path / "densenet121.pth"
    torch.save({"other": torch.zeros(1)}, weights)
    spec = spec_of(replace(recipe("chestxray14_chexnet"), initial_weights=str(weights)), "multilabel_bce", {}, seed=0)
    with pytest.raises(PublishedWeightsError, match="DenseNet121, except for its head"):
        run_spec(spec, Store(tmp_path / "store"), data_dir=tmp_path)  # where there are no images either


@pytest.mark.parametrize("short_of", ["predictions", "checkpoints"])
def test_a_disk_that_is_too_full_is_known_before_training(tmp_path, monkeypatch, short_of):
    store, asked, told = Store(tmp_path), [], []
    if short_of == "predictions":
        enough = store.check_writable

        def check(needed_bytes=0):
            asked.append(needed_bytes)
            enough(needed_bytes and 1 << 62)

        monkeypatch.setattr(store, "check_writable", check)
    else:
        monkeypatch.setattr("shutil.disk_usage", lambda folder: shutil._ntuple_diskusage(10**9, 10**9, 0))
    with pytest.raises(OSError, match="free some space") as caught:
        run_spec(digits_spec(), store, report=told.append)
    assert caught.value.errno == errno.ENOSPC
    assert told == []
    if asked:
        assert asked[-1] >= (150 + 60 + 60) * 10 * 4  # a float32 logit a class


@pytest.mark.parametrize("threads", [0, 1.5, "two"])
def test_threads_are_checked(tmp_path, threads):
    with pytest.raises((TypeError, ValueError), match="threads must be"):
        run_spec(digits_spec(), Store(tmp_path), threads=threads)


def test_weights_are_kept_if_asked_for_and_give_the_logits(tmp_path):
    spec = digits_spec()
    run = run_spec(spec, Store(tmp_path), evaluations=Evaluations(keep_weights=True))
    used = recipe_of(spec)
    data = apply_protocol(load_data("digits", **dict(used.data_options)), spec.protocol)
    again = predict(trained_network(used, run.file("weights.pt"), data), data.test, used, split="test")
    np.testing.assert_allclose(again.logits, run.predictions("test").logits, rtol=1e-5, atol=1e-5)


def test_a_long_tail_is_trained_on_and_recorded(tmp_path):
    protocol = Protocol(imbalance=10, test_examples=60)
    run = run_spec(spec_of(digits_recipe(epochs=1), "ce", {}, seed=0, protocol=protocol), Store(tmp_path))
    sizes = np.bincount(run.predictions("train").labels, minlength=10)
    assert sizes[0] == 10 * sizes[9] or sizes[0] // sizes[9] == 10
    assert (np.diff(sizes) <= 0).all()
    data = run.record["provenance"]["data"]
    assert data["protocol"]["train, class sizes"] == sizes.tolist()
    assert data["counts"]["train"] == sizes.sum()


def test_a_known_posterior_is_kept_and_measured_against(tmp_path):
    plain = digits_recipe(
        data_set="discrete",
        data_options={"sizes": (300, 50, 100), "seed": 3},
        classes=5,
        model_options={"features": 40, "hidden": ()},
        mean=None,
        std=None,
    )
    run = run_spec(spec_of(plain, "ce", {}, seed=0), Store(tmp_path))
    made = run.predictions("test")
    distance = np.abs(softmax(made.logits.astype(np.float64)) - made.posterior).sum(1).mean() / 2
    assert run.metrics("test")["posterior_distance"] == pytest.approx(float(distance))
    assert 0 < run.metrics("test")["posterior_ece"] <= run.metrics("test")["confidence_distance"]


def test_tensorboard_logs_go_to_a_folder_of_the_run(tmp_path):
    spec = digits_spec()
    run_spec(spec, Store(tmp_path / "store"), tensorboard=tmp_path / "logs")
    assert list((tmp_path / "logs" / spec.key).glob("events*"))


@pytest.mark.slow
def test_two_processes_share_a_cell(tmp_path):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    script = [str(TESTS / "support" / "distributed_cell.py"), str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    done = subprocess.run([*launcher, *script], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    both = Store(tmp_path / "store").run(shared_spec().key)
    assert both.record["provenance"]["machine"]["processes"] == 2
    assert (tmp_path / "rank-0.txt").read_text() == f"{both.key} stored already stored"
    assert (tmp_path / "rank-1.txt").read_text() == f"{both.key} "  # the second is not asked how far they are
    one = run_spec(shared_spec(), Store(tmp_path / "one"))
    for split in ("train", "val", "test"):
        for name in ("error", "nll", "brier"):
            assert both.metrics(split)[name] == pytest.approx(one.metrics(split)[name], abs=TOLERANCE)
