"""Numbers that are typed into prose, beside what they speak of."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from paper.not_run import NOT_RUN
from paper.operating_point.alike import Alike
from paper.trials import Trials, recipe_of_tasks, recorded_tasks, won

from focalcal.lab.studies import load_study
from focalcal.losses.engines import Engine
from focalcal.losses.module import FocalFamilyLoss

ROOT = Path(__file__).parents[2]
WORDS = {3: "three", 5: "five", 10: "ten"}


def text_of(path):
    return " ".join((ROOT / path).read_text().split())


@pytest.mark.parametrize(
    ("path", "phrase"),
    [("Makefile", "on the digits, {} seeds"), ("docs/decisions/0018-statistics.md", "`make study` ({} seeds)")],
)
def test_seeds_of_the_study_that_make_study_runs(path, phrase):
    seeds = {spec.seed for spec in load_study("digits").specs()}
    assert phrase.format(WORDS[len(seeds)]) in text_of(path)


def test_settings_of_ten_seeds():
    specs = load_study(ROOT / "paper" / "studies" / "tenseed.toml").specs()
    settings = {(spec.data_set, spec.model) for spec in specs}
    assert NOT_RUN["tenseed"] == f"{WORDS[len({spec.seed for spec in specs})]} seeds of {WORDS[len(settings)]} settings"


def test_fcl_beside_cross_entropy_has_one_number_per_instruction_set():
    found = json.loads((ROOT / "paper" / "records" / "overhead.json").read_text())
    assert "AVX2" in found["device"]
    ratio = next(timing["ratio"] for timing in found["loss"] if timing["name"] == "fcl")
    assert f"at 128x10 with AVX2 {ratio:.2f}" in text_of("README.md")
    assert f"alone FCL takes {ratio:.2f} of its time" in text_of("docs/costs.md")
    [row] = re.findall(r"\| fcl \| native \|(.*)\|", (ROOT / "docs" / "costs.md").read_text())
    shares = [float(share) for share in row.split("|")]
    assert f"AVX-512 | {min(shares):.2f} to {max(shares):.2f}" in text_of("README.md")


def test_the_docstring_of_engine_names_every_engine():
    said = " ".join(FocalFamilyLoss.__doc__.split())
    assert all(f'"{engine}"' in said for engine in get_args(Engine))


def test_what_the_readme_says_of_the_operating_point():
    same = Alike(Trials.read("operating-point", "operating-point-real"), Trials.read("operating-point-again"))
    shown = ("predicted lam", "half of it", "twice", "FCL(3, 1), paper's scale")
    counts = [", ".join(same.within(curve, limit).partition(" ")[0] for curve in shown) for limit in (0.1, 0.05)]
    readme = text_of("README.md")
    assert f"same {len(same.baselines)} runs" in readme
    assert f"| {counts[0]} (0.05: {counts[1]}) |" in readme


def test_what_the_readme_says_of_the_recipe():
    recipe, tasks = ("recipe", "calibrated"), len(recorded_tasks("equal-access"))
    others = ("cross-entropy", "AdaFocal")
    alike = won(recipe, [(other, "calibrated") for other in others], "equal-access", "confirmation")
    ahead = won(recipe, [(other, "with T") for other in others], "confirmation")
    readme = text_of("README.md")
    assert f"label smoothing with a calibrator on {len(recipe_of_tasks('ls'))} of {tasks}" in readme
    assert f"same calibrators for all: {len(alike)} of {tasks}" in readme
    assert f"temperatures for the others: {len(ahead)} of {tasks}" in readme
