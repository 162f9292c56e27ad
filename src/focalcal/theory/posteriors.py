"""Posteriors, predictions, gamma and lam as a caller hands them over: checked, in float64, broadcast together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.arrays import as_values, is_tensor
from focalcal.core.checks import ROUNDING, SUM_TOLERANCE, off_simplex, warn_of_rounding

if TYPE_CHECKING:
    from jaxtyping import Float

LARGEST_GAMMA = 1e9  # the relative error of (1 - q)^gamma is gamma times that of 1 - q


def distributions(name: str, values: Any, *, used: str = "divided by their sums") -> Float[np.ndarray, "*b k"]:
    """Rows over the last axis as float64, which are probabilities by the rule of `core.checks`, then exactly so.

    A single distribution has shape (K,); tensors, arrays and lists are taken. What rounding left below 0 becomes 0, and
    the rows are divided by their sums, so that nothing later depends on how they were rounded; a warning says so, or
    how else the caller's are `used`.
    """
    array = as_float64(name, values)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(
            f"{name} must have shape (K,) or (..., K) with at least one class, got shape {array.shape}; "
            "put the classes on the last axis"
        )
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite sum is no distribution, and so is NaN
        total = array.sum(-1)
    wrong = off_simplex(array.min(-1), total)
    if wrong.any():
        raise _not_a_distribution(name, array, total, np.argwhere(wrong)[0])
    warn_of_rounding(name, float(np.abs(total - 1).max(initial=0)), used=used)
    inside = np.maximum(array, 0)
    return inside / inside.sum(-1, keepdims=True)


def _not_a_distribution(name: str, array: np.ndarray, total: np.ndarray, at: np.ndarray) -> ValueError:
    row = array[tuple(at)]
    where = f" at index {', '.join(map(str, at))}" if len(at) else ""
    if not np.isfinite(row).all():
        received, remedy = f"{row[~np.isfinite(row)][0]}", "find out where it comes from"
    elif (row < -ROUNDING).any():
        received, remedy = f"{row.min():g}", "pass probabilities, not logits or scores"
    else:
        received, remedy = f"a sum of {total[tuple(at)]:.12g}", "divide it by its sum, in float64"
    return ValueError(
        f"{name} must be a distribution over the last axis, >= 0 and summing to 1 within {SUM_TOLERANCE:g}, "
        f"got {received}{where}; {remedy}"
    )


def at_least_zero(name: str, values: Any) -> Float[np.ndarray, "*b"]:
    """A number or an array of numbers, finite and >= 0, as float64."""
    array = as_float64(name, values)
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        raise ValueError(f"{name} must be finite and >= 0, got {array[wrong][0]:g}; choose a value in that range")
    return array


def above_zero(name: str, values: Any) -> Float[np.ndarray, "*b"]:
    """The same, and not zero."""
    array = at_least_zero(name, values)
    if (array == 0).any():
        raise ValueError(f"{name} must be > 0, got 0; choose a positive value")
    return array


def focusing(gamma: Any) -> Float[np.ndarray, "*b"]:
    """gamma >= 0 up to where float64 has digits of (1 - q)^gamma left."""
    array = at_least_zero("gamma", gamma)
    if (array > LARGEST_GAMMA).any():
        raise ValueError(
            f"gamma must be at most {LARGEST_GAMMA:g}, got {array.max():g}: (1 - q)^gamma has no correct digit in "
            "float64 beyond; choose a smaller gamma"
        )
    return array


def one_number(name: str, checked: Float[np.ndarray, "*b"]) -> float:
    """What one of the checks returned, which must be a single number."""
    if checked.ndim:
        raise ValueError(f"{name} must be one number, got shape {checked.shape}; call once for each value")
    return float(checked)


def state_weights(weights: Any, states: int) -> Float[np.ndarray, " n"]:
    """The probability of each state: given and summing to one, or equal if None."""
    if weights is None:
        return np.full(states, 1 / states)
    checked = distributions("weights", weights)
    if checked.shape != (states,):
        raise ValueError(f"weights must have one entry per state, shape ({states},), got {checked.shape}")
    return checked


def same_classes(
    eta: Float[np.ndarray, "*b k"], q: Float[np.ndarray, "*b k"]
) -> tuple[Float[np.ndarray, "*b k"], Float[np.ndarray, "*b k"]]:
    """Posteriors and predictions with the same leading shape, by NumPy's rules; the classes must be as many."""
    if eta.shape[-1] != q.shape[-1]:
        raise ValueError(
            f"q must have the {eta.shape[-1]} classes of eta on its last axis, got {q.shape[-1]}; "
            "give each class an entry"
        )
    try:
        eta, q = np.broadcast_arrays(eta, q)
    except ValueError:
        raise ValueError(
            f"q must broadcast with the shape {eta.shape} of eta, got {q.shape}; "
            "give one prediction, or one per posterior"
        ) from None
    return eta, q


def complements(probs: Float[np.ndarray, "*b k"]) -> Float[np.ndarray, "*b k"]:
    """1 - p_k of checked rows, for a row's largest entry as the sum of the others: near 1 that entry lacks digits."""
    top = probs.argmax(-1)[..., None]
    others = probs.copy()
    np.put_along_axis(others, top, 0.0, -1)
    rest = 1 - others
    np.put_along_axis(rest, top, others.sum(-1, keepdims=True), -1)
    return rest


def broadcast(
    eta: Float[np.ndarray, "*b k"], *parameters: Float[np.ndarray, "*b"]
) -> tuple[Float[np.ndarray, "*b k"], tuple[Float[np.ndarray, "*b"], ...]]:
    """The posteriors and their parameters with the same leading shape, by NumPy's rules."""
    try:
        batch = np.broadcast_shapes(eta.shape[:-1], *(p.shape for p in parameters))
    except ValueError:
        shapes = ", ".join(str(p.shape) for p in parameters)
        raise ValueError(
            f"gamma and lam must broadcast with the leading shape {eta.shape[:-1]} of the posteriors, got {shapes}; "
            "give one value, or one per posterior"
        ) from None
    return np.broadcast_to(eta, (*batch, eta.shape[-1])), tuple(np.broadcast_to(p, batch) for p in parameters)


def as_float64(name: str, values: Any) -> Float[np.ndarray, "..."]:
    """Numbers, lists of them, an array or a dense tensor, as a float64 array; all else is a TypeError."""
    if is_tensor(values):
        values = as_values(name, values)
    try:
        array = np.asarray(values)
    except ValueError as problem:  # rows of different lengths
        raise ValueError(f"{name} must be an array of numbers, got {type(values).__name__}: {problem}") from None
    except (TypeError, RuntimeError) as problem:  # tensors in a list that NumPy cannot read
        raise TypeError(
            f"{name} must be an array of numbers or one tensor, got {type(values).__name__}: {problem}; "
            "put a list of tensors together with torch.stack"
        ) from None
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise TypeError(f"{name} must be numbers of at most 64 bits, got {array.dtype} from {type(values).__name__}")
    return array.astype(np.float64)
