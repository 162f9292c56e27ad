import json

import pytest

from focalcal.results import Protocol
from focalcal.results.protocol import EVERYTHING


def test_the_default_is_everything():
    assert Protocol() == EVERYTHING
    assert EVERYTHING.train_examples is None
    assert EVERYTHING.shifts == ()


def test_one_form_for_one_meaning():
    one = Protocol(imbalance=10, train_examples=100.0, shifts=["svhn", "cifar10c", "svhn"], severities=[5, 1.0, 5])
    assert one == Protocol(imbalance=10.0, train_examples=100, shifts=("cifar10c", "svhn"), severities=(1, 5))
    assert Protocol.from_dict(json.loads(json.dumps(one.as_dict()))) == one
    assert (one.shifts, one.severities) == (("cifar10c", "svhn"), (1, 5))


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"imbalance": 0.5}, ValueError, "imbalance must be finite and >= 1"),
        ({"train_examples": 0}, ValueError, "train_examples must be >= 1"),
        ({"test_examples": 1.5}, TypeError, "test_examples must be a whole number"),
        ({"shifts": "svhn"}, TypeError, "shifts must be a list, got 'svhn'; put it into one"),
        ({"shifts": [3]}, TypeError, "shifts must be a string"),
        ({"severities": 5}, TypeError, "severities must be a list"),
        ({"severities": [6]}, ValueError, "severities must be from 1 to 5, got 6"),
        ({"severities": [0]}, ValueError, "severities must be >= 1"),
        ({"allow_partial": 1}, TypeError, "allow_partial must be True or False"),
        ({"keep_weights": "yes"}, TypeError, "keep_weights must be True or False"),
        ({"evaluate_every": 0}, ValueError, "evaluate_every must be >= 1"),
        ({"saliency": True}, TypeError, "saliency must be a whole number"),
    ],
)
def test_what_is_no_protocol_is_refused(values, error, message):
    with pytest.raises(error, match=message):
        Protocol(**values)
