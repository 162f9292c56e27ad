"""The tasks, and the runs of each: which data, which network, which objectives."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from focalcal.lab.store import Protocol, Spec
from focalcal.lab.studies.spec_builder import override_recipe, spec_of
from focalcal.lab.training import Recipe, recipe

LENGTHS = ("short", "medium", "long")
EPOCHS = {"table": (10, 30, 100), "drawn": (10, 30, 100), "images": (3, 10, 30), "text": (3, 10, 30)}
RATES = (0.0005, 0.002, 0.008)
FACTORS = (0.3, 1.0, 3.0)  # of a text recipe's learning rate
SEEDS = 5
CANDIDATES = 20  # epochs that a rule chooses from, about
HIDDEN = (256, 256)
FEW_ROWS = 2_500  # of a table: below it batches are small
_PREDICTED = ("FCL", "FCL, half of lam", "FCL, twice lam")  # of cross-entropy's validation rows
OBJECTIVES: dict[str, tuple[str, dict[str, Any]]] = {
    "cross-entropy": ("ce", {}),
    "FCL": ("fcl", {"factor": 1.0}),
    "FCL(3, 3)": ("fcl", {"gamma": 3.0, "lam": 3.0, "scale": "matched"}),
    "label smoothing": ("ls", {"epsilon": 0.05}),
    "FCL, half of lam": ("fcl", {"factor": 0.5}),
    "FCL, twice lam": ("fcl", {"factor": 2.0}),
    "Brier": ("brier", {}),
    "focal": ("focal", {"gamma": 3.0}),
    "AdaFocal": ("adafocal", {}),
    "BSCE-GRA": ("bsce_gra", {"gamma": 4.0}),
}
"""By the name that records have; `factor` is that of the predicted lam."""


@dataclass(frozen=True)
class Task:
    """One data set with one network."""

    name: str
    kind: str
    classes: int = 0
    features: int | None = None
    recipe: str = "tabular_mlp_lite"
    train_examples: int | None = None
    data_options: dict[str, Any] = field(default_factory=dict)

    def protocol(self, length: str) -> Protocol:
        """Which examples; of long training every fifth epoch is evaluated, and may be kept."""
        every = max(1, self.epochs(length) // CANDIDATES)
        return Protocol(allow_partial=True, train_examples=self.train_examples, evaluate_every=every)

    def epochs(self, length: str) -> int:
        """How many."""
        return EPOCHS[self.kind][LENGTHS.index(length)]

    def rates(self) -> tuple[float, ...]:
        """The learning rates to choose from."""
        own = recipe(self.recipe).optimizer.lr
        return tuple(float(f"{factor * own:.3g}") for factor in FACTORS) if self.kind == "text" else RATES

    def recipe_of(self, length: str, seed: int, lr: float, rows: int) -> Recipe:
        """Of a table with so many rows."""
        common: dict[str, Any] = {"epochs": self.epochs(length), "optimizer": {"lr": lr}}
        if self.kind == "text":
            network = {"model": "dan", "model_options": {"train_embedding": True, "dropout": 0.3}}
            return override_recipe(recipe(self.recipe), {**common, **network, "data_options": self.data_options})
        common |= {"classes": self.classes, "batch_size": 32 if rows < FEW_ROWS else 128}
        options: dict[str, Any] = {"hidden": HIDDEN}
        if self.kind == "table":
            source = {"path": f"tasks/{self.name}.parquet", "scale": "quantile", "seed": seed}
            return override_recipe(
                recipe(self.recipe),
                {**common, "data_set": "parquet", "data_options": source, "model_options": options},
            )
        if self.name.startswith("cifar10"):
            source = {"path": "tasks/cifar10.npz", "validation": 0.1, "seed": seed}
            network = {"data_set": "npz", "data_options": source, "model_options": options | {"frequencies": 0}}
            return override_recipe(recipe(self.recipe), {**common, **network})
        images = {"model": "mlp", "model_options": options | {"features": self.features or 784}}
        if self.name == "fashion_mnist":
            normalised = {"mean": (0.286,), "std": (0.353,), "data_options": {"validation": 5_000}}
            return _plain(self.name, {**common, **images, **normalised})
        drawn = {**self.data_options, "seed": seed}
        grey = {"mean": (0.3053,), "std": (0.3761,)} if self.features == 64 else {}
        return _plain(self.name, {**common, **images, **grey, "data_options": drawn})

    def spec(self, name: str, length: str, seed: int, lr: float, rows: int, lam: float | None, data: Path) -> Spec:
        """The run of an objective; `lam` is the predicted one."""
        objective, options = OBJECTIVES[name]
        if name in _PREDICTED:
            assert lam is not None
            options = {"gamma": 3.0, "lam": float(f"{options['factor'] * lam:.3g}"), "scale": "matched"}
        chosen = self.recipe_of(length, seed, lr, rows)
        return spec_of(chosen, objective, options, seed=seed, protocol=self.protocol(length), data_dir=data)


def is_predicted(name: str) -> bool:
    """Whether its lam is predicted."""
    return name in _PREDICTED


def _plain(data_set: str, changes: dict[str, Any]) -> Recipe:
    """Of the shipped recipe for tables its optimiser, for a shipped data set with all of its options."""
    fields = {**recipe("tabular_mlp_lite").as_dict(), **changes, "data_set": data_set}
    fields["optimizer"] = {**recipe("tabular_mlp_lite").as_dict()["optimizer"], **changes["optimizer"]}
    return Recipe.from_dict(fields)


def _read() -> dict[str, Task]:
    table = tomllib.loads((Path(__file__).parent / "tasks.toml").read_text())
    made = [Task(name, "table", classes) for name, classes in table["table"].items()]
    made += [Task(name, kind, **told) for kind in ("drawn", "images", "text") for name, told in table[kind].items()]
    return {task.name: task for task in made}


TASKS = _read()
