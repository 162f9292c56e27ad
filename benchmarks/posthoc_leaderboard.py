"""Which calibrator for which classifier: ours and those of other libraries, on the tasks of posthoc_tasks.py.

    python benchmarks/posthoc_leaderboard.py TASKS RECORDS.csv [--part judging] [--first N] [--splits N]
        [--sizes 200 1000 5000] [--only NAME ...] [--minutes M]

TASKS is what posthoc_tasks.py wrote. Of every task and split that many rows are drawn for fitting; the others judge.
One line per task, size, split and calibrator is appended to RECORDS; lines that are there are not computed again, so
that the same command goes on after --minutes of CPU, or with more splits. posthoc_page.py makes the page from them.

Peers (probmetrics with numba, netcal) take part where they are installed; run this in an environment of their own,
with one thread (OMP_NUM_THREADS=1). All get probabilities. A calibrator that fails, or gives no probabilities, is
judged by the probabilities as they were, and `failed` is 1. The NLL is that of probabilities clipped at 1e-12.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from posthoc_tasks import DEVELOPMENT

from focalcal.metrics import debiased_ece, smooth_ece
from focalcal.posthoc import CALIBRATORS, WithUniform, calibrate

LEAST_TEST, LEAST = 300, 1e-12
COLUMNS = ("task", "rows", "split", "calibrator", "nll", "brier", "ece", "smooth_ece", "seconds", "failed")
SLOW = ("probmetrics ivap", "netcal BetaCalibration", "dirichlet")  # seconds at 100 classes: left out above 50


def fit_predict_ours(calibrator):
    return lambda probs, labels, held: calibrator().fit(probs=probs, labels=labels).predict_proba(probs=held)


def fit_predict_calibrate(prefer):
    return lambda probs, labels, held: calibrate(probs=probs, labels=labels, prefer=prefer).predict_proba(probs=held)


def fit_predict_probmetrics(name):
    def fit_predict(probs, labels, held):
        from probmetrics.calibrators import get_calibrator

        config = {f"{name}_print_init_info": False} if name == "sms" else {}
        return get_calibrator(name, **config).fit(probs, labels).predict_proba(held)

    return fit_predict


def fit_predict_netcal(name):
    def fit_predict(probs, labels, held):
        import netcal.binning
        import netcal.scaling

        calibrator = getattr(netcal.scaling, name, None) or getattr(netcal.binning, name)
        two = probs.shape[1] == 2
        fitted = calibrator().fit(probs[:, 1] if two else probs, labels)
        found = np.asarray(fitted.transform(held[:, 1] if two else held))
        return np.column_stack([1 - found, found]) if two else found

    return fit_predict


def fit_predict_scikit_learn(method):
    def fit_predict(probs, labels, held):
        from sklearn.base import BaseEstimator, ClassifierMixin
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.frozen import FrozenEstimator

        class AsGiven(ClassifierMixin, BaseEstimator):
            def fit(self, given, labels):
                self.classes_ = np.arange(given.shape[1])
                return self

            def predict(self, given):
                return given.argmax(1)

            def predict_proba(self, given):
                return given

        return (
            CalibratedClassifierCV(FrozenEstimator(AsGiven().fit(probs, labels)), method=method)
            .fit(probs, labels)
            .predict_proba(held)
        )

    return fit_predict


def competitors():
    found = {"none": lambda probs, labels, held: held}
    found |= {name: fit_predict_ours(kind) for name, kind in CALIBRATORS.items() if name != "recovery"}
    for name in ("isotonic", "histogram", "spline"):
        found[f"{name}, uniform"] = fit_predict_ours(lambda kind=CALIBRATORS[name]: WithUniform(kind()))
    found["calibrate best"], found["calibrate simple"] = fit_predict_calibrate("best"), fit_predict_calibrate("simple")
    for method in ("temperature", "sigmoid", "isotonic"):
        found[f"scikit-learn {method}"] = fit_predict_scikit_learn(method)
    if find_spec("probmetrics"):
        for name in ("temp-scaling", "ts-mix", "svs", "sms", "logistic", "ivap"):
            found[f"probmetrics {name}"] = fit_predict_probmetrics(name)
    if find_spec("netcal"):
        for name in ("TemperatureScaling", "BetaCalibration", "IsotonicRegression"):
            found[f"netcal {name}"] = fit_predict_netcal(name)
    return found


def judged(fit_predict, probs, labels, fitted, held):
    """What the columns after the calibrator's name hold."""
    started, failed = time.process_time(), 0
    try:
        found = np.asarray(fit_predict(probs[fitted], labels[fitted], probs[held]), dtype=np.float64)
        if found.shape != probs[held].shape or not (np.isfinite(found).all() and abs(found.sum(1) - 1).max() < 1e-3):
            raise ValueError("no probabilities")
    except Exception:  # of other libraries it may be any
        found, failed = probs[held], 1
    seconds, truth = time.process_time() - started, labels[held]
    found = np.clip(found / found.sum(1, keepdims=True), 0, 1)
    own = found[np.arange(len(truth)), truth]
    brier = ((found**2).sum(1) - 2 * own + 1).mean()
    ece = debiased_ece(found, truth), smooth_ece(found, truth)
    return [-np.log(np.maximum(own, LEAST)).mean(), brier, *ece, seconds, failed]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", type=Path)
    parser.add_argument("records", type=Path)
    parser.add_argument("--part", choices=("judging", "development"), default="judging")
    parser.add_argument("--first", type=int, default=0, help="split to begin with: processes with files of their own")
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="*", default=[200, 1000, 5000])
    parser.add_argument("--only", nargs="*", default=None, help="names of calibrators")
    parser.add_argument("--minutes", type=float, default=5.0, help="of CPU, after which the command stops")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    done = set()
    if arguments.records.exists():
        with open(arguments.records, encoding="utf-8", newline="") as file:
            done = {tuple(line[:4]) for line in csv.reader(file)}
    arguments.records.parent.mkdir(parents=True, exist_ok=True)
    paths = sorted(arguments.tasks.glob("*.npz"), key=lambda path: path.stem)
    paths = [path for path in paths if (path.stem.split("__")[1] in DEVELOPMENT) == (arguments.part == "development")]
    names = arguments.only if arguments.only is not None else list(competitors())
    with open(arguments.records, "a", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        if not done:
            out.writerow(COLUMNS)
        for split in range(arguments.first, arguments.splits):
            for path in paths:
                with np.load(path) as stored:
                    probs, labels = stored["probs"], stored["labels"]
                order = np.random.default_rng(split).permutation(len(labels))
                for size in arguments.sizes:
                    if len(labels) < size + LEAST_TEST or size < 2 * probs.shape[1]:
                        continue
                    for name in names:
                        key = (path.stem, str(size), str(split), name)
                        if key in done or (name in SLOW and probs.shape[1] > 50):
                            continue
                        row = judged(competitors()[name], probs, labels, order[:size], order[size:])
                        out.writerow([*key, *(f"{value:.5g}" for value in row)])
                    file.flush()
                    if time.process_time() > 60 * arguments.minutes:
                        print(f"stopped at {path.stem}, {size} rows, split {split}; the same command goes on")
                        return
    print(f"complete, {time.process_time():.0f} s")


if __name__ == "__main__":
    main()
