"""Audit the predictions at hand: a line of records/audits.jsonl per model, and of some a page of docs/results/audits.

    python -m paper.audits [NAME ...] [--data FOLDER] [--store FOLDER]

Published networks are read from FOLDER/logits (by default $FOCALCAL_DATA), forests are trained here, and of the
published studies one network of cross-entropy and one of FCL are audited. Without names every model is
audited whose predictions are there.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split

from focalcal.auditing import Audit, audit
from focalcal.core.atomic import write_atomically
from focalcal.lab.evidence.evidence import collected
from focalcal.lab.store import Store
from focalcal.lab.store.layout import store_folder
from focalcal.lab.studies import load_study
from paper.record import RECORDS, here, origin, validation_temperature, with_few_digits

# Those with a page.
SHOWN = ("cifar10-resnet56", "cifar100-densenet-bc-100", "forest-digits", "newsgroups-19997-ce", "teacher-fcl")
PAGES = Path(__file__).parent.parent / "docs" / "results" / "audits"
Model = tuple[str, Callable[[], Audit], dict[str, Any]]  # what it is, its audit, and who trained it where
_FORESTS = {
    "forest-digits": ("random forest, digits", RandomForestClassifier(200, random_state=0)),
    "boosting-digits": ("gradient boosting, digits", HistGradientBoostingClassifier(random_state=0)),
}
_STUDIES = ("digits", *map(str, sorted((Path(__file__).parent / "studies" / "small").glob("[ct]*.toml"))))
_NETCAL = {
    "cifar10_lenet_5": "LeNet-5, CIFAR-10",
    "cifar10_wideresnet_16_4": "WideResNet-16-4, CIFAR-10",
    "cifar100_lenet_5": "LeNet-5, CIFAR-100",
    "cifar100_wideresnet_16_4": "WideResNet-16-4, CIFAR-100",
    "cifar100_densenet_bc_100": "DenseNet-BC-100, CIFAR-100",
}


def published(folder: Path) -> dict[str, Model]:
    """Networks that others trained and published."""
    resnets, others = folder / "cifar10_test_logits_akamaster_resnets.npz", folder / "cifar_probs_netcal.npz"
    models: dict[str, Model] = {}
    if resnets.exists():
        logits = np.load(resnets)
        for name in ("resnet20", "resnet32", "resnet44", "resnet56"):
            rows = {"logits": logits[name], "labels": logits["labels"]}
            models[f"cifar10-{name}"] = f"ResNet-{name[6:]}, CIFAR-10", partial(audit, **rows), {}
    if others.exists():
        probs = np.load(others)
        for name, title in _NETCAL.items():
            rows = {"probs": probs[f"{name}_probs"], "labels": probs[f"{name}_labels"]}
            models[name.replace("_", "-")] = title, partial(audit, **rows), {}
    return models


def forests() -> dict[str, Model]:
    """Trained on half of scikit-learn's digits."""
    seen, held_out, targets, truth = train_test_split(*load_digits(return_X_y=True), test_size=0.5, random_state=0)

    def found(model: Any) -> Audit:
        return audit(model.fit(seen, targets).predict_proba(held_out), truth, trained_with=None)

    return {name: (title, partial(found, model), here()) for name, (title, model) in _FORESTS.items()}


def stored(store: Store) -> dict[str, Model]:
    """Networks of the published studies: cross-entropy's and FCL's, with the first seed that is stored."""
    models: dict[str, Model] = {}
    specs = [spec for study in _STUDIES for spec in load_study(study).specs()]
    runs, _ = collected([store], [spec for spec in specs if spec.objective in ("ce", "fcl")])
    for run in runs:
        spec, options = run.spec, run.settings["objective_options"]
        trained = (options.get("gamma", 0.0), options.get("lam", 0.0))
        removed = run.settings["training"]["data_options"].get("strip_tags")
        title = f"{spec.model}, {spec.data_set}{', tags removed' if removed else ''}, {spec.objective}"
        name = title.partition(", ")[2].replace(", ", "-").replace(" ", "-").replace("_", "-")
        if name not in models:
            by = {**origin(run), "validation_temperature": validation_temperature(run)}
            models[name] = title, partial(audit, run.predictions("test"), trained_with=trained), by
    return models


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--data", type=Path, default=os.environ.get("FOCALCAL_DATA"))
    parser.add_argument("--store", type=Path)
    asked = parser.parse_args()
    models = forests()
    if asked.data is not None:
        models |= published(Path(asked.data) / "logits")
    if store_folder(asked.store).exists():
        models |= stored(Store(store_folder(asked.store), create=False))
    unknown = sorted(set(asked.names) - models.keys())
    if unknown:
        parser.error(f"NAME must be one of {', '.join(models)}, got {unknown[0]}; others need --data or --store")
    path = RECORDS / "audits.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    records = {line["name"]: line for line in lines}
    PAGES.mkdir(parents=True, exist_ok=True)
    for name in asked.names or models:
        title, look, by = models[name]
        found = look()
        if name in SHOWN:
            found.html(PAGES / f"{name}.html")
        kept = {key: found.record()[key] for key in ("rows", "classes", "verdict", "metrics", "fixes")}
        records[name] = {"name": name, "title": title, **kept, "audited": here(), "trained": by}
        write_atomically(path, "".join(json.dumps(with_few_digits(line)) + "\n" for line in records.values()).encode())
        print(f"{name}: {found.verdict.sentence}", flush=True)


if __name__ == "__main__":
    main()
