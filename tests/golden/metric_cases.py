"""Every metric of every kind of input; summaries, bins, intervals and sketches."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from golden.inputs import masked, multi_label, outcomes, positive_class, probabilities, single_label
from golden.values import SINGLE, Case

from focalcal import metrics
from focalcal.metrics.event_metrics import FromEvent
from focalcal.metrics.table import METRICS, MULTILABEL_METRICS
from focalcal.predictions import Predictions

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "ece": [{"n_bins": 10}],
    "adaptive_ece": [{"n_bins": 7}, {"convention": "fc"}],
    "classwise_ece": [{"n_bins": 10}],
    "mce": [{"n_bins": 5}],
    "rms_ce": [{"n_bins": 10}],
    "debiased_ece": [{"n_bins": 10}],
    "smooth_ece": [{"convention": "relplot"}, {"bandwidth": 0.05}],
    "top_k_accuracy": [{"k": 2}],
}


def _labelled(name: str, scores: Any, labels: Any, **more: Any) -> dict[str, Any]:
    return {name: scores, "labels": labels, **more}


def _inputs() -> dict[str, dict[str, Any]]:
    probs, labels = probabilities()
    logits = single_label()[0]
    ignored = np.where(np.arange(len(labels)) % 9 == 4, -1, labels)
    names = np.array([f"class {k}" for k in range(10)])
    dense = np.ascontiguousarray(logits.reshape(100, 20, 10).transpose(0, 2, 1))
    confidence, correct = outcomes()
    return {
        "probs": _labelled("probs", probs, labels),
        "logits": _labelled("logits", logits, labels),
        "float32 probs": _labelled("probs", probs.astype(np.float32), labels),
        "float32 logits": _labelled("logits", logits.astype(np.float32), labels),
        "float16 logits": _labelled("logits", logits.astype(np.float16), labels),
        "logits with -inf": _labelled("logits", *masked()),
        "100 classes": _labelled("logits", *single_label(300, 100)),
        "one column": _labelled("probs", *positive_class()),
        "ignored rows": _labelled("logits", logits, ignored, ignore_index=-1),
        "names": _labelled("probs", probs, names[labels], classes=list(names)),
        "dense": _labelled("logits", dense, labels.reshape(100, 20)),
        "confidence": {"confidence": confidence, "correct": correct},
    }


def _every_metric(given: dict[str, Any]) -> dict[str, float]:
    known = {name: metric for name, metric in METRICS.items() if not isinstance(metric.source, FromEvent)}
    if "confidence" in given:
        known = {name: metric for name, metric in known.items() if not metric.source.needs_classes}
    return {name: metric(**given) for name, metric in known.items()}


def _with_options() -> dict[str, float]:
    given = _inputs()["logits"]
    return {f"{name} {options}": METRICS[name](**given, **options) for name in OPTIONS for options in OPTIONS[name]}


def _bins(given: dict[str, Any], **options: Any) -> Any:
    found = metrics.reliability(**given, **options)
    return {"bins": found.frame(), "ece": found.ece, "surprising": found.surprising, "text": str(found)}


def _summary(given: dict[str, Any]) -> Any:
    found = metrics.summary(**given)
    return {"numbers": found.as_dict(), "frame": found.frame(), "text": str(found)}


def _intervals(given: dict[str, Any], **options: Any) -> Any:
    chosen = [metrics.ece, metrics.nll, metrics.brier, metrics.error, metrics.adaptive_ece, metrics.classwise_ece,
              metrics.mce, metrics.smooth_ece, metrics.aurc, metrics.confidence_gap]  # fmt: skip
    chosen = [metric for metric in chosen if "confidence" not in given or not metric.source.needs_classes]
    return metrics.bootstrap(chosen, **given, resamples=60, **options)


def _sketch(given: dict[str, Any]) -> Any:
    rows = len(next(iter(given.values())))
    halves = [
        metrics.CalibrationSketch.of(**{name: value[part] for name, value in given.items()})
        for part in (slice(rows // 3), slice(rows // 3, None))
    ]
    found = sum(halves)
    return {
        "frame": found.frame(),
        "bins": found.bins,
        "classes": found.classes,
        "murphy": found.murphy(),
        "reliability": found.reliability().frame(),
        "bounds": [found.adaptive_ece_bound(), found.smooth_ece_bound()],
    }


def _multilabel() -> Any:
    logits, labels = multi_label()
    probs = (1 / (1 + np.exp(-logits))).round(9)
    missing = np.where(np.arange(labels.size).reshape(labels.shape) % 11 == 3, -1, labels)
    found = metrics.multilabel_summary(probs, missing, ignore_index=-1)
    predictions = Predictions(logits=logits, labels=labels, split="test", multilabel=True)
    return {
        "each": {name: metric(probs, labels, average=None) for name, metric in MULTILABEL_METRICS.items()},
        "mean": {name: metric(probs, labels) for name, metric in MULTILABEL_METRICS.items()},
        "of logits": {name: metric(predictions) for name, metric in MULTILABEL_METRICS.items()},
        "ignored": {name: metric(probs, missing, ignore_index=-1) for name, metric in MULTILABEL_METRICS.items()},
        "summary": [found.frame(), found.mean, str(found)],
        "murphy": metrics.multilabel_murphy(probs, labels),
        "reliability": [one.frame() for one in metrics.multilabel_reliability(probs, labels, n_bins=8)],
    }


def _multilabel_intervals() -> Any:
    logits, labels = multi_label()
    probs = (1 / (1 + np.exp(-logits))).round(9)
    return {
        name: metrics.multilabel_bootstrap(metric, probs, labels, resamples=40)
        for name, metric in MULTILABEL_METRICS.items()
    }


def _auroc() -> Any:
    scores, positives = positive_class()
    return {
        "value": metrics.auroc(scores, positives),
        "ties": metrics.auroc(scores.round(1), positives),
        "interval": metrics.bootstrap(metrics.auroc, scores, positives, resamples=60),
    }


def cases() -> dict[str, Case]:
    """By name."""
    inputs = _inputs()
    groups = np.arange(2000) % 37
    found = {
        f"{name}, every metric": Case(partial(_every_metric, given), *((SINGLE, 1e-7) if "float" in name else ()))
        for name, given in inputs.items()
    }
    found |= {
        f"{name}, summary": Case(partial(_summary, inputs[name]))
        for name in ("logits", "100 classes", "one column", "names", "confidence", "ignored rows")
    }
    found["options"] = Case(_with_options)
    found |= {
        f"reliability of {name} {options}": Case(partial(_bins, inputs[name], **options))
        for name, options in (
            ("logits", {}),
            ("logits", {"binning": "equal_mass", "n_bins": 8}),
            ("probs", {"class_index": 3, "level": 0.9}),
            ("confidence", {"n_bins": 6}),
        )
    }
    found |= {
        f"murphy of {of}": Case(partial(metrics.murphy, **inputs["logits"], of=of)) for of in ("confidence", "classes")
    }
    found |= {
        f"intervals of {name} {'in groups' if 'clusters' in options else options}": Case(
            partial(_intervals, inputs[name], **options), *((SINGLE, 1e-7) if "float" in name else ())
        )
        for name, options in (
            ("logits", {}),
            ("probs", {"method": "basic", "level": 0.9, "seed": 3}),
            ("float32 logits", {"method": "percentile"}),
            ("logits", {"clusters": groups}),
            ("confidence", {}),
            ("dense", {}),
        )
    }
    found |= {f"sketch of {name}": Case(partial(_sketch, inputs[name])) for name in ("logits", "probs", "confidence")}
    found["multilabel"] = Case(_multilabel)
    found["multilabel intervals"] = Case(_multilabel_intervals)
    found["auroc"] = Case(_auroc)
    return found
