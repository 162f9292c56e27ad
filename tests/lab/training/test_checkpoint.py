"""Going on from a checkpoint, and refusing what is none."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from support.training_runs import ADAM, SGD, read_lines, same_weights, small_digits, small_recipe, without_seconds

from focalcal.lab.training import CheckpointError, Optimizer, fit
from focalcal.lab.training.checkpoint import check_disk_space
from focalcal.losses import AdaFocalLoss, FocalLoss


@pytest.fixture(scope="module")
def data():
    return small_digits()


class Stop(KeyboardInterrupt):
    pass


def stop_at(step):
    def on_step(done, of):
        if done == step:
            raise Stop

    return on_step


def test_an_interrupted_run_goes_on(data, tmp_path):
    """Ctrl-C in the third epoch: two are kept, the rest is done, and a third call has nothing to do."""
    one = small_recipe(epochs=4)
    whole = fit(one, data, AdaFocalLoss(), seed=0)
    with pytest.raises(Stop):
        fit(one, data, AdaFocalLoss(), seed=0, folder=tmp_path, checkpoint_seconds=0, on_step=stop_at(10))
    assert len(read_lines(tmp_path / "epochs.jsonl")) == 2
    with (tmp_path / "epochs.jsonl").open("a") as log:
        log.write('{"epoch": 3, "tr')  # a line that a dying process left
    steps = []
    loss = AdaFocalLoss()
    resumed = fit(one, data, loss, seed=0, folder=tmp_path, on_step=lambda done, of: steps.append(done))
    assert steps == list(range(9, 17))
    assert same_weights(resumed.model, whole.model)
    assert torch.equal(resumed.loss.gammas, whole.loss.gammas)
    assert without_seconds(resumed.epochs) == without_seconds(whole.epochs)
    assert read_lines(tmp_path / "epochs.jsonl") == resumed.epochs
    again = fit(one, data, loss, seed=0, folder=tmp_path, on_step=lambda *_: pytest.fail("again"))
    assert again.epochs == resumed.epochs
    assert same_weights(again.model, resumed.model)
    assert torch.equal(again.loss.gammas, resumed.loss.gammas)


def test_what_a_callback_raises_leaves_the_callers_settings(data):
    before, deterministic = torch.get_rng_state(), torch.backends.cudnn.deterministic
    with pytest.raises(Stop):
        fit(small_recipe(), data, FocalLoss(), seed=0, on_step=stop_at(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.backends.cudnn.deterministic == deterministic


def test_checkpoints_are_not_written_more_often_than_asked(data, tmp_path):
    written = []

    def on_epoch(record, epochs):
        written.append((tmp_path / "checkpoint.pt").exists())

    fit(small_recipe(), data, FocalLoss(), seed=0, folder=tmp_path, checkpoint_seconds=3600, on_epoch=on_epoch)
    assert written == [False, False, True]  # the last, always


def test_a_checkpoint_of_another_run_is_refused(data, tmp_path):
    call = {"recipe": small_recipe(epochs=1), "data": data, "loss": FocalLoss(gamma=3.0), "seed": 0}
    fit(**call, folder=tmp_path)
    before = (tmp_path / "checkpoint.pt").read_bytes()
    relabelled = data.train.labels.copy()
    relabelled[0] = (relabelled[0] + 1) % 10
    for name, value in (
        ("recipe", small_recipe(epochs=2)),
        ("seed", 1),
        ("loss", FocalLoss(gamma=3.5)),
        ("data", replace(data, train=replace(data.train, labels=relabelled))),
    ):
        with pytest.raises(CheckpointError, match=rf"of this run, got one with another {name} .*choose another folder"):
            fit(**{**call, name: value}, folder=tmp_path)
        assert (tmp_path / "checkpoint.pt").read_bytes() == before


def test_a_damaged_checkpoint_is_named_left_alone_and_runs_nothing(data, tmp_path):
    """It is read as weights only, so a pickle that would call something is refused."""

    class Touch:
        def __reduce__(self):
            return (open, (str(tmp_path / "touched"), "w"))

    fit(small_recipe(epochs=1), data, FocalLoss(), seed=0, folder=tmp_path)
    path = tmp_path / "checkpoint.pt"
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"hello", {"weights": torch.zeros(2)}, {"identity": Touch()}):
        torch.save(content, path) if isinstance(content, dict) else path.write_bytes(content)
        damaged = path.read_bytes()
        with pytest.raises(
            CheckpointError, match=r"must be a checkpoint, got a damaged or foreign.*delete it to start"
        ):
            fit(small_recipe(epochs=1), data, FocalLoss(), seed=0, folder=tmp_path)
        assert path.read_bytes() == damaged
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("optimizer", [SGD, ADAM, Optimizer(name="sgd", lr=0.1)], ids=["momentum", "adam", "plain"])
def test_a_disk_without_room_for_two_checkpoints_is_refused_before_there_is_one(data, tmp_path, monkeypatch, optimizer):
    """Their size is known then."""
    one = small_recipe(optimizer=optimizer, model_options={"features": 64, "hidden": (400, 400)}, epochs=1)
    fitted = fit(one, data, FocalLoss(), seed=0, folder=tmp_path)
    size = (tmp_path / "checkpoint.pt").stat().st_size
    for free, fits in ((2.1 * size + (1 << 20), True), (1.9 * size + (1 << 20), False)):
        monkeypatch.setattr("shutil.disk_usage", lambda _, free=free: SimpleNamespace(free=int(free)))
        with (
            nullcontext() if fits else pytest.raises(OSError, match=r"must have room for two checkpoints, .* free some")
        ):
            check_disk_space(tmp_path, fitted.model, optimizer, 1)


def test_what_killed_writers_left_is_removed_and_nothing_else(data, tmp_path):
    left, others = tmp_path / f".{'0a' * 16}.tmp", [tmp_path / ".mine.tmp", tmp_path / f"{'0a' * 16}.tmp"]
    for path in (left, *others):
        path.write_bytes(b"half a checkpoint")
    fit(small_recipe(epochs=1), data, FocalLoss(), seed=0, folder=tmp_path)
    assert not left.exists()
    assert all(path.exists() for path in others)
