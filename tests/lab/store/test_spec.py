import json
import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stored_runs import TRAINING, spec

from focalcal.lab.store import Protocol, Spec
from focalcal.lab.store.keys import SCHEMA, spec_key

names = st.text("abcxyz_", min_size=1, max_size=5)
numbers = st.integers(-(2**50), 2**50) | st.floats(-1e9, 1e9)
words = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=4)
leaves = st.none() | st.booleans() | numbers | words
trees = st.dictionaries(
    names,
    st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=6
    ),
    max_size=4,
)
options = st.dictionaries(names, numbers | st.booleans() | st.lists(numbers, max_size=3), max_size=4)


def as_floats(value):
    """The same with every whole number a float; -0.0 is 0."""
    if isinstance(value, dict):
        return {key: as_floats(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return tuple(as_floats(one) for one in value)
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def backwards(value):
    return {key: backwards(value[key]) for key in reversed(value)} if isinstance(value, dict) else value


@settings(max_examples=40)
@given(options, trees, st.integers(0, 2**53 - 1))
def test_the_key_is_that_of_the_values_not_of_their_form(chosen, training, seed):
    one = spec(seed, training=training)
    one = replace(one, objective_options=chosen)
    for other in (
        replace(one, objective_options=as_floats(chosen), training=as_floats(training), seed=float(seed)),
        replace(one, objective_options=backwards(chosen), training=backwards(training)),
        replace(one, objective_options=tuple(chosen.items())),
        Spec.from_dict(json.loads(json.dumps(one.as_dict()))),
        Spec.from_dict(backwards(one.as_dict())),
        pickle.loads(pickle.dumps(one)),
    ):
        assert other.key == one.key
        assert other == one
        assert hash(other) == hash(one)
        assert other.as_dict() == one.as_dict()
    assert spec_key(json.loads(json.dumps(one.as_dict(), indent=1))) == one.key


def test_two_is_two():
    assert spec(gamma=2, lam=1).key == spec(gamma=2.0, lam=1.0).key == spec(lam=np.float64(1), gamma=np.int64(2)).key
    assert spec(gamma=2, lam=-0.0).key == spec(gamma=2, lam=0).key
    assert Protocol(imbalance=10, train_examples=100.0) == Protocol(imbalance=10.0, train_examples=100)


OTHER = {
    "data_set": "cifar10",
    "model": "mlp",
    "objective": "focal",
    "seed": 1,
    "training": {**TRAINING, "optimizer": {"kind": "sgd", "lr": 0.2}},
    "objective_options": {"gamma": 3, "lam": 1.0000000000000002},
    "protocol": Protocol(imbalance=2),
}
OTHER_PROTOCOL = {
    "imbalance": 10,
    "train_examples": 100,
    "test_examples": 100,
    "allow_partial": True,
    "evaluate_every": 2,
}


@pytest.mark.parametrize("field", [one.name for one in fields(Spec)])
def test_every_field_changes_the_key(field):
    assert replace(spec(), **{field: OTHER[field]}).key != spec().key


@pytest.mark.parametrize("field", [one.name for one in fields(Protocol)])
def test_every_field_of_the_protocol_changes_the_key(field):
    changed = replace(spec(), protocol=Protocol(**{field: OTHER_PROTOCOL[field]}))
    assert changed.key != spec().key
    assert Spec.from_dict(json.loads(json.dumps(changed.as_dict()))) == changed


def test_the_key_stays_what_it_was():
    """Stored runs are found by it: a change of this value needs a new SCHEMA."""
    assert SCHEMA == 2
    assert spec(2, gamma=3, lam=0.5).name == "digits/small_cnn fcl(gamma=3, lam=0.5) seed 2"
    assert spec().key == "0b90757a14f736f5abf3adc9045a7d1a"


def test_later_changes_of_a_mapping_do_not_reach_a_spec():
    training = {"optimizer": {"lr": 0.1}}
    one = spec(training=training)
    training["optimizer"]["lr"] = 0.2
    one.as_dict()["training"]["optimizer"]["lr"] = 0.3
    assert one.as_dict()["training"] == {"optimizer": {"lr": 0.1}}
    assert one == spec(training={"optimizer": {"lr": 0.1}})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": -1}, "seed must be greater than or equal to 0, got -1"),
        ({"seed": 2**53}, "must be finite and a float without loss|seed must be less than 9007199254740992"),
        ({"objective": 3}, "objective must be a valid string, got 3"),
        ({"objective_options": {"gamma": float("nan")}}, "objective_options: gamma must be finite, got nan"),
        ({"objective_options": 3}, "objective_options must be a mapping"),
        ({"training": {"optimizer": {"lr": float("inf")}}}, "training must be finite, got inf"),
        ({"training": {"steps": [{1: 2}]}}, "training must have names as keys, got 1"),
        ({"training": {"seed": 2**53 + 1}}, "a float without loss"),
        ({"protocol": {"imbalance": 0.5}}, r"protocol.imbalance must be greater than or equal to 1, got 0.5"),
        ({"protocol": {"shift": ["svhn"]}}, "protocol.shift: 'shift' is not a key here. Known: imbalance"),
    ],
)
def test_what_is_no_spec_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(spec(), **change)
