"""The loop: what it guarantees, what it reports, what it refuses."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.training_runs import (
    ADAM,
    multilabel_data,
    read_lines,
    same_weights,
    small_digits,
    small_recipe,
    without_seconds,
)
from torch import nn

from focalcal.lab.data import load_data
from focalcal.lab.training import (
    CheckpointError,
    NonFiniteLossError,
    Schedule,
    Step,
    build_network,
    fit,
    predict,
    recipe,
)
from focalcal.lab.training.checkpoint import module_identity
from focalcal.lab.training.distributed import Processes
from focalcal.lab.training.inputs import TrainingInputs
from focalcal.lab.training.outputs import outputs
from focalcal.losses import (
    AdaFocalLoss,
    CrossEntropyLoss,
    FLSDLoss,
    FocalCalibrationLoss,
    FocalLoss,
    MultilabelFocalCalibrationLoss,
)
from focalcal.metrics import summary

DROPOUT = {"features": 64, "hidden": (32,), "dropout": 0.3}
CNN = {
    "model": "small_cnn",
    "model_options": {"channels": 1, "width": 4},
    "augmentation": (Step(name="PadCropFlip", options={"pad": 1, "flip": 0.5}),),
    "schedule": Schedule(kind="cosine", warmup=1),
}


@pytest.fixture(scope="module")
def data():
    return small_digits()


@pytest.mark.parametrize("changed", [{"model_options": DROPOUT, "optimizer": ADAM}, CNN], ids=["dropout", "cnn"])
def test_the_same_bits_again_whatever_was_drawn_before(data, changed):
    one = fit(small_recipe(**changed), data, FocalCalibrationLoss(), seed=1)
    torch.manual_seed(77)
    before = torch.get_rng_state()
    other = fit(small_recipe(**changed), data, FocalCalibrationLoss(), seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    assert same_weights(one.model, other.model)
    assert without_seconds(one.epochs) == without_seconds(other.epochs)


def test_what_is_logged(data, tmp_path):
    seen, steps = [], []
    fitted = fit(
        small_recipe(epochs=5),
        data,
        CrossEntropyLoss(),
        seed=0,
        folder=tmp_path,
        evaluate_every=2,
        on_epoch=lambda record, epochs: seen.append((record, epochs)),
        on_step=lambda done, of: steps.append((done, of)),
    )
    assert [record for record, _ in seen] == fitted.epochs == read_lines(tmp_path / "epochs.jsonl")
    assert {epochs for _, epochs in seen} == {5}
    assert steps == [(done, 20) for done in range(1, 21)]
    assert [record["epoch"] for record in fitted.epochs] == [1, 2, 3, 4, 5]
    assert ["test" in record for record in fitted.epochs] == [False, True, False, True, True]
    assert set(fitted.epochs[0]["train"]) == {"loss", "nll", "error"}
    assert {"loss", "nll", "error", "brier", "ece", "smooth_ece"} <= set(fitted.epochs[-1]["val"])
    assert fitted.epochs[-1]["train"]["loss"] < fitted.epochs[0]["train"]["loss"] / 3
    assert fitted.seconds == sum(record["seconds"] for record in fitted.epochs) > 0


def test_the_last_record_is_of_the_predictions_which_need_not_be_made_again(data, tmp_path):
    """The same network, the same numbers: last epoch's, and no other's."""
    one = small_recipe()
    fitted = fit(one, data, CrossEntropyLoss(), seed=0, evaluate_every=2, folder=tmp_path)
    assert not fitted.model.training
    for split in ("val", "test"):
        found = predict(fitted.model, data.splits[split], one, split=split)
        np.testing.assert_array_equal(fitted.outputs[split].logits[:, 0], found.logits)
        expected = summary(logits=found.logits, labels=found.labels).as_dict()
        logged = fitted.epochs[-1][split]
        assert logged == {"loss": logged["loss"], **{name: expected[name] for name in logged if name != "loss"}}
        assert logged["loss"] == pytest.approx(expected["nll"], rel=1e-5)  # cross-entropy is the NLL
    again = fit(one, data, CrossEntropyLoss(), seed=0, folder=tmp_path)  # nothing was left to train
    np.testing.assert_array_equal(again.outputs["test"].logits, fitted.outputs["test"].logits)


def test_the_bins_of_an_epoch_are_those_of_its_ece(data, tmp_path):
    fitted = fit(small_recipe(), data, CrossEntropyLoss(), seed=0, evaluate_every=2, tensorboard=tmp_path)
    assert ["bins" in record for record in fitted.epochs] == ["test" in record for record in fitted.epochs]
    record = fitted.epochs[-1]
    count, confidence, correct = (np.array(record["bins"][name]) for name in ("count", "confidence", "correct"))
    assert count.sum() == len(data.splits["test"].labels)
    assert np.abs(confidence - correct).sum() / count.sum() == pytest.approx(record["test"]["ece"], abs=1e-5)
    assert 1 - correct.sum() / count.sum() == pytest.approx(record["test"]["error"])


def test_a_step_is_the_gradient_step_that_torch_takes_by_hand(data):
    """One epoch of one batch, with clipping: the loop does what its parts say, in that order."""
    one = small_recipe(epochs=1, batch_size=230, gradient_clip=0.1)
    fitted = fit(one, data, CrossEntropyLoss(), seed=4)
    network = build_network(one, data, seed=4)
    inputs = torch.from_numpy((data.train.inputs / 255 - one.mean[0]) / one.std[0]).float()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
    loss = nn.functional.cross_entropy(network(inputs), torch.from_numpy(data.train.labels))
    loss.backward()
    norm = nn.utils.clip_grad_norm_(network.parameters(), 0.1)
    assert norm > 0.1
    optimizer.step()
    for mine, theirs in zip(fitted.model.parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-6)
    assert fitted.epochs[0]["train"]["loss"] == pytest.approx(loss.item(), rel=1e-5)


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        ({"kind": "milestones", "milestones": (1, 2), "factor": 0.1}, [1e-7, 1e-8, 1e-9]),
        ({"kind": "plateau", "factor": 0.1, "patience": 0}, [1e-7, 1e-7, 1e-8]),  # no loss falls by a ten-thousandth
    ],
)
def test_the_rates_are_the_schedules(data, schedule, rates):
    tiny = replace(small_recipe().optimizer, lr=1e-7)
    fitted = fit(small_recipe(schedule=schedule, optimizer=tiny), data, CrossEntropyLoss(), seed=0)
    assert [record["lr"] for record in fitted.epochs] == pytest.approx(rates)


def test_adafocal_is_updated_as_by_hand(data):
    """Its first gammas are those that `update` gives for the first epoch's validation probabilities."""
    ours = AdaFocalLoss(bins=5)
    fitted = fit(small_recipe(epochs=3), data, ours, seed=0)
    assert torch.equal(ours.gammas, torch.ones(5))  # the caller's own is left alone
    history = [record["gammas"] for record in fitted.epochs]
    assert len({tuple(gammas) for gammas in history}) == 3
    assert history[-1] == fitted.loss.gammas.tolist()
    assert len(fitted.epochs[0]["edges"]) == 6

    # An epoch alone is a run of its own: without a schedule the first epoch does not know how many follow.
    first = fit(small_recipe(epochs=1), data, AdaFocalLoss(bins=5), seed=0)
    by_hand = AdaFocalLoss(bins=5)
    val = predict(first.model, data.val, small_recipe(), split="val")
    by_hand.update(torch.from_numpy(val.logits).double().softmax(1), torch.from_numpy(val.labels))
    assert first.epochs[0]["gammas"] == by_hand.gammas.tolist() == history[0]


def test_adafocal_is_updated_after_each_epochs_losses_evaluated_or_not(data):
    """Validation and test loss alike are of the objective it was trained with: before the gammas move."""
    again = replace(data.test, ids=np.char.add("again-", data.test.ids.astype(str)))
    same = replace(data, val=data.test, test=again)
    every = fit(small_recipe(), same, AdaFocalLoss(), seed=0)
    assert all(record["val"] == record["test"] for record in every.epochs)
    assert every.epochs[0]["gammas"] != [1.0] * 15
    seldom = fit(small_recipe(), same, AdaFocalLoss(), seed=0, evaluate_every=3)
    assert "val" not in seldom.epochs[0]
    assert [one["gammas"] for one in seldom.epochs] == [one["gammas"] for one in every.epochs]
    assert same_weights(every.model, seldom.model)


@pytest.mark.parametrize("what", ["loss", "schedule"])
def test_what_needs_validation_data_is_refused_without(data, what):
    bare = replace(data, val=data.val.none())
    schedule = Schedule(kind="plateau", factor=0.1, patience=1) if what == "schedule" else Schedule()
    loss = AdaFocalLoss() if what == "loss" else CrossEntropyLoss()
    with pytest.raises(ValueError, match=r"must have a validation split, got none; load the data with one"):
        fit(small_recipe(schedule=schedule), bare, loss, seed=0, on_step=lambda *_: pytest.fail("it trained"))
    fitted = fit(small_recipe(epochs=1), bare, CrossEntropyLoss(), seed=0)
    assert "val" not in fitted.epochs[0]


def test_dropout_is_on_in_training_after_an_evaluation_which_has_none(data):
    """With dropout near 1 the training loss stays where the evaluated one falls; a lost mode would make them meet."""
    options = {"features": 64, "hidden": (64,), "dropout": 0.9}
    fitted = fit(small_recipe(model_options=options, epochs=8), data, CrossEntropyLoss(), seed=0)
    assert fitted.epochs[-1]["train"]["nll"] > 1.3 * fitted.epochs[-1]["val"]["nll"]
    inputs = TrainingInputs(data.val, small_recipe(), torch.device("cpu"))
    for mode in (True, False):
        fitted.model.train(mode)
        first, second = (outputs(fitted.model, inputs, Processes(torch.device("cpu"))).logits for _ in range(2))
        assert torch.equal(first, second)
        assert fitted.model.training is mode


def test_a_loss_that_is_not_finite_stops_the_run(data, tmp_path):
    wild = replace(small_recipe().optimizer, lr=1e30)
    with pytest.raises(
        NonFiniteLossError, match=r"must be finite, got (nan|inf) in epoch 1 .*lower the learning rate"
    ) as e:
        fit(small_recipe(optimizer=wild), data, FocalCalibrationLoss(), seed=0, folder=tmp_path)
    assert e.value.epoch == 1
    assert e.value.batch >= 2
    assert len(e.value.ids) in (64, 38)
    assert set(e.value.ids) <= set(data.train.ids.tolist())
    record = json.loads((tmp_path / "non_finite.json").read_text())
    assert record == e.value.record()
    assert (record["epoch"], record["batch"], record["split"]) == (1, e.value.batch, "train")
    fit(small_recipe(), data, FocalCalibrationLoss(), seed=0, folder=tmp_path)
    assert not (tmp_path / "non_finite.json").exists()


@pytest.mark.parametrize("split", ["train", "test"])
def test_poisoned_examples_are_named(split):
    data = load_data("gaussian_mixture", classes=3, sizes=(64, 0, 32))
    part = data.splits[split]
    poisoned = part.inputs.copy()
    poisoned[[3, 8]] = np.nan
    data = replace(data, **{split: replace(part, inputs=poisoned)})
    options = {"features": poisoned.shape[1], "hidden": ()}
    one = small_recipe(classes=3, model_options=options, mean=None, std=None, batch_size=16)
    where = "the loss of batch" if split == "train" else "a logit of the test split"
    with pytest.raises(NonFiniteLossError, match=f"{where}.* must be finite") as error:
        fit(one, data, CrossEntropyLoss(), seed=0)
    if split == "train":
        assert set(part.ids[[3, 8]].tolist()) & set(error.value.ids)
        assert len(error.value.ids) == 16
    else:
        assert (error.value.ids, error.value.batch) == (part.ids[[3, 8]].tolist(), None)


def test_several_labels_an_example():
    data = multilabel_data()
    one = small_recipe(
        classes=14,
        model="small_cnn",
        model_options={"channels": 3, "width": 4},
        mean=(0.5, 0.5, 0.5),
        std=(0.25, 0.25, 0.25),
        schedule=Schedule(kind="plateau", factor=0.5, patience=1),
        image_size=7,
        evaluation="ten_crop",
        epochs=2,
    )
    fitted = fit(one, data, MultilabelFocalCalibrationLoss(), seed=0)
    assert set(fitted.epochs[-1]["test"]) >= {"loss", "nll", "error", "brier", "ece"}
    assert 0 < fitted.epochs[-1]["train"]["error"] < 1
    found = predict(fitted.model, data.test, one, split="test")
    assert found.multilabel
    assert found.groups.tolist() == data.test.groups.tolist()
    height, width = data.test.inputs.shape[2:]
    top, left = round((height - 7) / 2), round((width - 7) / 2)
    centre = torch.from_numpy(data.test.inputs[:, :, top : top + 7, left : left + 7]).float().expand(-1, 3, -1, -1)
    with torch.no_grad():
        probs = fitted.model((centre / 255 - 0.5) / 0.25).double().sigmoid()
    seen, reported = (np.square(one - found.labels).mean() for one in (probs.numpy(), found.probs))
    assert fitted.epochs[-1]["test"]["brier"] == pytest.approx(seen, rel=1e-5)  # one crop: ten are for what is reported
    assert seen != pytest.approx(reported, rel=1e-5)


def test_a_loss_of_several_numbers_and_another_number_of_classes_are_refused(data):
    with pytest.raises(ValueError, match=r"must give one number per batch, got shape \(64,\); use reduction='mean'"):
        fit(small_recipe(), data, CrossEntropyLoss(reduction="none"), seed=0)
    with pytest.raises(ValueError, match="classes must be 10 for digits, got 7 in the recipe"):
        fit(small_recipe(classes=7), data, CrossEntropyLoss(), seed=0)


def test_a_network_that_is_handed_over_is_trained_and_left_as_it_was(data, tmp_path):
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    before = network[1].weight.detach().clone()
    one = fit(small_recipe(), data, CrossEntropyLoss(), seed=0, model=network, folder=tmp_path)
    assert torch.equal(network[1].weight, before)
    assert isinstance(one.model, nn.Sequential)
    assert one.epochs[-1]["train"]["loss"] < one.epochs[0]["train"]["loss"]
    named = build_network(small_recipe(model_options=DROPOUT), data, seed=3)
    by_name = fit(small_recipe(model_options=DROPOUT), data, CrossEntropyLoss(), seed=3)
    handed_over = fit(small_recipe(model_options=DROPOUT), data, CrossEntropyLoss(), seed=3, model=named)
    assert same_weights(handed_over.model, by_name.model)
    with torch.no_grad():
        network[1].weight.add_(1)
    with pytest.raises(CheckpointError, match="another model"):
        fit(small_recipe(), data, CrossEntropyLoss(), seed=0, model=network, folder=tmp_path)


def test_losses_are_told_apart_by_class_settings_and_state():
    losses = [FocalLoss(), FocalLoss(2.0), FocalCalibrationLoss(3.0, 1.0), FocalCalibrationLoss(3.0, 1.0 + 1e-9)]
    losses += [FLSDLoss(), FLSDLoss(gamma_easy=2.0), AdaFocalLoss(), AdaFocalLoss(gamma_init=2.0)]
    losses += [CrossEntropyLoss(weight=torch.ones(3)), CrossEntropyLoss(weight=torch.tensor([1.0, 1.0, 2.0]))]
    assert len({module_identity(loss) for loss in losses}) == len(losses)
    used = AdaFocalLoss()
    used(torch.zeros(2, 3), torch.tensor([0, 1]))
    assert module_identity(used) == module_identity(AdaFocalLoss())


def test_tensorboard_has_the_records(data, tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    fitted = fit(small_recipe(epochs=2), data, AdaFocalLoss(bins=3), seed=0, tensorboard=tmp_path)
    events = accumulator.EventAccumulator(str(tmp_path))
    events.Reload()
    for name in ("lr", "train/loss", "test/nll", "gammas/2"):
        head, _, tail = name.partition("/")
        records = [record[head] for record in fitted.epochs]
        expected = [one if not tail else one[int(tail)] if tail.isdigit() else one[tail] for one in records]
        assert [event.step for event in events.Scalars(name)] == [1, 2]
        assert [event.value for event in events.Scalars(name)] == pytest.approx(expected, rel=1e-6)


def test_cross_entropy_learns_the_digits():
    """The whole of the digits with the recipe that the default study uses."""
    one = recipe("digits_small_cnn_lite")
    data = load_data("digits", **dict(one.data_options))
    fitted = fit(one, data, CrossEntropyLoss(), seed=0, evaluate_every=one.epochs)
    assert fitted.epochs[-1]["test"]["error"] <= 0.025
