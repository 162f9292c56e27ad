"""Sums over rows that are made of softmax, against SciPy's functions, with the kernel and with NumPy alone.

`make sanitize` runs this file once more with AddressSanitizer watching every access.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax

from focalcal import _native
from focalcal._native.softmax import affine_loss, moment_sums

needs_kernel = pytest.mark.skipif(not _native.available(), reason="the native kernel was not built here")
SETS = range(len(_native.instruction_sets()) or 1)


@pytest.fixture(params=["kernel", "numpy"])
def engine(request, monkeypatch):
    """Every test that asks for it runs twice: with the kernel, and as if it had not been built."""
    if request.param == "numpy":
        monkeypatch.setattr("focalcal._native.softmax.available", lambda: False)
    elif not _native.available():
        pytest.skip("the native kernel was not built here")


def written_out(logits, labels, weights, b):
    """The definitions, in float64."""
    z = logits.astype(np.float64)
    s = z - z.max(1, keepdims=True)
    p = softmax(b * z, axis=1)
    mean = (p * s).sum(1, keepdims=True)
    sums = logsumexp(b * s, axis=1), mean[:, 0], (p * (s - mean) ** 2).sum(1), (p * (s - mean) ** 3).sum(1)
    return [float(weights @ each) for each in (*sums, s[np.arange(len(s)), labels])]


def subtracted(logits, weights, b):
    """The size of what is subtracted in each sum, powers of the range: what errors are relative to."""
    spread = np.ptp(logits.astype(np.float64))
    return weights.sum() * np.array([max(1.0, b * spread), spread, spread**2, spread**3, spread])


def bfloat16(values):
    """The upper halves of float32 numbers, as uint16, and the numbers that they are."""
    upper = values.astype(np.float32).view(np.uint32) >> 16
    return upper.astype(np.uint16), (upper << 16).view(np.float32)


@st.composite
def problems(draw):
    """Logits (N, K) of any dtype laid out in any way, labels and weights."""
    rows = draw(st.one_of(st.integers(1, 5), st.sampled_from([63, 64, 65, 130])))
    classes = draw(st.one_of(st.integers(1, 40), st.sampled_from([64, 100, 1023, 1025, 2050])))
    generator = np.random.default_rng(draw(st.integers(0, 2**31)))
    logits = draw(st.sampled_from([0.0, 1.0, 30.0])) * generator.standard_normal((rows, classes))
    logits = logits.astype(draw(st.sampled_from([np.float16, np.float32, np.float64])))
    layout = draw(st.sampled_from(["rows", "classes", "every other row", "backwards", "one row"]))
    if layout == "classes":
        logits = np.asfortranarray(logits)
    elif layout == "every other row":
        logits = np.repeat(logits, 2, axis=0)[::2]
    elif layout == "backwards":
        logits = logits[:, ::-1]
    elif layout == "one row":
        logits = np.broadcast_to(logits[:1], logits.shape)
    return logits, generator.integers(classes, size=rows), generator.uniform(0.1, 2.0, rows)


@needs_kernel
@settings(max_examples=150)
@given(problem=problems(), b=st.sampled_from([1e-3, 0.3, 1.0, 20.0, 1e3]), exact=st.booleans())
@pytest.mark.parametrize("instruction_set", SETS)
def test_moments_of_any_layout_are_what_their_definitions_say(instruction_set, problem, b, exact):
    logits, labels, weights = problem
    expected = written_out(logits, labels, weights, b)
    found = moment_sums(logits, labels, weights, b, exact=exact, instruction_set=instruction_set)
    error = np.abs(np.subtract(found, expected))
    assert (error <= (1e-13 if exact else 2e-6) * subtracted(logits, weights, b) + 1e-300).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("classes", [1, 3, 10, 31, 32, 100, 3000])
def test_moments(engine, dtype, classes):
    generator = np.random.default_rng(classes)
    logits = (3 * generator.standard_normal((70, classes))).astype(dtype)
    labels, weights = generator.integers(classes, size=70), generator.uniform(0.1, 2.0, 70)
    for b in (0.2, 1.0, 5.0):
        expected = written_out(logits, labels, weights, b)
        np.testing.assert_allclose(moment_sums(logits, labels, weights, b), expected, rtol=1e-10, atol=1e-10)
        rough = np.subtract(moment_sums(logits, labels, weights, b, exact=False), expected)
        assert (np.abs(rough) <= 2e-6 * subtracted(logits, weights, b)).all()
    without = moment_sums(logits, None, None, 1.0)
    assert without.own == 0.0
    np.testing.assert_allclose(without[:4], written_out(logits, labels, np.ones(70), 1.0)[:4], rtol=1e-10, atol=1e-10)


def test_each_moment_is_the_derivative_of_the_one_before(engine):
    generator = np.random.default_rng(0)
    logits, labels = 3 * generator.standard_normal((50, 7)), generator.integers(7, size=50)
    b, step = 0.8, 1e-5
    here, above, below = (moment_sums(logits, labels, None, at) for at in (b, b + step, b - step))
    for moment in range(3):
        slope = (above[moment] - below[moment]) / (2 * step)
        assert slope == pytest.approx(here[moment + 1], rel=1e-7)


def test_half_precision_is_what_its_numbers_are_in_double(engine):
    """Denormals, both zeros and the largest numbers among them: nothing is lost on the way."""
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    logits = every[np.isfinite(every)].reshape(-1, 992)
    logits = np.concatenate([logits, logits / 4096])
    assert moment_sums(logits, None, None, 1e-3) == moment_sums(logits.astype(np.float64), None, None, 1e-3)
    packed, values = bfloat16(np.random.default_rng(1).standard_normal((100, 37)))
    labels = np.arange(100) % 37
    assert moment_sums(packed, labels, None, 2.0, bfloat16=True) == moment_sums(values, labels, None, 2.0)


def test_logits_far_apart_leave_finite_moments(engine):
    logits = np.array([[1e308, 0.0, -1e308], [0.0, 1.0, 2.0], [5.0, 5.0, 5.0]])
    for b in (1e-3, 1.0, 1e3):
        found = moment_sums(logits, np.array([0, 1, 2]), None, b)
        expected = written_out(logits[1:], np.array([1, 2]), np.ones(2), b)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-280)


def test_no_rows_have_no_sums(engine):
    assert moment_sums(np.zeros((0, 3)), None, None, 1.0) == (0.0, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("label", [-1, 3, 2**40, -(2**63)])
@pytest.mark.parametrize("classes_first", [False, True])
def test_a_wrong_label_is_refused(engine, label, classes_first):
    logits = np.zeros((300, 3), order="F" if classes_first else "C")
    labels = np.zeros(300, np.int64)
    labels[200:] = label
    message = f"labels must be in 0 .. 2, got {label} in row 200"
    with pytest.raises(ValueError, match=message):
        moment_sums(logits, labels, None, 1.0)
    for weight in (np.ones(3), np.eye(3)):
        with pytest.raises(ValueError, match=message):
            affine_loss(logits, labels, np.ones(300), weight, np.zeros(3))


def test_arguments_that_do_not_fit_are_refused(engine):
    logits, labels = np.zeros((4, 3)), np.zeros(4, np.int64)
    with pytest.raises(TypeError, match=r"logits must be \(N, K\)"):
        moment_sums(logits[0], None, None, 1.0)
    with pytest.raises(TypeError, match=r"logits must be \(N, K\), and uint16 for bfloat16, got float64"):
        moment_sums(logits, None, None, 1.0, bfloat16=True)
    with pytest.raises(TypeError, match="labels must be 4 int64"):
        moment_sums(logits, labels[:3], None, 1.0)
    with pytest.raises(TypeError, match="weights float64"):
        moment_sums(logits, labels, np.ones(4, np.float32), 1.0)
    with pytest.raises(ValueError, match="must fit 3 classes"):
        affine_loss(logits, labels, np.ones(4), np.ones(2), np.zeros(3))


@needs_kernel
def test_the_compiled_functions_refuse_nonsense():
    kernel = _native.kernel()
    with pytest.raises(TypeError, match="moment_sums takes 12 arguments"):
        kernel.moment_sums(1, 2)
    with pytest.raises(ValueError, match="moment_sums: inconsistent description"):
        kernel.moment_sums(*[0] * 7, 1.0, *[0] * 4)
    with pytest.raises(TypeError, match="affine_rows takes 11 arguments"):
        kernel.affine_rows()
    with pytest.raises(ValueError, match="affine_rows: inconsistent description"):
        kernel.affine_rows(*[0] * 11)
    with pytest.raises(TypeError):
        kernel.affine_rows(*[0] * 10, "level")


def affine_problem(rows, classes, *, diagonal):
    generator = np.random.default_rng(rows + classes)
    inputs, labels = generator.standard_normal((rows, classes)), generator.integers(classes, size=rows)
    weight = 1 + 0.3 * generator.standard_normal(classes if diagonal else (classes, classes))
    return inputs, labels, generator.uniform(0.1, 2.0, rows), weight, generator.standard_normal(classes)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize(("rows", "classes"), [(1, 1), (2, 2), (500, 7), (40, 33), (1000, 100), (30, 700)])
def test_affine_loss(engine, rows, classes, diagonal):
    inputs, labels, row_weights, weight, bias = affine_problem(rows, classes, diagonal=diagonal)
    scores = inputs @ (np.diag(weight) if diagonal else weight).T + bias
    share = (row_weights / row_weights.sum())[:, None]
    error = share * (softmax(scores, axis=1) - np.eye(classes)[labels])
    expected = float((share[:, 0] * (logsumexp(scores, axis=1) - scores[np.arange(rows), labels])).sum())
    d_weight = (error * inputs).sum(0) if diagonal else error.T @ inputs
    before = inputs.copy()
    for instruction_set in SETS:
        value, by_weight, by_bias = affine_loss(
            inputs, labels, row_weights, weight, bias, instruction_set=instruction_set
        )
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-14)
        np.testing.assert_allclose(by_weight, d_weight, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(by_bias, error.sum(0), rtol=1e-10, atol=1e-14)
    np.testing.assert_array_equal(inputs, before)  # what the caller gave is never written to


def test_the_affine_loss_of_single_precision_is_nearly_the_same(engine):
    inputs, labels, row_weights, weight, bias = affine_problem(500, 30, diagonal=False)
    expected = affine_loss(inputs, labels, row_weights, weight, bias)
    found = affine_loss(inputs.astype(np.float32), labels, row_weights, weight, bias)
    assert found[0] == pytest.approx(expected[0], rel=1e-6)
    assert found[1].dtype == np.float64
    for derivative, its in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_allclose(derivative, its, atol=1e-6)


@pytest.mark.parametrize("diagonal", [False, True])
def test_the_derivatives_of_the_affine_loss_are_its_slopes(engine, diagonal):
    inputs, labels, row_weights, weight, bias = affine_problem(60, 4, diagonal=diagonal)
    _, d_weight, d_bias = affine_loss(inputs, labels, row_weights, weight, bias)
    step = 1e-6
    for parameter, derivative in ((weight, d_weight), (bias, d_bias)):
        for at in np.ndindex(parameter.shape):
            values = []
            for sign in (1, -1):
                parameter[at] += sign * step
                values.append(affine_loss(inputs, labels, row_weights, weight, bias)[0])
                parameter[at] -= sign * step
            assert (values[0] - values[1]) / (2 * step) == pytest.approx(derivative[at], abs=1e-8)


@pytest.mark.parametrize("diagonal", [False, True])
def test_scores_that_are_far_apart_leave_the_affine_loss_finite(engine, diagonal):
    inputs, labels = np.array([[800.0, 0.0], [0.0, 800.0]]), np.array([0, 0])
    weight = np.ones(2) if diagonal else np.eye(2)
    value, d_weight, d_bias = affine_loss(inputs, labels, np.array([1.0, 3.0]), weight, np.zeros(2))
    assert value == pytest.approx(600.0)  # three quarters of a row whose label lies 800 below
    np.testing.assert_allclose(d_bias, [-0.75, 0.75])
    np.testing.assert_allclose(d_weight, [0.0, 600.0] if diagonal else [[0.0, -600.0], [0.0, 600.0]])


@needs_kernel
def test_as_many_threads_give_the_same_bits_and_more_the_same_sums():
    generator = np.random.default_rng(2)
    logits, labels = generator.standard_normal((5000, 40)), generator.integers(40, size=5000)

    def sums():
        return np.array(moment_sums(logits, labels, None, 1.0))

    usual = sums()
    np.testing.assert_array_equal(sums(), usual)
    with _native.limit_threads(1):
        np.testing.assert_allclose(sums(), usual, rtol=1e-12)
