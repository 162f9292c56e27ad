"""What every frozen model has: one form of its values, and one sentence for each of its faults."""

import json
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Annotated

import pytest
from pydantic import Field

from focalcal.core.schema import Described, Fault, Options, Plain, Positive, Whole, frozen, plain, validated


@frozen
class Part(Described):
    lr: Positive
    steps: Whole = 3


@frozen
class Model(Described):
    part: Part
    options: Options = ()
    settings: Plain
    more: Annotated[tuple[Part, ...], Field(min_length=1)] = (Part(lr=1),)

    def __post_init__(self):
        if self.part.steps == 7:
            raise ValueError("seven steps are too many")


def test_the_same_values_written_otherwise_are_one_model():
    one = Model(part={"lr": 1, "steps": 2.0}, options={"b": 2.0, "a": [1, 2]}, settings={"x": [1.0]}, more=[Part(lr=1)])
    other = Model(
        part=Part(lr=1.0, steps=2), options=(("a", (1.0, 2)), ("b", 2)), settings={"x": (1,)}, more=(Part(lr=1),)
    )
    assert one == other
    assert hash(one.part) == hash(other.part)
    assert json.dumps(one.as_dict()) == json.dumps(other.as_dict())
    assert Model.from_dict(json.loads(json.dumps(one.as_dict()))) == pickle.loads(pickle.dumps(one)) == one
    assert replace(one, part={"lr": 2}).part == Part(lr=2)
    with pytest.raises(FrozenInstanceError):
        one.part = Part(lr=3)


@pytest.mark.parametrize(
    ("values", "faults"),
    [
        (
            {"part": {"lr": 0, "stebs": 1}},
            ["part.lr must be greater than 0, got 0", "part.stebs: 'stebs' is not a key"],
        ),
        ({"part": {"lr": 1, "steps": True}}, ["part.steps must be a whole number, got True"]),
        ({"part": {"lr": 1}, "more": [{"lr": 1}, {"lr": "1"}]}, ["more[1].lr must be a valid number, got '1'"]),
        ({"part": {"lr": 1}, "options": {"a": float("nan")}}, ["options: a must be finite, got nan"]),
        ({"part": {"lr": 1, "steps": 7}}, ["seven steps are too many"]),
        ({"part": {"lr": 1}, "more": []}, ["more must have at least 1 item, got none"]),
        ({"part": {"lr": 1}, "more": [{}]}, ["more[0].lr must be given"]),
        ({}, ["part must be given"]),
    ],
)
def test_every_fault_has_its_path(values, faults):
    for make in (lambda: Model(settings={}, **values), lambda: Model.from_dict({"settings": {}, **values})):
        with pytest.raises(ValueError, match=r"must|not a key|too many") as caught:
            make()
        said = str(caught.value).split("; ", maxsplit=len(faults) - 1)
        assert [line.startswith(fault) for line, fault in zip(said, faults, strict=True)] == [True] * len(faults), said
    made, found = validated(Model, {"settings": {}, **values}, ("tables", 2))
    assert made is None
    assert len(found) == len(faults)
    assert all(str(fault).startswith("tables[2]") for fault in found)
    assert str(Fault((), "a fault")) == "a fault"


@pytest.mark.parametrize("value", [float("inf"), {1: 2}, object(), 2**53 + 1, ["a\0b"], {"a\0": 1}])
def test_what_json_cannot_say_without_loss_is_refused(value):
    with pytest.raises(ValueError, match=r"must (be|have)"):
        plain({"key": value})
