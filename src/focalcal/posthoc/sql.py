"""A fitted map of two classes as an SQL expression: databases calibrate their own scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focalcal.core.checks import one_of

if TYPE_CHECKING:
    from focalcal.posthoc.calibrator import Calibrator

_LEAST = 1.2e-16  # of a probability without a bound of its own: 1 less it is still below 1 in double precision
_MOST = 700.0  # of an exponent: exp(709) is the largest that double precision has, and some databases fail beyond


def sql_expression(calibrator: Calibrator, column: str, kind: str | None) -> str:
    """The calibrated probability of the positive class; see `Calibrator.to_sql`."""
    if not isinstance(column, str) or not column.strip():
        raise ValueError(f"column must be the name of the column with the score, got {column!r}; pass 'score'")
    if kind is None:
        kind = "probs" if calibrator.columns_ is None else calibrator.columns_.kind
    one_of("kind", kind, ("probs", "logits"))
    if getattr(calibrator, "n_features_in_", 2) != 2:
        raise ValueError(
            f"to_sql is for two classes and one column of scores, got a calibrator of {calibrator.n_features_in_} "
            "classes; use `focalcal calibrate`, or to_module() and ONNX"
        )
    learnt, name = calibrator._arrays(), type(calibrator).__name__
    odds, log_p, log_not_p = _logs(column, kind, calibrator.clip_)
    if name == "TemperatureScaling":
        return _sigmoid(f"{odds} / {_number(learnt['temperature'])}")
    if name == "PlattScaling":
        (a, b), (c, d) = learnt["slope"].tolist(), learnt["intercept"].tolist()
        return _pair(_sum((a, _negative(odds)), c), _sum((b, odds), d))
    if name == "BetaCalibration":
        a, b, c = learnt["a"].tolist(), learnt["b"].tolist(), learnt["c"].tolist()
        return _pair(_sum((a[0], log_not_p), (-b[0], log_p), c[0]), _sum((a[1], log_p), (-b[1], log_not_p), c[1]))
    raise ValueError(
        f"to_sql writes temperature, Platt and beta maps, got {name}; fit one of these, or use `focalcal calibrate`"
    )


def _logs(column: str, kind: str, clip: float | None) -> tuple[str, str, str]:
    """log(p / (1 - p)), log p and log(1 - p)."""
    if kind == "logits":
        away = f"LN(1 + EXP(-ABS({column})))"
        return column, f"(LEAST({column}, 0) - {away})", f"(LEAST(-({column}), 0) - {away})"
    least = _LEAST if clip is None else clip
    p = f"LEAST(GREATEST({column}, {_number(least)}), {_number(1 - least)})"
    return f"(LN({p}) - LN(1 - {p}))", f"LN({p})", f"LN(1 - {p})"


def _pair(none: str, own: str) -> str:
    """Of two log odds, each class against the rest, the share of the second: s(own) / (s(none) + s(own))."""
    return f"1 / (1 + (1 + {_exp(own)}) / (1 + {_exp(none)}))"


def _sigmoid(odds: str) -> str:
    return f"1 / (1 + {_exp(odds)})"


def _exp(odds: str) -> str:
    """exp(-odds)."""
    return f"EXP(LEAST(GREATEST(-({odds}), {_number(-_MOST)}), {_number(_MOST)}))"


def _negative(text: str) -> str:
    return f"(-({text}))"


def _sum(*terms: tuple[float, str] | float) -> str:
    return " + ".join(_number(term) if isinstance(term, float) else f"{_number(term[0])} * {term[1]}" for term in terms)


def _number(value: float) -> str:
    """With an exponent: without one it would be a decimal number, with few digits."""
    text = repr(float(value))
    text = text if "e" in text else f"{text}e0"
    return f"({text})" if value < 0 else text
