"""What runs are called beside each other."""

from dataclasses import replace

from focalcal.lab.evidence.labels import Label, cell_names, run_labels
from focalcal.lab.store import Protocol, Spec
from focalcal.lab.studies.spec_builder import override_recipe, training_of
from focalcal.lab.training import recipe

DIGITS = recipe("digits_mlp_lite")


def spec(objective="ce", seed=0, protocol=None, changes=None, **options):
    return Spec(
        data_set="digits",
        model="mlp",
        objective=objective,
        seed=seed,
        training=training_of(override_recipe(DIGITS, changes or {}), objective),
        objective_options=options,
        protocol=protocol or Protocol(),
    )


def names(*specs):
    labels = run_labels(specs)
    return [labels[each.key] for each in specs]


def test_a_setting_is_data_set_and_network_and_an_objective_has_the_options_that_differ():
    assert names(spec(), spec(seed=1), spec("fcl", gamma=3, lam=1)) == [
        Label("digits/mlp", "ce"),
        Label("digits/mlp", "ce"),
        Label("digits/mlp", "fcl"),
    ]
    swept = names(spec("fcl", gamma=3, lam=1), spec("fcl", gamma=3, lam=0.5))
    assert [label.objective for label in swept] == ["fcl lam=1", "fcl lam=0.5"]


def test_the_ways_to_train_an_objective_are_settings_named_by_what_differs():
    fast, slow = {"optimizer": {"lr": 0.1}}, {"optimizer": {"lr": 0.02}}
    found = names(*(spec(name, changes=way) for way in (fast, slow) for name in ("ce", "brier")))
    assert [label.setting for label in found] == ["digits/mlp lr=0.1"] * 2 + ["digits/mlp lr=0.02"] * 2
    assert [label.objective for label in found] == ["ce", "brier"] * 2  # compared with each other at one rate


def test_a_way_to_train_for_each_objective_is_not_named():
    found = names(spec("ce", changes={"optimizer": {"lr": 0.1}}), spec("brier", changes={"optimizer": {"lr": 0.02}}))
    assert [label.setting for label in found] == ["digits/mlp"] * 2


def test_points_of_an_objective_are_told_apart_within_a_setting():
    found = names(
        spec(changes={"epochs": 3}),
        spec(changes={"epochs": 7}),
        spec("fcl", changes={"epochs": 3}, lam=1),
        spec("fcl", changes={"epochs": 7}, lam=5),
    )
    assert {label.objective for label in found} == {"ce", "fcl"}


def test_examples_and_lists_tell_settings_apart_too():
    few = replace(Protocol(), train_examples=400)
    assert [label.setting for label in names(spec(), spec(protocol=few))] == [
        "digits/mlp train_examples=none",
        "digits/mlp train_examples=400",
    ]
    wide = {"model_options": {"hidden": [64, 32]}}
    assert names(spec(), spec(changes=wide))[1].setting == "digits/mlp hidden=64,32"
    kinds = [spec(changes={"schedule": {"kind": kind}}) for kind in ("constant", "cosine")]
    assert [label.setting for label in names(*kinds)] == ["digits/mlp schedule=constant", "digits/mlp schedule=cosine"]


def test_a_cell_is_named_by_setting_objective_and_seed():
    other = spec(seed=2, changes={"epochs": 7})
    assert cell_names([spec(), other])[other.key] == "digits/mlp epochs=7 ce seed 2"
