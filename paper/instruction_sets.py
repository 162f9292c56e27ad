"""To how many digits do trained networks' numbers transfer between processors?

    python -m paper.instruction_sets [--store FOLDER]

Cells of the published studies are trained twice, in processes that hold torch to AVX2 and let it use AVX-512, with the
same seed and everything else equal. Both processors round sums in another order, and training magnifies that. Rows go
to records/instruction-sets.csv; the runs are in FOLDER/AVX2 and FOLDER/AVX512, so that the same command goes on.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from focalcal.lab.evidence.labels import run_labels
from focalcal.lab.store import Run, Spec, Store
from focalcal.lab.store.layout import store_folder
from focalcal.lab.studies import load_study
from focalcal.lab.studies.run import run_spec
from paper import STUDIES
from paper.record import RECORDS, origin, published_metrics, validation_temperature, write_table
from paper.trials import Trials

RECORD = "instruction-sets"
# Of torch, of oneDNN and of MKL, by the name that torch gives to what it then uses.
HELD_TO = {
    "AVX2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "AVX512": {"ATEN_CPU_CAPABILITY": "avx512"},
}
# How many seeds of cross-entropy and of one FCL.
_SEEDS = {
    "digits": 2,
    str(STUDIES / "small" / "known-posterior-gaussian.toml"): 1,
    str(STUDIES / "operating-point-real.toml"): 1,
}


def cells() -> dict[Spec, str]:
    """What is trained, and the name of its setting."""
    chosen: dict[Spec, str] = {}
    for name, seeds in _SEEDS.items():
        specs = load_study(name, seeds=seeds).specs()
        labels = run_labels(specs)
        first = {(labels[spec.key].setting, spec.objective, spec.seed): spec for spec in reversed(specs)}
        chosen |= {spec: place for (place, objective, _), spec in first.items() if objective in ("ce", "fcl")}
    return chosen


def train(store: Store) -> None:
    """Everything that is not stored, with the instructions of this process."""
    for spec in cells():
        run_spec(spec, store)
        print(spec.name, flush=True)


def row(setting: str, run: Run) -> dict[str, Any]:
    """What is published of a run."""
    test, spec = run.predictions("test"), run.settings
    values = {"posterior_distance": math.nan} | published_metrics(test.probs, test)
    return {
        "setting": setting,
        "objective": spec["objective"],
        "seed": spec["seed"],
        **{name: values[name] for name in ("error", "ece", "nll", "posterior_distance")},
        "validation_temperature": validation_temperature(run),
        **origin(run),
    }


def transfer(*settings: str) -> str:
    """How far the numbers of one network are apart on two instruction sets, as a sentence of a page.

    `settings` are the beginnings of their names; all without any.
    """
    rows = Trials.read(RECORD).where(lambda row: row["setting"].startswith(settings or ("",))).rows
    pairs: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for each in rows:
        pairs.setdefault((each["setting"], each["objective"], each["seed"]), []).append(each)
    apart = {
        name: [factor * abs(one[name] - other[name]) for one, other in pairs.values()]
        for name, factor in (("ece", 100), ("nll", 1))
    }
    same = sum(not ece and not nll for ece, nll in zip(*apart.values(), strict=True))
    names = " and ".join(sorted({each["instructions"] for each in rows}))
    trained = f"Of {len(pairs)} networks trained with {names}, all else equal, {same or 'none'} have the same numbers."
    if same == len(pairs):
        return (
            f"{trained} But the matrix products of these perceptrons take one path on this processor, whatever torch "
            "is held to; elsewhere they may transfer no further than those of [other networks](index.md)."
        )
    ece, nll = max(apart["ece"]), max(apart["nll"])
    return (
        f"{trained} The others' ECE is up to {ece:.2g} points and their NLL up to {nll:.1g} apart: between such "
        f"processors one network's {_digits('ECE in percent', ece)}, its {_digits('NLL', nll)}."
    )


def _digits(what: str, apart: float) -> str:
    """To how many decimals a number is the same within one of the last."""
    decimals = math.floor(-math.log10(apart))
    if decimals < 0:
        return f"{what} transfers not even to a whole number"
    return f"{what} transfers to {decimals or 'no'} decimal{'s' * (decimals != 1)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--train", choices=HELD_TO, help=argparse.SUPPRESS)  # how this command calls itself
    asked = parser.parse_args()
    folder = store_folder(asked.store) / RECORD
    if asked.train:
        train(Store(folder / asked.train))
        return
    for name, held in HELD_TO.items():
        command = [sys.executable, "-m", "paper.instruction_sets", "--train", name, "--store", str(folder.parent)]
        subprocess.run(command, check=True, env=os.environ | held)
    wanted = cells()
    rows = [row(setting, Store(folder / name).run(spec.key)) for spec, setting in wanted.items() for name in HELD_TO]
    if {each["instructions"] for each in rows} != HELD_TO.keys():
        raise SystemExit(
            "both instruction sets are needed, and this processor has not both; run it on one with AVX-512"
        )
    path = RECORDS / f"{RECORD}.csv"
    write_table(path, rows)
    print(path)


if __name__ == "__main__":
    main()
