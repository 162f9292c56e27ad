"""A finished study has no gaps; every way of not being whole is one."""

import json

import pytest
from support.prediction_samples import sample
from support.stored_runs import flip_a_bit

from focalcal.lab.data.corruptions import CORRUPTIONS
from focalcal.lab.store import Evaluation, Evaluations, Store
from focalcal.lab.studies.completeness import METRICS, MULTILABEL_METRICS, find_gaps
from focalcal.lab.studies.spec_builder import shrink_recipe, spec_of
from focalcal.lab.training import recipe
from focalcal.metrics import summary

TWO_EPOCHS = shrink_recipe(recipe("digits_small_cnn_lite"), epochs=2, batch_size=64)
SPEC = spec_of(TWO_EPOCHS, "ce", {}, seed=0)
WHOLE = dict.fromkeys(METRICS, 0.5)


def add(store, spec=SPEC, *, losses=(1.0, 0.5), metrics=None, splits=("val", "test")):
    """A run as `run_spec` stores it, in the parts that count here."""
    path = store.path / "epochs-to-store.jsonl"
    path.write_text(
        "".join(json.dumps({"epoch": k, "train": {"loss": loss}}) + "\n" for k, loss in enumerate(losses, 1))
    )
    record = {
        "metrics": metrics or dict.fromkeys(splits, WHOLE),
        "provenance": {},
        "seconds": 1.0,
        "epochs": len(losses),
    }
    return store.add(spec, record=record, epochs=path, predictions=[sample(6, 3, split=split) for split in splits])


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def sentences(store):
    return [str(gap) for gap in find_gaps([SPEC], store)]


def test_the_metrics_are_those_of_a_summary():
    counted = set(summary([[0.9, 0.1], [0.2, 0.8]], [0, 1]).as_dict())
    assert set(METRICS) == counted - {"rows", "n_classes"}
    assert set(MULTILABEL_METRICS) == set(METRICS) - {"classwise_ece"}


def test_a_whole_study_has_no_gap(store):
    specs = [spec_of(TWO_EPOCHS, name, {}, seed=seed) for name in ("ce", "fcl") for seed in (0, 1)]
    for one in specs:
        add(store, one)
    assert find_gaps(specs, store) == []


def test_cells_that_were_not_run_are_gaps_in_the_order_of_the_study(store):
    specs = [spec_of(TWO_EPOCHS, "ce", {}, seed=seed) for seed in range(3)]
    add(store, specs[1])
    found = find_gaps([*specs, specs[0]], store)
    assert [one.key for one in found] == [specs[0].key, specs[2].key]
    assert [(gap.kind, gap.name, str(gap)) for gap in found[:1]] == [
        ("not run", "digits/small_cnn ce seed 0", "not run")
    ]


def test_a_cell_that_failed_says_why(store):
    store.record_failure(SPEC, kind="non-finite loss", message="epoch 1, batch 3: inf")
    assert sentences(store) == ["non-finite loss: epoch 1, batch 3: inf"]


def test_a_flipped_bit_is_a_gap(store):
    run = add(store)
    flip_a_bit(run.path / "predictions" / "val.npz", 50)
    (gap,) = find_gaps([SPEC], Store(store.path))
    assert "stored, but damaged: predictions/val.npz was changed" in str(gap)


def test_losses_must_be_finite_and_every_epoch_recorded(store):
    add(store, losses=(float("nan"),))
    assert sentences(store) == ["records of 1 epochs instead of 2", "the training loss of epoch 1 is nan"]


def test_metric_records_must_be_whole_and_finite(store):
    lacking = {name: value for name, value in WHOLE.items() if name not in ("ece", "nll")}
    add(store, metrics={"val": lacking, "test": {**WHOLE, "nll": float("inf"), "brier": float("nan")}})
    assert sentences(store) == ["val has no nll, ece", "on test nll is inf, brier is nan"]


def test_every_split_must_be_there(store):
    add(store, splits=("test",))
    assert sentences(store) == ["no predictions of val", "no metrics of val"]


def test_recipes_that_hold_nothing_out_have_no_validation_split(store):
    one = spec_of(shrink_recipe(recipe("cifar10_resnet110"), epochs=2, batch_size=8), "ce", {}, seed=0)
    add(store, one, splits=("test",))
    assert find_gaps([one], store) == []


def test_shifts_must_be_there(store):
    resnet = shrink_recipe(recipe("cifar10_resnet110"), epochs=2, batch_size=8)
    one, asked = spec_of(resnet, "ce", {}, seed=0), Evaluations(shifts=["svhn", "cifar10c"], severities=[5])
    run = add(store, one, splits=("test",))
    assert find_gaps([one], store) == []
    (told,) = find_gaps([one], store, asked)
    assert "was stored without its weights, which cifar10c-5, svhn would be computed from" in str(told)
    assert told.kind == "without weights"
    detection = {"auroc": 0.5, "confidence": 0.5}
    corrupted = [f"cifar10c/{name}/5" for name in CORRUPTIONS]
    for name, splits, metrics in (("svhn", ["svhn"], detection), ("cifar10c-5", corrupted, WHOLE | detection)):
        record = {"metrics": dict.fromkeys(splits, metrics), "provenance": {}, "seconds": 1.0}
        record["metrics"].pop("cifar10c/fog/5", None)
        store.add_evaluation(run.key, Evaluation(name, record, [sample(6, 3, split=split) for split in splits]))
    assert [str(gap) for gap in find_gaps([one], store, asked)] == ["no metrics of cifar10c/fog/5"]


def test_x_rays_have_the_multilabel_metrics(store):
    one = spec_of(shrink_recipe(recipe("chestxray14_chexnet"), epochs=2, batch_size=8), "multilabel_bce", {}, seed=0)
    add(store, one, metrics=dict.fromkeys(("val", "test"), dict.fromkeys(MULTILABEL_METRICS, 0.5)))
    assert find_gaps([one], store) == []
