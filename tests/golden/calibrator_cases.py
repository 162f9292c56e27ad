"""Every calibrator: what its file says, its fitted attributes, and probabilities of the first rows."""

from __future__ import annotations

import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from golden.inputs import masked, multi_label, positive_class, probabilities, row_weights, single_label
from golden.values import SINGLE, Case

from focalcal import posthoc
from focalcal.posthoc import CALIBRATORS

SHOWN = 20  # rows of predicted probabilities
SEARCHED = (1e-6, 2e-7)  # rtol, atol: a minimum is found to about the root of what its function is known to
LARGE = (
    "matrix",
    "dirichlet",
    "isotonic",
    "spline",
)  # slow, or of large files: other forms of the same numbers add nothing
OF_EVERY_ROW = ("centred_isotonic", "venn_abers")  # whose files hold a number or three of every row
OF_FORMS = (  # other forms of the same numbers, which these are not tried on
    "float16 logits",
    "names",
    "dense",
)
SHARP = ("temperature", "histogram", "recovery")  # closed, or found to the last digits

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "matrix": [{"bias_l2": 0.1}, {"off_diagonal_l2": float("inf")}],
    "vector": [{"spread_l2": 0.5, "bias_l2": 0.1}, {"spread_l2": float("inf")}],
    "histogram": [{"bins": 6, "strategy": "equal_mass"}],
    "recovery": [{"gamma": 2.0, "lam": 0.5, "fit_temperature": True}],
    "dirichlet": [{"off_diagonal_l2": 0.1}],
    "spline": [{"knots": 4}],
}


def _inputs() -> dict[str, dict[str, Any]]:
    rows, classes = 500, 5
    logits, labels = single_label(rows, classes)
    probs = probabilities(rows, classes)[0]
    names = np.array(["ant", "bee", "cat", "dog", "elk"])
    dense = np.ascontiguousarray(logits.reshape(50, 10, 5).transpose(0, 2, 1))
    one_column, answers = positive_class(400)
    return {
        "logits": {"logits": logits, "labels": labels},
        "weights": {"logits": logits, "labels": labels, "sample_weight": row_weights(rows)},
        "probs": {"probs": probs, "labels": labels},
        "float32 logits": {"logits": logits.astype(np.float32), "labels": labels},
        "float16 logits": {"logits": logits.astype(np.float16), "labels": labels},
        "names": {"logits": logits, "labels": names[labels], "classes": list(names)},
        "dense": {"logits": dense, "labels": labels.reshape(50, 10)},
        "one column": {"probs": one_column, "labels": answers},
    }


def _fitted(calibrator: Any, given: dict[str, Any], shown: int = SHOWN) -> dict[str, Any]:
    """What is left of a fit, but how many steps it took."""
    calibrator.fit(**given)
    kind = "probs" if "probs" in given else "logits"
    some = {kind: given[kind][:shown]}
    probs = calibrator.predict_proba(**some)
    return {
        "file": _file(calibrator),
        "at_bound": getattr(calibrator, "at_bound_", None),
        "classes": calibrator.classes_,
        "dtype": str(probs.dtype),
        "probs": probs,
        "predicted": calibrator.predict(**some),
    }


def _file(calibrator: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calibrator.json"
        calibrator.save(path)
        content = json.loads(path.read_text())
        again = posthoc.load_calibrator(path)
        again.save(path)
        assert json.loads(path.read_text()) == content
    return without_steps(content)


def without_steps(content: Any) -> Any:
    """A file's content but for how many steps a search took, which is no result."""
    for part in (content, *content["state"].get("calibrators_", [])):
        part["state"].pop("n_iter_", None)
    return content


def _hundred(name: str) -> Any:
    logits, labels = single_label(300, 100)
    calibrator = CALIBRATORS[name]().fit(logits, labels)
    return calibrator.predict_proba(logits[:2])


def _conformal(**options: Any) -> Any:
    logits, labels = single_label(600, 6)
    sets = posthoc.ConformalSets(**options).fit(logits[:300], labels[:300])
    found = sets.evaluate(logits[300:], labels[300:])
    probs = posthoc.ConformalSets(**options).fit(probs=probabilities(600, 6)[0][:300], labels=labels[:300])
    return {
        "threshold": sets.threshold_,
        "of probs": probs.threshold_,
        "sets": [np.flatnonzero(row) for row in np.asarray(sets.predict(logits[300:340]))],
        "coverage": found.frame(),
        "text": str(found),
    }


def _operating_point(**options: Any) -> Any:
    logits, labels = single_label(800, 5)
    found = posthoc.operating_point(3 * logits, labels, resamples=40, **options)
    return {"record": found.record(), "paste": found.paste, "sentence": found.sentence, "frame": found.frame(),
            "posteriors": found.posteriors[:10]}  # fmt: skip


def _split_half(name: str, **given: Any) -> Any:
    found = posthoc.split_half(calibrator=CALIBRATORS[name](), seed=3, **given)
    return {"before": found.before, "after": found.after, "fit": found.fit_rows[:20], "text": str(found)}


def _multilabel(shared: bool, **more: Any) -> Any:
    logits, labels = multi_label()
    found = posthoc.MultilabelCalibration(posthoc.TemperatureScaling(), shared=shared).fit(logits, labels, **more)
    return {"file": _file(found), "probs": found.predict_proba(logits[:SHOWN])}


def _platt_per_label() -> Any:
    logits, labels = multi_label()
    probs = (1 / (1 + np.exp(-logits))).round(9)
    found = posthoc.MultilabelCalibration(posthoc.PlattScaling()).fit(probs=probs, labels=labels)
    return {"file": _file(found), "probs": found.predict_proba(probs=probs[:SHOWN])}


def _masked(name: str) -> Any:
    logits, labels = masked()
    return _fitted(CALIBRATORS[name](), {"logits": logits, "labels": labels})


def cases() -> dict[str, Case]:
    """By name."""
    found = {}
    for kind, given in _inputs().items():
        for name, calibrator in CALIBRATORS.items():
            if (name in LARGE and kind in OF_FORMS) or (name in OF_EVERY_ROW and kind != "one column"):
                continue
            close = (SINGLE, SEARCHED[1]) if "float" in kind else (1e-9, 1e-11) if name in SHARP else SEARCHED
            shown = SHOWN if kind == "logits" else 4
            found[f"{name}, {kind}"] = Case(partial(_fitted, calibrator(), given, shown), *close)
    logits = _inputs()["logits"]
    for name, several in OPTIONS.items():
        for options in several:
            found[f"{name} {options}"] = Case(partial(_fitted, CALIBRATORS[name](**options), logits, 4), *SEARCHED)
    for name in ("temperature", "platt", "histogram", "isotonic", "recovery", "ensemble", "spline"):
        found[f"{name}, 100 classes"] = Case(partial(_hundred, name), *SEARCHED)
    found["temperature, -inf"] = Case(partial(_masked, "temperature"), 1e-9, 1e-11)
    for options in ({}, {"alpha": 0.05, "penalty": 0.02, "free_ranks": 2}, {"randomized": False, "allow_empty": True}):
        found[f"conformal sets {options}"] = Case(partial(_conformal, **options))
    for options in ({}, {"gamma": 1.0, "level": 0.9}, {"trained_with": (3.0, 1.0)}):
        found[f"operating point {options}"] = Case(partial(_operating_point, **options), *SEARCHED)
    for name in ("temperature", "vector", "isotonic"):
        found[f"split half, {name}"] = Case(partial(_split_half, name, **logits), *SEARCHED)
    found["split half, probs"] = Case(partial(_split_half, "temperature", **_inputs()["probs"]), *SEARCHED)
    found["multilabel, each"] = Case(partial(_multilabel, False), 1e-9, 1e-11)
    found["multilabel, shared"] = Case(partial(_multilabel, True), 1e-9, 1e-11)
    found["multilabel, weights"] = Case(partial(_multilabel, False, sample_weight=row_weights(400)), 1e-9, 1e-11)
    found["multilabel, Platt of probs"] = Case(_platt_per_label, *SEARCHED)
    return found
