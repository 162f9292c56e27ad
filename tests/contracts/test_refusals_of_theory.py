"""What every function of the theory refuses, and how: one sentence for each argument, whoever has it."""

import inspect
import math
from functools import partial

import numpy as np
import pytest
import torch
from support.refusals import assert_refused

from focalcal import theory

FUNCTIONS = {name: value for name in dir(theory) if inspect.isfunction(value := getattr(theory, name))}
PARAMETERS = {name: inspect.signature(function).parameters for name, function in FUNCTIONS.items()}
STATES = {name for name in FUNCTIONS if "weights" in PARAMETERS[name] and "temp" not in name and "lam" not in name}
ETA, ROWS = [0.5, 0.3, 0.2], [[0.5, 0.3, 0.2], [0.6, 0.2, 0.2]]
RIGHT = {
    "eta": ETA, "q": ETA, "probs": ROWS, "gamma": 1.0, "lam": 1.0, "u": 0.3, "t": 0.3, "eps": 0.1, "classes": 10,
    "tolerance": 0.1, "temperature": 1.1, "logits": np.zeros((2, 3)),
}  # fmt: skip
ONE_GAMMA = (
    "calibration_bounds degenerate_posterior matching_lam scaling_exponents simplex_bound simplex_constant "
    "small_distortion_temperature"
)
POSITIVE_LAM = (
    "calibration_bounds entropy_bound first_order_bias global_bound interior_bound log_classes_bound simplex_bound "
    "slope_bound"
)
EXACT_GAMMA = "asymptote_delay effective_temperature largest_distortion matching_lam pre_asymptotic_bias recover"
OF_PAIRS = "anchor_share l2_gradient_range scaling_exponents true_logit_gradients"
COUNTED = "degenerate_posterior log_classes_bound largest_distortion"
STACKED = [torch.tensor([0.5, 0.5], requires_grad=True)]


def call(name, **changed):
    given = {key: RIGHT[key] for key, one in PARAMETERS[name].items() if one.default is one.empty}
    if "eta" in PARAMETERS[name] and (name in STATES or name == "lam_for"):
        given["eta"] = ROWS if name in STATES else ETA
    return FUNCTIONS[name](**given | changed)


@pytest.mark.parametrize(
    ("argument", "value", "message", "names"),
    [
        ("gamma", -1.0, "gamma must be finite and >= 0, got -1.*; choose a value in that range", ""),
        ("gamma", math.nan, "gamma must be finite and >= 0, got nan; choose", ""),
        ("gamma", [1.0, 2.0], r"gamma must be one number, got shape \(2,\); call once for each value", ONE_GAMMA),
        ("gamma", 1e300, r"gamma must be at most 1e\+09, got 1e\+300: .*; choose a smaller", EXACT_GAMMA),
        ("lam", -1.0, "lam must be finite and >= 0, got -1.*; choose a value in that range", ""),
        ("lam", math.inf, "lam must be finite and >= 0, got inf; choose", ""),
        ("lam", 0.0, "lam must be > 0, got 0; choose a positive value", POSITIVE_LAM),
        ("lam", [1.0, 2.0], "lam must be one number", "calibration_bounds small_distortion_temperature"),
        ("eta", [0.5, 0.6], "eta must be a distribution .* within 0.001, got a sum of 1.1; divide it by its sum", ""),
        ("eta", [0.5, 0.502], "eta must be a distribution .*, got a sum of 1.002; divide it", ""),
        ("eta", [[0.5, 0.5], [0.5, 0.6]], "eta must be a distribution .*, got a sum of 1.1 at index 1; divide", ""),
        ("eta", [1e308, 1e308], "eta must be a distribution .* got a sum of inf", ""),
        ("eta", [np.inf, -np.inf], "eta must be a distribution .* got inf; find out where", ""),
        ("eta", [np.nan, 1.0], "eta must be a distribution .* got nan; find out where", ""),
        ("eta", [0.7, 0.4, -0.1], "eta must be a distribution .* got -0.1; pass probabilities, not logits", ""),
        ("eta", [[0.5, 0.5], [0.5]], "eta must be an array of numbers, got list: ", ""),
        ("eta", 0.5, r"eta must have shape \(K,\) or .* with at least one class, got shape \(\)", ""),
        (
            "eta",
            np.zeros((3, 0)),
            r"eta must have shape .* at least one class, got shape \(3, 0\); put the classes",
            "",
        ),
        ("eta", ETA, r"eta must be \(N, K\), one row per state, got shape \(3,\)", "calibration_bounds"),
        ("probs", [[0.5, 0.6, 0.1]] * 2, "probs must be a distribution .* got a sum of 1.2 at index 0", ""),
        ("probs", ROWS[:1], r"probs must have the shape \(2, 3\) of eta, got \(1, 3\); give each state a row", ""),
        ("q", [1.5, -0.5], "q must be a distribution .* got -0.5; pass probabilities", ""),
        ("q", [0.5, 0.5], "q must have the 3 classes of eta .*, got 2; give", "conditional_risk focal_potential"),
        ("weights", [0.5, 0.6], "weights must be a distribution .* got a sum of 1.1", ""),
        ("weights", [0.5, 0.3, 0.2], r"weights must have one entry per state, shape \([12],\), got \(3,\)", ""),
        (
            "displacement",
            np.full((2, 3), 0.5),
            "displacement must be probs - eta, within 1e-05, .* off by 0.5; pass",
            "",
        ),
        ("displacement", np.full((2, 3), np.nan), "displacement must be probs - eta, .* off by nan", ""),
        ("displacement", np.zeros(3), r"displacement must have the shape \(2, 3\) of eta", ""),
        ("tolerance", -1.0, "tolerance must be finite and >= 0, got -1", ""),
        ("tolerance", [0.1, 0.2], r"tolerance must be one number, got shape \(2,\); call once", ""),
        ("n_bins", 0, "n_bins must be a whole number >= 1 and <= 1000000, got 0; 15 is usual", ""),
        ("n_bins", 1.5, r"n_bins must be a whole number >= 1 and <= 1000000, got 1\.5", ""),
        ("edges", [1, 0], r"edges must be two or more ascending numbers, got \[1.0, 0.0\]; sort them", ""),
        ("edges", [0.5], r"edges must be two or more ascending numbers, got \[0.5\]", ""),
        ("edges", [0, np.nan, 1], "edges must be two or more ascending numbers", ""),
        ("u", 1.5, r"u must be in \[0, 1\], got 1.5; pass a probability", ""),
        ("t", [0.5, np.nan], r"t must be in \[0, 1\], got nan; pass a probability", ""),
        ("eps", 0.0, "eps must be > 0, got 0; choose a positive value", ""),
        ("eps", [0.1, 1.0], "eps must be below 1, got 1; it is 1 - p_t", ""),
        ("eps", math.nan, "eps must be finite and >= 0, got nan", ""),
        ("classes", 1, "classes must be a whole number >= 2, got 1; eps needs", OF_PAIRS),
        ("classes", 2.5, "classes must be a whole number >= [12].*, got 2.5;", f"{OF_PAIRS} {COUNTED}"),
        ("classes", 0, "classes must be a whole number >= 1 and <= 1000000000, got 0;", COUNTED),
        ("max_steps", 0, "max_steps must be a whole number >= 1, got 0", ""),
        ("norm", "l1", "norm must be", ""),
        ("temperature", 0.0, "temperature must be > 0", ""),
        ("precision", 0, "precision must be > 0", ""),
    ],
)
def test_an_argument(argument, value, message, names):
    chosen = names.split() or [name for name, parameters in PARAMETERS.items() if argument in parameters]
    assert_refused(chosen, lambda name: call(name, **{argument: value}), ValueError, message)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.tensor([0.5, 0.5]).to_sparse(), r"eta must be a dense tensor, got torch.sparse_coo; use eta.to_dense"),
        (STACKED, "eta must be an array of numbers or one tensor, got list: .*torch.stack"),
        (torch.tensor([0.5, 0.5], dtype=torch.complex64), "eta must hold real numbers, got torch.complex64"),
        (torch.tensor([True, False]), "eta must be numbers of at most 64 bits, got bool"),
        (["a", "b"], "eta must be numbers of at most 64 bits, got <U1"),
        (np.array([0.5, 0.5], np.longdouble), "eta must be numbers of at most 64 bits, got"),
    ],
)
def test_what_is_no_array_of_numbers(value, message):
    names = [name for name, parameters in PARAMETERS.items() if "eta" in parameters]
    assert_refused(names, lambda name: call(name, eta=value), TypeError, message)


SPECIAL = {
    "gamma and lam must broadcast": partial(theory.slope_bound, [0.5, 0.5], gamma=[1.0, 2.0], lam=[1.0, 2.0, 3.0]),
    "q must broadcast with the shape": partial(
        theory.conditional_risk, np.full((3, 2), 0.5), np.full((4, 2), 0.5), gamma=1, lam=1
    ),
    "smallest must be below largest, got 0.1": partial(theory.scaling_exponents, gamma=1, smallest=0.1, largest=0.1),
    "smallest must leave gradients that float64 can hold": partial(theory.scaling_exponents, gamma=40),
    "classes must be at least 4 for gamma = 1, got 2": partial(theory.degenerate_posterior, 2, gamma=1.0),
    "classes must be at least 7 for gamma = 5, got 6": partial(theory.degenerate_posterior, 6, gamma=5.0),
    "gamma must be > 0, got 0": partial(theory.degenerate_posterior, 4, gamma=0.0),
    "tolerance must be > 0, got 0": partial(theory.lam_for, 0.0, [0.5, 0.5], gamma=2.0),
    "tolerance must be at least 1e-300, got 9": partial(theory.lam_for, 9e-301, classes=3, gamma=2.0),
    "gamma must have at least one value, got none": partial(theory.lam_for, 0.1, classes=3, gamma=[]),
    "exactly one of eta and classes must be given, got neither": partial(theory.lam_for, 0.1, gamma=2.0),
    "exactly one of eta and classes must be given, got both": partial(theory.lam_for, 0.1, ETA, classes=2, gamma=2.0),
    "logits must be .* float64 with k >= 2, got float64": partial(
        theory.log_posterior, np.zeros(3), gamma=2.0, lam=1.0
    ),
    "logits must be .* float64 with k >= 2, got int": partial(
        theory.log_posterior, np.zeros((2, 3), int), gamma=2.0, lam=1.0
    ),
    "gamma must be a number or a column": partial(theory.log_posterior, np.zeros((2, 3)), gamma=[1.0, 2.0], lam=1.0),
}


@pytest.mark.parametrize("message", SPECIAL)
def test_what_one_function_refuses(message):
    with pytest.raises(ValueError, match=message):
        SPECIAL[message]()


def test_tensors_and_lists_that_are_refused_by_name():
    sparse = torch.ones(2, 3).to_sparse()
    for argument, given in (("gamma", {"gamma": sparse}), ("lam", {"lam": sparse}), ("logits", {"logits": sparse})):
        with pytest.raises(TypeError, match=f"{argument} must be a dense tensor"):
            call("log_posterior" if argument == "logits" else "minimise", **given)
    with pytest.raises(TypeError, match=r"logits must be an array or a tensor \(n, k\).*; use np.asarray"):
        theory.log_posterior([[0.0, 1.0]], gamma=2.0, lam=1.0)
