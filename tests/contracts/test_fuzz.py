"""Whatever it is given, a public entry returns, or refuses in one paragraph: never an error from within."""

import dataclasses
import importlib
import inspect
import signal
import warnings
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch import nn

from focalcal.auditing import monitor
from focalcal.losses import AdaFocalLoss, LinearFocalCalibrationLoss
from focalcal.metrics import decision_cost, ece, multilabel_ece
from focalcal.posthoc import TemperatureScaling
from focalcal.predictions import Predictions
from focalcal.theory import SolverError

PACKAGES = ("losses", "losses.functional", "metrics", "posthoc", "theory", "stats", "predictions", "auditing")
LEFT_OUT = {
    "theory.run_study",  # a minute's work
    "metrics.Metric",  # base classes
    "posthoc.Calibrator",
    "posthoc.GroupwiseCalibration",  # its fit needs groups; tests/posthoc/test_groupwise.py has what it refuses
    "posthoc.CalibratedModel",  # what its rows may be is the wrapped classifier's affair
}
FILES_MISSING = {"posthoc.load_calibrator": (OSError,), "auditing.monitor": (OSError,)}
LOG = Path(__file__).parents[1] / "predictions/evaluation_logs/lm_eval/model_a/samples_four_options_2026-11-19.jsonl"
SECONDS = 5  # of processor time: what takes longer is taken for endless

_RANDOM = np.random.default_rng(0)
LOGITS = torch.tensor(_RANDOM.normal(size=(120, 3)), dtype=torch.float32)
LABELS = torch.arange(120) % 3
PROBS = LOGITS.double().softmax(1)
EVENT = {"probs": PROBS[:, 0], "labels": (LABELS == 0).long(), "cost": {"fp": 1, "fn": 5}, "threshold": 0.3}
OF_AN_EVENT = (
    *("citl", "compare_costs", "decision_cost", "e50", "e90", "emax", "event_calibration", "flagged_at", "ici"),
    *("intercept", "net_benefit", "observed_rate", "oe", "predicted_rate", "slope"),
)
DECIDED = decision_cost(EVENT["probs"], EVENT["labels"], cost=EVENT["cost"])
SEVERAL_LABELS = (PROBS > 0.3).float()
SEEDS = {"ece": {0: 0.1, 1: 0.2, 2: 0.15}}

# Arguments that every entry takes, by parameter, then those of a package or an entry.
SENSIBLE = {
    "logits": LOGITS,
    "hidden": LOGITS,
    "weight": torch.eye(3),
    "labels": LABELS,
    "target": LABELS,
    "probs": PROBS,
    "gamma": 3.0,
    "lam": 1.0,
    "classes": 3,
    "eta": np.array([[0.7, 0.2, 0.1], [0.4, 0.3, 0.3]]),
    "u": np.array([0.1, 0.9]),
    "eps": np.array([0.1, 0.01]),
    "q": np.array([[0.6, 0.3, 0.1], [0.4, 0.3, 0.3]]),
    "t": np.array([0.1, 0.9]),
    "tolerance": 0.1,
    "edges": [0.0, 0.5, 1.0],
    "gammas": [1.0, 2.0],
    "temperature": 1.2,
    "scores": [0.1, 0.9],
    "positives": [0, 1],
    "differences": [0.1, 0.2, -0.1],
    "p_values": [0.01, 0.2],
    "candidate": SEEDS,
    "baseline": SEEDS,
    "metric": ece,
    "split": "test",
    "comparisons": [],
    "path": "nowhere.json",
    "predictions": Predictions(probs=PROBS, labels=LABELS, split="t"),
}
SPECIAL = {
    "metrics": {"probs": PROBS, "labels": LABELS},
    "posthoc": {"logits": LOGITS, "labels": LABELS},
    "multilabel": {"target": SEVERAL_LABELS, "labels": SEVERAL_LABELS, "metric": multilabel_ece},
    "bootstrap": {"resamples": 20},
    "metrics.corp": {"resamples": 20},
    **{f"metrics.{name}": EVENT for name in OF_AN_EVENT},
    "metrics.event_calibration": EVENT | {"resamples": 20},
    "metrics.compare_costs": {"before": DECIDED, "after": DECIDED},
    "metrics.auroc": {"scores": [0.1, 0.9], "positives": [0, 1]},
    "metrics.graded_scores": {"confidence": [0.9, 0.4], "grade": [1.0, 0.5]},
    "posthoc.selective_threshold": {"confidence": PROBS[:, 0], "correct": LABELS == 0},
    "split_half": {"calibrator": TemperatureScaling()},
    "posthoc.MultilabelCalibration": {"calibrator": TemperatureScaling()},
    "posthoc.calibrate": {"candidates": ["temperature"]},
    "posthoc.headroom": {"candidates": ["temperature"]},
    "posthoc.WithUniform": {"calibrator": TemperatureScaling()},
    "posthoc.CalibratorMixture": {"calibrators": [TemperatureScaling()], "weights": [0.9]},
    "posthoc.label_shift": {"probs_source": PROBS, "labels_source": LABELS, "probs_target": PROBS, "resamples": 20},
    "log_posterior": {"logits": LOGITS.double()},
    "operating_point": {"resamples": 20},
    "theory": {"probs": np.array([[0.6, 0.3, 0.1], [0.4, 0.3, 0.3]])},
    "theory.degenerate_posterior": {"classes": 10},
    "theory.lam_for": {"eta": np.array([0.7, 0.2, 0.1])},
    "stats.compare": {"metrics": ["ece"], "baseline": {"ece": {0: 0.2, 1: 0.1, 2: 0.2}}},
    "predictions": {"probs": PROBS, "labels": LABELS},
    "predictions.option_probs": {"logprobs": [[-0.5, -1.5], [-0.1, -3.0]], "normalize": "options"},
    "predictions.read_logs": {"paths": LOG},
    "predictions.sampled_answers": {"questions": ["a", "a", "b"], "meanings": ["1", "2", "1"], "correct": [1, 0, 1]},
    "predictions.top_k": {"tokens": [["a", "b"]], "logprobs": [[-0.5, -1.0]], "labels": ["a"]},
    "predictions.verbalised": {"stated": ["90%", "50%"], "correct": [1, 0]},
    "auditing": {"probs": PROBS, "labels": LABELS, "calibrate": None, "resamples": 100},
    "auditing.audit_logs": {"paths": LOG},
    "auditing.monitor": {"state": "state.json", "partition": SENSIBLE["predictions"]},
}

ODD = {
    **{repr(value): value for value in (None, True, 0, -1, 1.5, -0.5, 1e-300, 1e300, 2**63, 1j, "", "text", b"text")},
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "10**400": 10**400,
    "-10**400": -(10**400),
    "[10**400]": [10**400],
    **{repr(value): value for value in ([], [[]], [[1], [2, 3]], [None], ["a", "b"], {}, {"a": 1}, set(), (1, 2))},
    "object": object(),
    "function": lambda *_: None,
    "class": int,
    "range": range(120),
    "Fraction": Fraction(1, 3),
    "Decimal": Decimal("NaN"),
    "ellipsis": ...,
    "slice": slice(3),
    "empty array": np.array([]),
    "no rows": np.zeros((0, 3)),
    "no columns": np.zeros((120, 0)),
    "scalar array": np.array(np.nan),
    "NaN rows": np.full((120, 3), np.nan),
    "infinite rows": np.full((120, 3), np.inf),
    "huge rows": np.full((120, 3), 1e308),
    "one class": np.ones((120, 1)),
    "four dimensions": np.zeros((2, 3, 4, 5)),
    "other rows": np.full((7, 3), 1 / 3),
    "words": np.array(["a"] * 120),
    "objects": np.array([None, {}, 10**400], dtype=object),
    "complex rows": np.ones((120, 3), dtype=complex),
    "dates": np.array(["2020-01-01"] * 120, dtype="datetime64[D]"),
    "masked rows": np.ma.masked_all((120, 3)),
    "structured": np.zeros(120, dtype=[("a", int)]),
    "negative labels": np.full(120, -1),
    "huge labels": np.full(120, 2**64 - 1, dtype=np.uint64),
    "bool array": np.ones(120, dtype=bool),
    "scalar tensor": torch.tensor(1.0),
    "empty tensor": torch.empty(0),
    "int8 tensor": torch.zeros(120, dtype=torch.int8),
    "int tensor rows": torch.ones(120, 3, dtype=torch.long),
    "bool tensor": torch.ones(120, dtype=torch.bool),
    "half tensor": torch.full((120, 3), 1 / 3, dtype=torch.float16),
    "float8 tensor": torch.full((120, 3), 1 / 3).to(torch.float8_e4m3fn),
    "complex tensor": torch.ones(120, 3, dtype=torch.complex64),
    "sparse tensor": torch.eye(120)[:, :3].to_sparse(),
    "meta tensor": torch.empty(120, 3, device="meta"),
    "negative view": torch.view_as_complex(torch.ones(120, 3, 2)).conj().imag,
    "tensor with a graph": torch.ones(120, 3, requires_grad=True) / 3,
    "nested tensor": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
}


def _entries():
    """Every public function, class and registry entry, as a function with its parameters."""
    for package in PACKAGES:
        module = importlib.import_module(f"focalcal.{package}")
        for name in module.__all__:
            entry, title = getattr(module, name), f"{package}.{name}"
            if title in LEFT_OUT or not callable(entry) or _is_record(entry):
                continue
            if entry is LinearFocalCalibrationLoss:
                yield title, _Used(entry, lambda loss, hidden, weight, labels: loss(hidden, weight, labels))
            elif isinstance(entry, type) and issubclass(entry, nn.Module):
                yield title, _Used(entry, lambda loss, logits, target: loss(logits, target))
            elif isinstance(entry, type) and hasattr(entry, "fit"):
                yield title, _Used(entry, _fitted)
            elif entry is monitor:
                yield title, _one_partition
            else:
                yield title, entry
    yield "losses.AdaFocalLoss.update", _Used(AdaFocalLoss, lambda loss, probs, labels: loss.update(probs, labels))


def _is_record(entry):
    """What the library makes itself: results, and errors and warnings."""
    plain = dataclasses.is_dataclass(entry) and not hasattr(entry, "__post_init__")
    made = isinstance(entry, type) and issubclass(entry, BaseException | tuple | Enum)
    return plain or made or inspect.isabstract(entry)


def _one_partition(state, partition, columns=None, baseline=None, at=None):
    return monitor(state, partition, columns=columns, baseline=baseline, at=at)


def _fitted(calibrator, logits, labels, probs=None):
    calibrator.fit(logits, labels, probs=probs)
    return calibrator.predict_proba(logits) if hasattr(calibrator, "predict_proba") else calibrator.predict(logits)


class _Used:
    """A class and a use of it, as one function of both their parameters."""

    def __init__(self, made, use):
        self._made, self._use = made, use
        self._own = [p for p in inspect.signature(made).parameters.values() if p.kind != p.VAR_KEYWORD]
        later = list(inspect.signature(use).parameters.values())[1:]
        both = {p.name: p.replace(kind=p.KEYWORD_ONLY) for p in (*self._own, *later)}
        self.__signature__ = inspect.Signature(list(both.values()))

    def __call__(self, **arguments):
        own = {p.name: arguments.pop(p.name) for p in self._own if p.name in arguments}
        return self._use(self._made(**own), **arguments)


ENTRIES = dict(_entries())


def _usual(title):
    """Arguments that the entry takes: the required ones, and what `SPECIAL` has for it."""
    name = title.rpartition(".")[2].lower()
    special = {
        k: v for part, values in SPECIAL.items() if title.startswith(part) or part in name for k, v in values.items()
    }
    parameters = inspect.signature(ENTRIES[title]).parameters
    required = [name for name, p in parameters.items() if p.default is p.empty and name in SENSIBLE]
    return {name: SENSIBLE[name] for name in required} | {name: v for name, v in special.items() if name in parameters}


def _late(*_):
    raise AssertionError(f"no answer within {SECONDS} s")


def _refusal(title, odd):
    """Call the entry with these odd values; the message if it refuses."""
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        ENTRIES[title](**{**_usual(title), **{name: ODD[value] for name, value in odd.items()}})
    except (ValueError, TypeError, SolverError, *FILES_MISSING.get(title, ())) as error:
        return str(error)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return None


@pytest.fixture(autouse=True)
def _guarded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write where they are told
    before = signal.signal(signal.SIGVTALRM, _late)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    signal.signal(signal.SIGVTALRM, before)


def _parameters(title):
    parameters = inspect.signature(ENTRIES[title]).parameters.values()
    return [p.name for p in parameters if p.kind != p.VAR_KEYWORD]


def _is_one_paragraph(message):
    return message is None or (message.strip() and "\n\n" not in message and len(message) < 1000)


@pytest.mark.parametrize("title", sorted(ENTRIES.keys() - {"posthoc.load_calibrator"}))
def test_what_is_usual_is_taken(title):
    """Otherwise the tests below would see one refusal only."""
    assert _refusal(title, {}) is None


@pytest.mark.parametrize("title", [title for title in ENTRIES if _parameters(title)])
def test_odd_arguments_are_taken_or_refused_in_one_paragraph(title):
    names = st.sampled_from(_parameters(title))
    odd_arguments = st.dictionaries(names, st.sampled_from(list(ODD)), min_size=1, max_size=2)

    @settings(max_examples=20, database=None, phases=[Phase.generate, Phase.shrink])
    @given(odd=odd_arguments)
    def refuses_or_returns(odd):
        assert _is_one_paragraph(_refusal(title, odd))

    refuses_or_returns()


@pytest.mark.slow
@pytest.mark.release
@pytest.mark.parametrize("title", [title for title in ENTRIES if _parameters(title)])
def test_every_odd_value_of_every_argument(title):
    for name in _parameters(title):
        for value in ODD:
            assert _is_one_paragraph(_refusal(title, {name: value})), (name, value)
