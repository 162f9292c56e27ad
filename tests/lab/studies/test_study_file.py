"""What a study's file says becomes its cells; the shipped studies have the paper's."""

import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from support.every_study import EVERY_STUDY

from focalcal.lab.store import Evaluations, Protocol
from focalcal.lab.studies import StudyError, load_study, parse_study
from focalcal.lab.studies.shipped import shipped_studies
from focalcal.lab.studies.spec_builder import recipe_of, spec_of
from focalcal.lab.training import RECIPES, recipe

GUIDE = (Path(__file__).parents[3] / "docs" / "guide" / "studies.md").read_text("utf-8")
EIGHT = {"ce", "focal", "brier", "mmce", "ls", "flsd53", "dual_focal", "fcl"}
NINE = EIGHT | {"adafocal"}

# settings x objectives (or points of a grid) x seeds; sections 5 and 6 of the paper, where it has the study
CELLS = {
    "known-posterior": (3, 18, 3),
    "text": (3, 8, 3),
    "text-lite": (3, 8, 3),
    "cifar10-lite": (1, 9, 3),
    "surface": (2, 70, 1),  # 140 runs
    "surface-lite": (1, 70, 1),
    "tenseed": (3, 8, 10),  # 168 additional runs to 72 of three seeds
    "adafocal": (3, 7, 3),  # 63 runs
    "vision": (9, 8, 3),
    "transformer-finetune": (3, 8, 3),
    "transformer-scratch": (3, 5, 3),
    "chestxray": (1, 2, 3),
    "chestxray-lam-sweep": (1, 6, 1),
    "deit-lam-sweep": (1, 6, 1),
    "shift": (4, 8, 3),
}

SMALL = """
title = "a study"
seeds = [0, 1]
[[settings]]
recipe = "digits_mlp_lite"
[[objectives]]
name = "ce"
"""


def listed(value):
    return value if isinstance(value, list) else [value]


def options_of(specs, name):
    return {dict(one.objective_options)[name] for one in specs}


def test_a_setting_may_have_objectives_of_its_own():
    second = '[[settings]]\nrecipe = "digits_small_cnn_lite"\n[[settings.objectives]]\nname = "fcl"\nlam = [1, 2]\n'
    own = SMALL.replace("[[objectives]]", f"{second}[[objectives]]")
    study = parse_study(own)
    assert Counter((spec.model, spec.objective) for spec in study.specs()) == {
        ("mlp", "ce"): 2,
        ("small_cnn", "fcl"): 4,
    }
    assert {(spec.model, spec.objective) for spec in study.specs(smoke=True)} == {("mlp", "ce"), ("small_cnn", "fcl")}
    with pytest.raises(StudyError, match=r"settings\[1\]\.objectives\[0\]\.lamda: 'lamda' is not an option of fcl"):
        parse_study(own.replace("lam =", "lamda ="))


FIRST_RUNS = {"operating-point": 5, "operating-point-real": 4}  # settings; what follows from them is not in the file


@pytest.mark.parametrize("name", FIRST_RUNS)
def test_an_operating_point_begins_with_cross_entropy(name):
    specs = load_study(EVERY_STUDY[name]).specs()
    assert {spec.objective for spec in specs} == {"ce"}
    assert len({(spec.data_set, spec.model, repr(spec.training)) for spec in specs}) == FIRST_RUNS[name]
    assert len(specs) == 3 * FIRST_RUNS[name]


def test_the_studies_are_these_and_the_default_comes_first():
    assert set(EVERY_STUDY) == {"digits", *CELLS, *FIRST_RUNS}
    assert next(iter(shipped_studies())) == "digits"


@pytest.mark.parametrize("name", CELLS)
def test_a_shipped_study_has_its_cells(name):
    specs = load_study(EVERY_STUDY[name]).specs()
    settings = Counter((one.data_set, one.model) for one in specs)
    points = Counter((one.objective, one.objective_options) for one in specs)
    seeds = Counter(one.seed for one in specs)
    assert len({one.key for one in specs}) == len(specs)
    assert (len(settings), len(points), len(seeds)) == CELLS[name] or name in ("text", "text-lite", "known-posterior")
    assert len(specs) == CELLS[name][0] * CELLS[name][1] * CELLS[name][2]
    assert len(set(settings.values())) == 1, "every setting has as many cells"
    assert sorted(seeds) == list(range(CELLS[name][2]))


def test_the_default_has_nine_objectives_in_two_settings_and_the_operating_point_in_one():
    specs = load_study("digits").specs()
    assert Counter((spec.data_set, spec.seed) for spec in specs) == {
        (data_set, seed): count for data_set, count in (("digits", 9), ("teacher", 10)) for seed in range(5)
    }
    for data_set in ("digits", "teacher"):
        assert {spec.objective for spec in specs if spec.data_set == data_set} == NINE


@pytest.mark.parametrize(
    ("names", "objectives"),
    [
        (("vision", "tenseed", "transformer-finetune", "text", "shift"), EIGHT),
        (("digits", "cifar10-lite", "known-posterior"), NINE),
    ],
    ids=["the paper's", "ours"],
)
def test_a_grid_has_its_objectives(names, objectives):
    for name in names:
        assert {one.objective for one in load_study(EVERY_STUDY[name]).specs()} == objectives, name


def test_the_surfaces_have_the_papers_grid_and_its_operating_point():
    specs = load_study(EVERY_STUDY["surface"]).specs()
    assert options_of(specs, "gamma") == {0, 0.5, 1, 2, 3, 4, 5}
    assert options_of(specs, "lam") == {0, 0.1, 0.25, 0.5, 1, 1.5, 2, 3, 4, 8}
    assert {(one.data_set, one.model) for one in specs} == {("cifar10", "resnet50"), ("cifar100", "resnet110")}
    assert spec_of(recipe("cifar10_resnet50"), "fcl", {}, seed=0) in specs


def test_ten_seeds_and_surfaces_reuse_the_runs_of_the_vision_grid():
    vision = set(load_study(EVERY_STUDY["vision"]).specs())
    assert len(vision & set(load_study(EVERY_STUDY["tenseed"]).specs())) == 240 - 168
    assert len(vision & set(load_study(EVERY_STUDY["surface"]).specs())) == 2


def test_shift_detection_trains_nothing_that_vision_has_trained():
    vision, shift = load_study(EVERY_STUDY["vision"]), load_study(EVERY_STUDY["shift"])
    assert set(shift.specs()) <= set(vision.specs())
    assert len(shift.specs()) == 96


def test_weights_are_kept_of_what_another_study_evaluates():
    """Else the order in which studies are run would decide whether they can be."""
    cells = {
        name: (set(study.specs()), study.evaluations()) for name in CELLS for study in [load_study(EVERY_STUDY[name])]
    }
    needed = {
        name
        for name, (specs, asked) in cells.items()
        for others, wanted in cells.values()
        if specs & others and wanted.missing_from(asked.names)
    }
    assert needed == {"vision", "tenseed", "surface", "chestxray-lam-sweep"}
    assert {name for name, (_, asked) in cells.items() if asked.keep_weights} == needed


def test_adafocal_is_compared_on_one_split_with_temperatures_from_validation():
    study = load_study(EVERY_STUDY["adafocal"])
    assert study.temperature == "validation"
    assert {dict(recipe_of(one).data_options)["validation"] for one in study.specs()} == {5000}
    assert {one.objective for one in study.specs()} == {
        "ce", "brier", "focal", "flsd53", "dual_focal", "adafocal", "fcl",
    }  # fmt: skip


def test_the_lam_sweeps_are_the_papers():
    deit, chest = (
        load_study(EVERY_STUDY["deit-lam-sweep"]).specs(),
        load_study(EVERY_STUDY["chestxray-lam-sweep"]).specs(),
    )
    assert (options_of(deit, "lam"), options_of(deit, "gamma")) == ({0, 0.25, 0.5, 1, 2, 3}, {3})
    assert options_of(chest, "lam") == {0.25, 0.5, 1, 2, 4, 8}


def test_x_rays_are_evaluated_on_ten_crops_and_shifts_on_both_sets():
    assert {recipe_of(one).evaluation for one in load_study(EVERY_STUDY["chestxray"]).specs()} == {"ten_crop"}
    assert load_study(EVERY_STUDY["shift"]).evaluations().names == ("cifar10c-5", "svhn")


STAND_INS = {"tenseed", "surface", "adafocal"}  # have shipped data in place of their own, for their tables


@pytest.mark.parametrize("name", sorted(set(CELLS) - STAND_INS))
def test_a_smoke_run_has_every_setting_and_objective_at_a_small_size(name):
    study = load_study(EVERY_STUDY[name])
    whole, small = study.specs(), study.specs(smoke=True)
    settings, objectives = {(one.data_set, one.model) for one in whole}, {one.objective for one in whole}
    starts = defaultdict(set)
    for one in whole:
        made = recipe_of(one)
        starts[one.data_set, one.model].add((made.initial_weights, made.word_vectors))
    if name != "shift":
        assert {(one.data_set, one.model) for one in small} == settings
    if not study.smoke.objectives:
        assert {one.objective for one in small} == objectives
    assert {(one.data_set, one.model) for one in small} <= settings
    assert {one.objective for one in small} <= objectives
    assert len(small) <= 9
    for one in small:
        made = recipe_of(one)
        assert one.protocol.allow_partial
        assert one.protocol.train_examples * made.epochs <= 256
        assert made.batch_size <= one.protocol.train_examples
        assert (made.initial_weights, made.word_vectors) in starts[one.data_set, one.model], "it is what is tried"


def test_cells_come_setting_by_setting_and_seed_by_seed_each_once():
    specs = parse_study(
        """
        title = "order"
        seeds = [1, 0, 1]
        [[settings]]
        recipe = ["digits_mlp_lite", "digits_small_cnn_lite", "digits_mlp_lite"]
        [[objectives]]
        name = ["focal", "ce"]
        [[objectives]]
        name = "focal"
        gamma = [3, 3.0, 1]
        """
    ).specs()
    assert [(one.model, one.seed, one.objective, *dict(one.objective_options).values()) for one in specs] == [
        (model, seed, *objective)
        for model in ("mlp", "small_cnn")
        for seed in (1, 0)
        for objective in (("focal", 3), ("ce",), ("focal", 1))
    ]


def test_overrides_change_what_they_name_and_nothing_else():
    text = SMALL.replace(
        'recipe = "digits_mlp_lite"',
        """
        recipe = "digits_mlp_lite"
        epochs = 7
        optimizer.lr = 0.5
        model_options = { dropout = 0 }
        schedule = { kind = "milestones", milestones = [2, 4], factor = 0.1 }
        """,
    )
    base, changed = recipe("digits_mlp_lite").as_dict(), recipe_of(parse_study(text).specs()[0]).as_dict()
    assert changed["epochs"] == 7
    assert changed["optimizer"] == {**base["optimizer"], "lr": 0.5}
    assert changed["model_options"] == {**base["model_options"], "dropout": 0}
    assert (changed["schedule"]["kind"], changed["schedule"]["milestones"]) == ("milestones", [2, 4])
    same = set(base) - {"epochs", "optimizer", "model_options", "schedule"}
    assert {name: changed[name] for name in same} == {name: base[name] for name in same}


def test_another_optimiser_replaces_the_recipes_whole():
    text = SMALL.replace("[[objectives]]", 'optimizer = { name = "adam", lr = 0.001 }\n[[objectives]]')
    optimizer = recipe_of(parse_study(text).specs()[0]).optimizer
    assert (optimizer.name, optimizer.momentum, optimizer.betas) == ("adam", None, (0.9, 0.999))


def test_an_empty_string_stands_for_none():
    text = SMALL.replace('"digits_mlp_lite"', '"cifar100_deit_small"\ninitial_weights = ""')
    assert recipe_of(parse_study(text).specs()[0]).initial_weights is None


def test_the_protocol_reaches_every_cell_and_a_smoke_run_makes_it_smaller():
    rules = "[protocol]\nkeep_weights = true\ntrain_examples = 500\nshifts = ['svhn']\n"
    study = parse_study(f"{SMALL}{rules}[smoke]\ntrain_examples = 20\nprotocol = {{ severities = [1] }}\n")
    assert {one.protocol for one in study.specs()} == {Protocol(train_examples=500)}
    assert study.evaluations() == Evaluations(shifts=("svhn",), keep_weights=True)
    (small,) = {one.protocol for one in study.specs(smoke=True)}
    assert (small.train_examples, small.test_examples, small.allow_partial) == (20, 16, True)
    assert study.evaluations(smoke=True) == Evaluations(shifts=("svhn",), severities=(1,), keep_weights=True)


def test_a_smoke_run_keeps_the_shape_of_a_schedule():
    text = SMALL.replace("digits_mlp_lite", "cifar10_resnet110") + "[smoke]\nepochs = 7\n"
    (schedule,) = {recipe_of(one).schedule for one in parse_study(text).specs(smoke=True)}
    assert (schedule.kind, schedule.milestones) == ("milestones", (3, 5))  # 150 and 250 of 350
    (shortest,) = {recipe_of(one).schedule for one in parse_study(text.replace("7", "1")).specs(smoke=True)}
    assert shortest.kind == "constant"


def test_a_study_of_ones_own_is_found_by_its_path(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(SMALL)
    study = load_study(file)
    assert (study.name, study.title, len(study.specs())) == ("mine", "a study", 2)
    assert load_study(str(file)).specs() == study.specs()


def test_every_recipe_of_the_paper_serves_a_study():
    used = {
        name for study in CELLS for table in load_study(EVERY_STUDY[study]).settings for name in listed(table["recipe"])
    }
    assert {name for name in RECIPES if not name.endswith("_lite")} <= used


def example():
    (text,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    return text


def study_table():
    """One Markdown row per study; an objective with several points of its options says how many."""
    head = ("study", "what", "data sets", "networks", "objectives", "seeds", "cells")
    rows = [head, ("---",) * len(head), *map(table_row, EVERY_STUDY)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def table_row(name):
    study = load_study(EVERY_STUDY[name])
    specs = study.specs()
    points = {}
    for spec in specs:
        if (spec.data_set, spec.model) == (specs[0].data_set, specs[0].model):  # fcl's own point may differ elsewhere
            points.setdefault(spec.objective, set()).add(spec.objective_options)
    return (
        f"`{name}`",
        study.title,
        ", ".join(dict.fromkeys(spec.data_set for spec in specs)),
        ", ".join(dict.fromkeys(spec.model for spec in specs)),
        ", ".join(
            f"{objective} x {len(options)}" if len(options) > 1 else objective for objective, options in points.items()
        ),
        str(len({spec.seed for spec in specs})),
        str(len(specs)),
    )


def test_the_guide_repeats_the_table():
    assert study_table() in GUIDE


def test_the_guides_example_has_the_cells_it_says():
    specs = parse_study(example()).specs()
    assert len(specs) == 72
    assert "= 72 cells" in GUIDE


def test_the_guides_faults_are_reported_like_that():
    wrong = example().replace("lr = 0.02 ", "lr = -1 ").replace('"fcl"', '"fcll"')
    with pytest.raises(StudyError) as caught:
        parse_study(wrong, "mine.toml")
    with pytest.raises(StudyError) as other:
        parse_study(example().replace("lam =", "lamda ="), "mine.toml")
    reported = [*str(caught.value).splitlines(), *str(other.value).splitlines()]
    shown = re.findall(r"^    (mine\.toml: .*)$", GUIDE, re.MULTILINE)
    assert len(reported) == len(shown) == 3
    for line, wanted in zip(reported, shown, strict=True):
        assert line.startswith(wanted.removesuffix(" ..."))


def test_other_numbers_of_seeds_keep_the_cells_of_the_seeds_they_share():
    shipped, more = load_study("digits").specs(), load_study("digits", seeds=7).specs()
    assert {spec.seed for spec in more} == set(range(7))
    assert {spec.key for spec in shipped} == {spec.key for spec in more if spec.seed < 5}
    with pytest.raises(ValueError, match="seeds must be a whole number >= 1 and <= 10000, got 0"):
        load_study("digits", seeds=0)


def test_settings_and_objectives_are_called_what_the_study_calls_them():
    text = SMALL.replace('"digits_mlp_lite"', '"digits_mlp_lite"\nlabel = "Digits"')
    study = parse_study(
        f'candidate = "refined"\n{text}\n[[objectives]]\nname = "ce"\nlabel = "refined"\ntraining.keep = "refined"\n'
    )
    assert study.candidate == "refined"
    kept = {spec.key: recipe_of(spec).keep for spec in study.specs()}
    labels = study.labels()
    assert {labels[key].setting for key in kept} == {"Digits"}
    assert {(labels[key].objective, keep) for key, keep in kept.items()} == {("", "last"), ("refined", "refined")}
    assert parse_study(SMALL).labels() == {}
    assert parse_study(SMALL).candidate is None
