"""Every objective against the published reference code, on inputs given by formulas."""

import pytest
import torch
from references import golden
from support.engines import ENGINES

from focalcal.losses import LOSSES
from focalcal.losses.functional import mmce


def test_the_input_is_the_published_one():
    logits, labels = golden.single_label()
    assert logits[0, :3].tolist() == pytest.approx([3.07275849, 1.54900564, 0.82129187], abs=1e-8)
    assert labels[:6].tolist() == [4, 0, 7, 4, 0, 0]
    assert (logits.argmax(1) == labels).double().mean().item() == pytest.approx(0.52)


@pytest.mark.parametrize(("case", "value"), golden.MEAN_LOSS.items(), ids=str)
def test_mean_loss(case, value):
    name, arguments = case
    logits, labels = golden.single_label()
    loss = LOSSES[name](**dict(arguments))
    assert loss(logits[:128], labels[:128]).item() == pytest.approx(value, abs=golden.TOLERANCE)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["ce", "focal", "brier", "flsd53", "adafocal", "fcl"])
def test_each_engine_gives_the_mean_loss(name, engine):
    logits, labels = golden.single_label()
    case, value = next((c, v) for c, v in golden.MEAN_LOSS.items() if c[0] == name)
    loss = LOSSES[name](**dict(case[1]))
    loss.engine = engine
    assert loss(logits[:128], labels[:128]).item() == pytest.approx(value, abs=golden.TOLERANCE)


@pytest.mark.parametrize(("variant", "value"), golden.MMCE.items())
def test_mmce(variant, value):
    logits, labels = golden.single_label()
    assert mmce(logits[:128], labels[:128], variant=variant).item() == pytest.approx(value, abs=golden.TOLERANCE)


@pytest.mark.parametrize(("case", "value"), golden.MULTILABEL.items(), ids=str)
@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float64])
def test_multilabel(case, value, dtype):
    name, arguments = case
    logits, labels = golden.multi_label()
    assert int(labels.sum()) == 236
    loss = LOSSES[name](**dict(arguments))
    assert loss(logits, labels.to(dtype)).item() == pytest.approx(value, abs=golden.TOLERANCE)
