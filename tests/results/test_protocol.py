import json

import pytest

from focalcal.results import Protocol
from focalcal.results.spec import EVERYTHING


def test_the_default_is_everything():
    assert Protocol() == EVERYTHING
    assert EVERYTHING.train_examples is None


def test_one_form_for_one_meaning():
    one = Protocol(imbalance=10, train_examples=100.0)
    assert one == Protocol(imbalance=10.0, train_examples=100)
    assert Protocol.from_dict(json.loads(json.dumps(one.as_dict()))) == one


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"imbalance": 0.5}, ValueError, "imbalance must be finite and >= 1"),
        ({"train_examples": 0}, ValueError, "train_examples must be >= 1"),
        ({"test_examples": 1.5}, TypeError, "test_examples must be a whole number"),
        ({"allow_partial": 1}, TypeError, "allow_partial must be True or False"),
        ({"evaluate_every": 0}, ValueError, "evaluate_every must be >= 1"),
    ],
)
def test_what_is_no_protocol_is_refused(values, error, message):
    with pytest.raises(error, match=message):
        Protocol(**values)
