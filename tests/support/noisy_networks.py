"""An executor that stores, in milliseconds, networks whose logits are the truth's plus noise."""

import math

import numpy as np

from focalcal.lab.studies.events import Failed, Finished
from focalcal.lab.studies.measurement import split_metrics
from focalcal.predictions import Predictions

CLASSES, ROWS = 4, 1200


def best_at_half(objective, options):
    """Little noise for FCL near gamma = 3, lam = 0.5, much for all others."""
    if objective != "fcl":
        return {"ce": 1.0}.get(objective, 1.3)
    return 0.2 + 0.3 * abs(math.log(options["lam"] / 0.5)) + 0.1 * abs(options["gamma"] - 3)


class NoisyNetworks:
    """`noise(objective, options)` is the standard deviation added to the true log-probabilities times `factor`.

    `stop_after` so many runs raises KeyboardInterrupt, once; runs of the objectives in `fail` fail.
    """

    def __init__(self, noise=best_at_half, *, factor=1.0, stop_after=None, fail=()):
        self.noise, self.factor, self.stop_after, self.fail, self.asked = noise, factor, stop_after, fail, []

    def run(self, specs, store, on_event, evaluations):
        for spec in specs:
            if self.stop_after is not None and len(self.asked) >= self.stop_after:
                self.stop_after = None
                raise KeyboardInterrupt
            self.asked.append(spec)
            if spec.objective in self.fail:
                on_event(Failed(spec, "error", "no luck"))
                continue
            amplitude = self.noise(spec.objective, dict(spec.objective_options))
            parts = [self._predictions(split, at, amplitude, spec.seed) for at, split in enumerate(("val", "test"))]
            metrics = {part.split: split_metrics(part, ["a", "b", "c", "d"]) for part in parts}
            record = {"metrics": metrics, "provenance": {}, "seconds": 1.0, "epochs": 1}
            store.add(spec, record=record, epochs=None, predictions=parts)
            on_event(Finished(spec, 0.1))

    def _predictions(self, split, at, amplitude, seed):
        draws = np.random.default_rng(at)
        eta = draws.dirichlet(np.full(CLASSES, 0.5), size=ROWS).clip(1e-6)
        eta /= eta.sum(1, keepdims=True)
        labels = (eta.cumsum(1) < draws.random((ROWS, 1))).sum(1).clip(max=CLASSES - 1)
        noise = np.random.default_rng([at, seed]).normal(size=eta.shape)
        return Predictions(logits=self.factor * (np.log(eta) + amplitude * noise), labels=labels, split=split)
