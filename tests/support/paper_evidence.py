"""Evidence as if the paper's studies had been run: numbers drawn, or the paper's own, nothing trained."""

from dataclasses import replace
from functools import cache

import numpy as np
from paper.claims.paper_runs import PaperRuns, protocol_of
from paper.claims.printed_numbers import paper_number, table_cells

from focalcal.lab.evidence.evidence import Evidence, RunEvidence
from focalcal.lab.evidence.labels import run_labels
from focalcal.lab.evidence.temperature_effect import Scaled
from focalcal.lab.store import Protocol
from focalcal.lab.studies import load_study
from support.every_study import EVERY_STUDY

STUDIES = (
    *("vision", "tenseed", "shift", "adafocal", "surface", "text", "chestxray", "chestxray-lam-sweep"),
    *("transformer-finetune", "transformer-scratch", "deit-lam-sweep"),
)
FINDINGS = [f"finding {at}" for at in range(14)]
METRICS = ("error", "ece", "adaptive_ece", "smooth_ece", "nll", "brier", "mce", "auroc", "confidence_gap")


@cache
def specs(study):
    return tuple(load_study(EVERY_STUDY[study]).specs())


def evidence_of(*studies) -> Evidence:
    """Every run of these studies, each with numbers of its own; FCL's are the lower ones."""
    found = {spec.key: spec for name in studies for spec in specs(name)}
    shifted = {spec.key for name in studies if name == "shift" for spec in specs(name)}
    labels = run_labels(list(found.values()))
    return Evidence("drawn", tuple(_run(spec, labels[key], shifted=key in shifted) for key, spec in found.items()))


def papers_own_evidence() -> Evidence:
    """One run per cell of the paper's tables, with the numbers that it prints."""
    named = ("vision", "text", "chestxray", "adafocal", "transformer-finetune")
    numbers: dict = {}
    for protocol, setting, objective, metric in table_cells():
        number = paper_number(setting, objective, metric, protocol=protocol)
        cell = numbers.setdefault((protocol, setting, objective), {})
        cell[metric] = float(number.value) / (100 if number.percent else 1)
    runs = {run.key: run for run in PaperRuns(evidence_of(*named)).evidence.runs if run.seed == 0}.values()
    own = [
        replace(run, metrics={"test": numbers[protocol_of(run), run.setting, run.spec["objective"]]}) for run in runs
    ]
    return Evidence("the paper's", tuple(own))


def _run(spec, label, *, shifted):
    trained = replace(spec, protocol=Protocol())  # what is asked afterwards changes no number
    draw = np.random.default_rng(int(trained.key[:8], 16))
    lower = 0.5 if spec.objective == "fcl" else 1.0
    test = {name: lower * float(draw.uniform(0.1, 0.15)) for name in METRICS}
    if spec.objective.startswith("multilabel"):
        test |= {f"auroc/{name}": float(draw.uniform(0.7, 0.9)) for name in FINDINGS}
    metrics = {"test": test}
    if shifted:
        metrics |= {name: {"auroc": float(draw.uniform(0.8, 0.9))} for name in ("svhn", "cifar10c/fog/5")}
    bins = [{"epoch": 1, "gammas": [float(draw.uniform(1, 20)), 0.5]}] if spec.objective == "adafocal" else []
    return RunEvidence(
        key=spec.key,
        setting=label.setting,
        objective=label.objective,
        options=dict(spec.objective_options),
        seed=spec.seed,
        spec=spec.as_dict(),
        record={},
        metrics=metrics,
        epochs=bins,
        reliability=None,
        scaled=Scaled(float(draw.uniform(0.8, 1.4)), "halves", {}, dict(test), None, None),
    )
