"""The exact temperature: golden value, scaling, optimality, bounds, memory."""

import math
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from references.golden import single_label
from scipy.optimize import brentq
from support.forked import memory_growth

from focalcal.posthoc import CalibrationWarning, PosteriorRecovery, TemperatureScaling, optimal_inverse_temperature
from focalcal.posthoc.temperature import TemperatureStatus

GOLDEN_TEMPERATURE = 1.0234160866  # of a minimiser of the value, which cannot know more than half the digits
GOLDEN_NLL = 1.2001260116


def random_problem(seed, rows=400, classes=5, scale=3.0, sharpness=0.6):
    """Logits and labels drawn from softmax(sharpness * logits)."""
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(rows, classes, generator=generator, dtype=torch.float64)
    labels = torch.multinomial((sharpness * logits).softmax(1), 1, generator=generator).squeeze(1)
    return logits, labels


def root_of_slope(logits, labels):
    """T by bracketing the derivative of the loss, in float64."""
    logits = logits.double()
    own = logits.gather(1, labels[:, None]).squeeze(1)
    slope = lambda b: float((((b * logits).softmax(1) * logits).sum(1) - own).mean())  # noqa: E731
    return 1 / brentq(slope, 1e-3, 1e3, xtol=1e-15, rtol=1e-14)


def test_golden_value():
    logits, labels = single_label()
    fitted = TemperatureScaling().fit(logits, labels)
    assert fitted.temperature_ == pytest.approx(GOLDEN_TEMPERATURE, rel=2e-8)
    assert fitted.temperature_ == pytest.approx(root_of_slope(logits, labels), rel=1e-12)
    nll = F.nll_loss(fitted.predict_proba(logits).log(), labels).item()
    assert nll == pytest.approx(GOLDEN_NLL, abs=1e-10)
    assert fitted.status_ == "converged"


@given(
    seed=st.integers(0, 50),
    exponent=st.floats(-1.5, 1.5),
    sharpness=st.floats(0.05, 3),
    classes=st.integers(2, 40),
    shift=st.floats(-100, 100),
)
def test_scales_with_the_logits_and_ignores_shifts(seed, exponent, sharpness, classes, shift):
    logits, labels = random_problem(seed, classes=classes, sharpness=sharpness)
    factor = 10.0**exponent
    plain = optimal_inverse_temperature(logits, labels)
    if plain.status is not TemperatureStatus.CONVERGED:
        return
    scaled = optimal_inverse_temperature(factor * logits + shift * torch.arange(len(logits))[:, None] / 400, labels)
    assert scaled.inverse_temperature * factor == pytest.approx(plain.inverse_temperature, rel=1e-8)
    assert 1 / plain.inverse_temperature == pytest.approx(root_of_slope(logits, labels), rel=1e-10)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "classes"), [(20, 3), (3000, 10), (2000, 300)])
def test_exact_for_every_dtype_and_size(dtype, rows, classes):
    """The optimum of the logits as given: float32 arithmetic must not show in the answer."""
    logits, labels = random_problem(7, rows, classes)
    logits = logits.to(dtype)
    found = 1 / optimal_inverse_temperature(logits, labels).inverse_temperature
    assert found == pytest.approx(root_of_slope(logits, labels), rel=1e-9)


def test_a_large_offset_costs_no_digits():
    logits, labels = random_problem(2, rows=3000)
    moved = logits + 1e9 * (1 + torch.arange(3000, dtype=torch.float64)[:, None] % 7)
    exact = moved - moved.amax(1, keepdim=True)
    found = optimal_inverse_temperature(moved, labels).inverse_temperature
    assert found == pytest.approx(optimal_inverse_temperature(exact, labels).inverse_temperature, rel=1e-12)


def test_the_sample_of_rows_only_guides():
    """Every row the sample sees is separable; the others decide."""
    logits, labels = random_problem(1, rows=16_384, classes=8, sharpness=0.5)
    labels[::16] = logits[::16].argmax(1)
    found = 1 / optimal_inverse_temperature(logits, labels).inverse_temperature
    assert found == pytest.approx(root_of_slope(logits, labels), rel=1e-9)


@pytest.mark.parametrize(
    ("scale", "labels_of", "temperature", "message"),
    [
        (1.0, lambda logits, _: logits.argmax(1), 1e-3, "set to 0.001: no finite optimum, since every label has its"),
        *(
            (
                scale,
                lambda logits, _: logits.argmin(1),
                1e3,
                "set to 1000: no finite optimum, since the logits say less",
            )
            for scale in (1e-3, 1.0, 1e3, 1e30, 1e305)
        ),
        (1e-6, lambda _, labels: labels, 1e-3, "lies below"),
        (1e6, lambda _, labels: labels, 1e3, "lies above"),
    ],
)
def test_a_bound_is_taken_audibly_and_marked_in_files_too(tmp_path, scale, labels_of, temperature, message):
    logits, labels = random_problem(0)
    with pytest.warns(CalibrationWarning, match=message):
        fitted = TemperatureScaling().fit(scale * logits, labels_of(logits, labels))
    assert fitted.temperature_ == pytest.approx(temperature)
    assert fitted.status_ != "converged"
    assert torch.isfinite(fitted.predict_proba(scale * logits)).all()
    fitted.save(tmp_path / "a.json")
    assert fitted.at_bound_
    assert TemperatureScaling.load(tmp_path / "a.json").at_bound_


@pytest.mark.parametrize("temperature", [1.2e-3, 900.0])
def test_just_inside_the_range(temperature):
    logits, labels = single_label()
    scale = temperature / GOLDEN_TEMPERATURE
    assert TemperatureScaling().fit(scale * logits, labels).temperature_ == pytest.approx(temperature, rel=1e-7)


def test_logits_that_say_nothing():
    with pytest.warns(CalibrationWarning, match="temperature set to 1: all logits of every row are equal"):
        fitted = TemperatureScaling().fit(np.full((6, 3), 5.0), np.arange(6) % 3)
    assert (fitted.temperature_, fitted.at_bound_) == (1.0, False)
    np.testing.assert_allclose(fitted.predict_proba(np.full((1, 3), 5.0)), 1 / 3)


def test_an_optimum_is_no_bound():
    logits, labels = random_problem(0)
    recovery = PosteriorRecovery(fit_temperature=True)
    for calibrator in (TemperatureScaling(), recovery):
        assert not calibrator.fit(logits, labels).at_bound_
        assert not hasattr(type(calibrator)(), "at_bound_")
    with pytest.warns(CalibrationWarning, match="no finite optimum"):
        assert recovery.fit(logits, logits.argmin(1)).at_bound_


def test_one_wrong_row_among_confident_ones_decides():
    logits = torch.zeros(1000, 2, dtype=torch.float64)
    labels = torch.arange(1000) % 2
    logits[torch.arange(1000), labels] = 50.0
    labels[0] = 1 - labels[0]
    fitted = TemperatureScaling().fit(logits, labels)  # T such that the confidence is the accuracy, 0.999
    assert fitted.temperature_ == pytest.approx(50 / math.log(999), rel=1e-9)


@pytest.mark.once
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_stays_small():
    """The peak grows by less than half of the logits' own 80 MB: by 19 MB, or 23 where freed memory lies in pieces."""
    logits = torch.empty(20_000, 1000).normal_(0, 3)
    labels = logits[:, :50].argmax(1)

    def fit(rows):
        return lambda: TemperatureScaling().fit(logits[:rows], labels[:rows])

    assert memory_growth(fit(200), fit(20_000)) < 40


def test_classes_too_close_for_float32_probabilities_are_told_apart():
    scaling = TemperatureScaling()
    scaling.temperature_, scaling.n_features_in_ = 100.0, 2
    logits = torch.tensor([[1.0, 1.0 + 2**-23]])
    assert scaling.predict_proba(logits)[0, 0] == scaling.predict_proba(logits)[0, 1]
    assert scaling.predict(logits).tolist() == [1]


def test_the_input_is_left_alone():
    logits, labels = random_problem(0)
    copies = logits.clone(), labels.clone()
    TemperatureScaling().fit(logits, labels).predict_proba(logits)
    assert torch.equal(logits, copies[0])
    assert torch.equal(labels, copies[1])
