import numpy as np
import pytest
from support.synthetic_study import add, spec

from focalcal.lab.evidence.evidence import gather
from focalcal.lab.evidence.operating_curve import operating_curve, operating_curves
from focalcal.lab.evidence.surface import surface
from focalcal.lab.store import Store
from focalcal.posthoc import TemperatureScaling
from focalcal.theory import effective_temperature

SETTING = "digits/small_cnn"


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path)
    for gamma in (1.0, 3.0):
        for lam in (0.0, 64.0):
            add(store, spec("fcl", 0, gamma=gamma, lam=lam))
    return store


def test_the_points_undo_the_temperature_of_the_cross_entropy_run(store):
    run = add(store, spec("ce", 0), sharpness=1.3)
    evidence = gather(store.runs(), title="")
    points = operating_curves(evidence, store.runs())[SETTING]
    assert [gamma for gamma, _ in points] == [1.0, 3.0]
    assert points[0][1] < points[1][1]  # a larger gamma takes a stronger anchor
    validation = run.predictions("val")
    scaling = TemperatureScaling().fit(validation.logits, validation.labels)
    eta = scaling.predict_proba(validation.logits)
    for gamma, lam in points:
        assert effective_temperature(np.asarray(eta), gamma=gamma, lam=lam) == pytest.approx(
            1 / scaling.temperature_, rel=0.02
        )
    drawn = surface(evidence, SETTING, curve=points)
    assert all(0 <= row <= 1 and 0 <= column <= 1 for row, column in drawn.curve_places())


def test_there_is_none_without_a_proper_run_or_a_grid(store, tmp_path):
    assert operating_curves(gather(store.runs(), title=""), store.runs()) == {}
    assert operating_curve(store.runs(), [1.0]) == ()
    alone = Store(tmp_path / "alone")
    add(alone, spec("ce", 0))
    assert operating_curves(gather(alone.runs(), title=""), alone.runs()) == {}


@pytest.mark.parametrize("changed", [{"rows": 99}, {"signal": 1e6}])
def test_there_is_none_where_validation_rows_are_few_or_need_no_finite_temperature(store, changed):
    run = add(store, spec("ce", 0), sharpness=1.0, **changed)
    if "signal" in changed:
        assert run.metrics("val")["error"] == 0
    assert operating_curve([run], [1.0]) == ()
    assert operating_curves(gather(store.runs(), title=""), store.runs()) == {}
