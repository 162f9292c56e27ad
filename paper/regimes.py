"""CIFAR-10 near the paper's accuracy, and fine-tuned networks: parts 2 and 3 of paper/plan.md.

    python -m paper.regimes NAME [--main] [--shifts] [--store FOLDER]

NAME is a file of paper/studies/regimes. Cross-entropy is trained first, with each of three learning rates; its
validation rows predict lam. The other objectives follow, with seed 0 at every rate and then at the rate that validation
rows chose: all seeds of the first six objectives, then those of the others. Rows go to records/regimes-NAME.csv after
every run, and rows that are there are not trained again, whatever the store has: the same command goes on where it was,
on another machine too. With --main the later seeds of the other objectives are left out. With --shifts networks that
the store has are tested on SVHN and corrupted images besides, once nothing is left to train.
"""

from __future__ import annotations

import argparse
import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from focalcal.lab.store import Evaluations, Protocol, Run, Spec, Store
from focalcal.lab.store.layout import store_folder
from focalcal.lab.studies import run_spec
from focalcal.lab.studies.spec_builder import override_recipe, spec_of
from focalcal.lab.training import NonFiniteLossError, Recipe, recipe
from focalcal.lab.training.precision import has_bfloat16
from paper.record import RECORDS, by_split, write_table
from paper.tasks.__main__ import BY_RULE, RULES, predicted_lam
from paper.tasks.cells import OBJECTIVES, is_predicted
from paper.tasks.measure import measured
from paper.trials import Trials

STUDIES = Path(__file__).parent / "studies" / "regimes"
BASELINE = "cross-entropy"
MAIN = tuple(OBJECTIVES)[:6]
SHIFTED = ("auroc", "error", "ece", "nll")  # of shifted images
Row = dict[str, Any]


class Cell(NamedTuple):
    """A run that is wanted."""

    objective: str
    seed: int
    lr: float
    lam: float | None = None


@dataclass(frozen=True)
class Regime:
    """A recipe with changes, on some of its rows; `factors` are those of its learning rate.

    Its networks are trained in float32 where the processor has no bfloat16, and rows say in which they were.
    """

    name: str
    title: str
    about: str
    recipe: str
    changes: dict[str, Any] = field(default_factory=dict)
    protocol: dict[str, Any] = field(default_factory=dict)
    factors: tuple[float, ...] = (1 / 3, 1.0, 3.0)
    seeds: int = 5
    shifts: tuple[str, ...] = ()

    @classmethod
    def read(cls, name: str) -> Regime:
        """That of paper/studies/regimes/NAME.toml."""
        return cls(name, **tomllib.loads((STUDIES / f"{name}.toml").read_text()))

    @property
    def rates(self) -> list[float]:
        """The learning rates to choose from."""
        return [float(f"{factor * self.base.optimizer.lr:.3g}") for factor in self.factors]

    @property
    def base(self) -> Recipe:
        """The recipe with its changes."""
        changed = override_recipe(recipe(self.recipe), self.changes)
        return replace(changed, bfloat16=changed.bfloat16 and has_bfloat16())

    def spec(self, cell: Cell) -> Spec:
        """The run of a cell."""
        objective, options = OBJECTIVES[cell.objective]
        if cell.lam is not None:
            options = {"gamma": 3.0, "lam": float(f"{options['factor'] * cell.lam:.3g}"), "scale": "matched"}
        protocol = Protocol.from_dict({"allow_partial": True, **self.protocol})
        chosen = override_recipe(self.base, {"optimizer": {"lr": cell.lr}})
        return spec_of(chosen, objective, options, seed=cell.seed, protocol=protocol)

    def order(self, *, main: bool = False) -> Iterator[tuple[str, int]]:
        """Objectives and seeds, the most important ones first."""
        yield from ((name, 0) for name in OBJECTIVES)
        for names in (MAIN, () if main else tuple(OBJECTIVES)[len(MAIN) :]):
            yield from ((name, seed) for seed in range(1, self.seeds) for name in names)


def chosen_rates(rows: list[Row], name: str) -> dict[str, float]:
    """By rule, "last" or "refined", that with the lowest cross-fitted validation NLL after a temperature, seed 0."""
    tried = [row for row in rows if (row["objective"], row["seed"]) == (name, 0) and not row["failed"]]
    return {
        rule: min(of_rule, key=lambda row: row["judged"])["lr"]
        for rule in ("last", "refined")
        if (of_rule := [row for row in tried if row["rule"] == rule])
    }


def wanted(regime: Regime, rows: list[Row], *, main: bool = False) -> Iterator[Cell]:
    """The cells that what is known so far asks for, in the order in which they are trained."""
    for name, seed in regime.order(main=main):
        lam = baseline_lam(rows, seed) if is_predicted(name) else None
        if lam is not None and not math.isfinite(lam):
            continue  # cross-entropy is kept
        rates = chosen_rates(rows, name) or chosen_rates(rows, BASELINE)
        yield from (Cell(name, seed, lr, lam) for lr in (regime.rates if seed == 0 else dict.fromkeys(rates.values())))


def baseline_lam(rows: list[Row], seed: int) -> float:
    """What this seed's cross-entropy run predicts; infinite where the operating point says that FCL does not help."""
    cell = (BASELINE, seed, chosen_rates(rows, BASELINE).get("last"), "last")
    found = [row["lam"] for row in rows if (row["objective"], row["seed"], row["lr"], row["rule"]) == cell]
    return math.inf if not found or found[0] in (None, "") else float(found[0])


def measured_rows(regime: Regime, cell: Cell, run: Run) -> list[Row]:
    """One row per rule that keeps another epoch's network."""
    rows: list[Row] = []
    for rule in RULES if cell.objective in BY_RULE else ("last",):
        row: Row = {"regime": regime.name, **cell._asdict(), "rule": rule, "failed": False}
        row |= {"judged": run.record["kept"][rule]["refined_nll"], "key": run.key, "seconds": run.record["seconds"]}
        row["precision"] = "bfloat16" if regime.base.bfloat16 else "float32"
        if cell.objective == BASELINE:
            row["lam"] = predicted_lam(run)
        rows.append(row | measured(regime.name, run, rule, calibrated=rule == "last"))
    return rows


def train(regime: Regime, rows: list[Row], store: Store, *, main: bool = False) -> bool:
    """Train the next cell and add its rows; whether there was one."""
    there = {(row["objective"], row["seed"], row["lr"]) for row in rows}
    cells = wanted(regime, rows, main=main)
    cell = next((cell for cell in cells if (cell.objective, cell.seed, cell.lr) not in there), None)
    if cell is None:
        return False
    try:
        run = run_spec(regime.spec(cell), store, evaluations=Evaluations(keep_weights=bool(regime.shifts)))
        rows += measured_rows(regime, cell, run)
    except NonFiniteLossError:
        rows.append({"regime": regime.name, **cell._asdict(), "rule": "last", "failed": True})
    print(f"{cell} {rows[-1].get('seconds', math.nan):.0f} s", flush=True)
    return True


def shift(regime: Regime, rows: list[Row], store: Store) -> None:
    """Test the networks that are in the store on other images, and note how that went beside their last epoch."""
    evaluations = Evaluations(shifts=regime.shifts, severities=(5,))
    for row in rows:
        predicted = is_predicted(row["objective"])
        cell = Cell(row["objective"], row["seed"], row["lr"], float(row["lam"]) if predicted else None)
        rate = chosen_rates(rows, cell.objective).get("last")
        spec = regime.spec(cell)
        if row["rule"] != "last" or row["failed"] or row["lr"] != rate or row.get("svhn_auroc") or not store.has(spec):
            continue
        metrics = by_split(run_spec(spec, store, evaluations=evaluations).record["metrics"])
        row |= {f"{split}_{name}": metrics[split].get(name) for split in regime.shifts for name in SHIFTED}
        write(regime, rows)


def write(regime: Regime, rows: list[Row]) -> Path:
    """To paper/records."""
    path = RECORDS / f"regimes-{regime.name}.csv"
    write_table(path, rows)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=sorted(path.stem for path in STUDIES.glob("*.toml")))
    parser.add_argument("--store", type=Path)
    parser.add_argument("--main", action="store_true", help="seeds beyond the first of the first six objectives alone")
    parser.add_argument("--shifts", action="store_true", help="test on other images what the store has")
    asked = parser.parse_args()
    regime, store = Regime.read(asked.name), Store(store_folder(asked.store))
    rows: list[Row] = list(Trials.read(f"regimes-{regime.name}").rows)
    while train(regime, rows, store, main=asked.main):
        write(regime, rows)
    if asked.shifts:
        shift(regime, rows, store)
    print(f"{write(regime, rows)}: {len(rows)} rows")


if __name__ == "__main__":
    main()
