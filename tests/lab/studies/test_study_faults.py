"""Whatever is wrong with a study is reported at once, with file, key path and remedy."""

import tracemalloc
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focalcal.lab.store import Evaluations, Protocol
from focalcal.lab.studies import StudyError, load_study, parse_study
from focalcal.lab.studies.study_file import Smoke, Study, check_study
from focalcal.lab.training import Optimizer, Recipe, Schedule, Step

MODELS = (Study, Smoke, Recipe, Optimizer, Schedule, Step, Protocol, Evaluations)
KEYS = ["gamma", "recipe", "name", *dict.fromkeys(field.name for model in MODELS for field in fields(model))]
GOOD = """
title = "one cell"
seeds = [0]
settings = [{ recipe = "digits_mlp_lite" }]
[[objectives]]
name = "fcl"
gamma = 3
"""
WRONG = """\
title = ""
seeds = [0, -1, 1.5]
tmperature = "halves"
[[settings]]
recipe = ["digits_mlp_lit",
   "digits_small_cnn_lite"]
epochs = 0
optimizer.lr = -1
optimizer.momentun = 0.9
batchsize = 3
data_options = { sed = 1 }
[[settings]]
recipes = "x"
[[objectives]]
name = ["fcl", "focl"]
gamma = [1, -1,
  "x"]
lamda = 3
[[objectives]]
name = "multilabel_bce"
[[objectives]]
name = 3
[protocol]
shifts = "svhn"
severitys = [1]
[smoke]
epochs = 0
"""
REPORTED = [
    "title: must have at least 1 character, got ''",
    "seeds[1]: must be greater than or equal to 0, got -1",
    "seeds[2]: must be a whole number, got 1.5",
    "tmperature: 'tmperature' is not a key here; did you mean 'temperature'? Known: title,",
    "settings[0].recipe[0]: 'digits_mlp_lit' is not a recipe; did you mean 'digits_mlp_lite'? Known: ag_news",
    "settings[0].epochs: must be greater than or equal to 1, got 0",
    "settings[0].optimizer.lr: must be greater than 0, got -1",
    "settings[0].optimizer.momentun: 'momentun' is not a key here; did you mean 'momentum'? Known: name, lr,",
    "settings[0].batchsize: 'batchsize' is not a key here; did you mean 'batch_size'?",
    "settings[1].recipes: 'recipes' is not a key here; did you mean 'recipe'?",
    "settings[1].recipe: must be given",
    "objectives[0].name[1]: 'focl' is not an objective; did you mean 'focal'? Known: ce,",
    "objectives[0].gamma[1]: gamma must be finite and >= 0, got -1",
    "objectives[0].gamma[2]: gamma must be a number, got 'x'",
    "objectives[0].lamda: 'lamda' is not an option of fcl; did you mean 'lam'? Known: gamma, lam",
    "objectives[1].name: objective must suit small_cnn on digits",
    "objectives[2].name: must be a name or a list of names, got 3",
    "protocol.shifts: must be a list, got 'svhn'",
    "protocol.severitys: 'severitys' is not a key here; did you mean 'severities'?",
    "smoke.epochs: must be greater than or equal to 1, got 0",
]


def complaints(text):
    with pytest.raises(StudyError) as caught:
        parse_study(text, "my.toml")
    lines = str(caught.value).splitlines()
    assert all(line.startswith("my.toml: ") for line in lines)
    return [line.removeprefix("my.toml: ") for line in lines]


def test_all_faults_are_reported_at_once_in_the_order_of_the_file():
    reported = complaints(WRONG)
    assert len(reported) == len(REPORTED), reported
    for line, wanted in zip(reported, REPORTED, strict=True):
        assert line.startswith(wanted)


HEAD = 'title = "t"\nseeds = [0]\n'
SETTING = '[[settings]]\nrecipe = "digits_mlp_lite"\n'
OBJECTIVE = '[[objectives]]\nname = "ce"\n'
WHOLE = HEAD + SETTING + OBJECTIVE


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", ["title: must be given", "seeds: must be given", "settings: must be given", "objectives: must be given"]),
        ('title = "t\nseeds = [0]', ["not TOML: Illegal character '\\n' (at line 1, column 11)"]),
        ("a = 1\na = 2\n", ["not TOML: Cannot overwrite a value (at line 2, column 6)"]),
        (
            HEAD + OBJECTIVE + 'settings = ["digits"]',
            ["objectives[0].settings: 'settings' is not an option of ce", "settings: must be given"],
        ),
        (HEAD + "settings = 3\n" + OBJECTIVE, ["settings: must be a list, got 3"]),
        (HEAD + "settings = []\n" + OBJECTIVE, ["settings: must have at least 1 item"]),
        (HEAD + SETTING + '[[objectives]]\nname = "fcl"\nlam = []\n', ["objectives[0].lam: must hold at least one"]),
        (HEAD + 'temperature = "half"\n' + SETTING + OBJECTIVE, ["temperature: must be 'halves' or 'validation', got"]),
        (
            HEAD + SETTING + 'model = "mpl"\n' + OBJECTIVE,
            ["settings[0].model: 'mpl' is not a model; did you mean 'mlp'"],
        ),
        (HEAD + SETTING + "epochs = true\n" + OBJECTIVE, ["settings[0].epochs: must be a whole number, got True"]),
        (
            HEAD + SETTING + 'augmentation = [{ name = "PadCropFlop" }, { options = {} }]\n' + OBJECTIVE,
            [
                "settings[0].augmentation[0].name: 'PadCropFlop' is not an augmentation; did you mean 'PadCropFlip'",
                "settings[0].augmentation[1].name: must be given",
            ],
        ),
        (WHOLE + "[protocol]\nseverities = [6]\n", ["protocol.severities[0]: must be less than or equal to 5, got 6"]),
        (WHOLE + "[protocol]\nshifts = ['svnh']\n", ["protocol.shifts[0]: 'svnh' is not a shift; did you mean 'svhn'"]),
        (WHOLE + "[protocol]\nsaliency = 2\n", ["protocol.saliency: saliency must be 0 for mlp"]),
        (
            HEAD + "candidate = 'x'\n" + SETTING + OBJECTIVE,
            ["candidate: 'x' is not an objective of this study. Known: ce"],
        ),
        (HEAD + SETTING + "label = 3\n" + OBJECTIVE, ["settings[0].label: must be a text, got 3"]),
        (
            HEAD + SETTING + "[[objectives]]\nname = ['ce', 'brier']\nlabel = 'c'\n",
            ["objectives[0].label: must be of one, got 'c' for several; give each its own table"],
        ),
        (
            HEAD + SETTING + "[[objectives]]\nname = 'focal'\nsearch = { gamma = [1, 2] }\n",
            ["objectives[0].search: needs the table [tune] of the study; add it"],
        ),
        (
            WHOLE + "training = { kep = 'nll', data_options = { validation = 0 }, keep = 'nll' }\n",
            ["objectives[0].training.kep: 'kep' is not a key here; did you mean 'keep'"],
        ),
        (
            WHOLE + "training = { data_options = { validation = 0 }, keep = 'nll' }\n",
            ["objectives[0].name: keep = 'nll' needs validation examples"],
        ),
        (
            HEAD + "[tune]\ntrials = 0\nlearning_rate = { low = 3 }\n" + SETTING + OBJECTIVE,
            ["tune.trials: must be greater than", "tune.learning_rate: must be a list of values or { low ="],
        ),
        (
            HEAD
            + "[tune]\n"
            + SETTING
            + SETTING
            + "[[objectives]]\nname = 'fcl'\nlam = { predicted = 0 }\nsearch = { gama = [1], scale = [] }\n",
            [
                "settings[1].label: must be given, since there is another setting 'digits/mlp'",
                "objectives[0].lam: must be { predicted = FACTOR } with a factor above 0, got {'predicted': 0}",
                "objectives[0].lam: needs the objective ce in the same setting, which predicts it",
                "objectives[0].search.gama: 'gama' is not an option of fcl; did you mean 'gamma'",
                "objectives[0].search.scale: must be a list of values or { low =",
                "objectives[0].gamma: must be given, one value, where lam is predicted for it",
            ],
        ),
        (WHOLE + "[smoke]\nepoch = 2\n", ["smoke.epoch: 'epoch' is not a key here; did you mean 'epochs'"]),
        (WHOLE + "[[smoke.objectives]]\nname = 'cee'\n", ["smoke.objectives[0].name: 'cee' is not"]),
        (WHOLE + "[smoke.protocol]\nsaliency = 2\n", ["smoke.protocol.saliency: saliency must be 0"]),
    ],
)
def test_each_fault_has_its_key(text, wanted):
    reported = complaints(text)
    assert len(reported) == len(wanted), reported
    for line, start in zip(reported, wanted, strict=True):
        assert line.startswith(start)


def test_an_unknown_recipe_or_objective_hides_no_other_fault_and_shifts_no_place():
    tables = """
    [[settings]]
    recipe = "digits_mlp_lit"
    [[settings]]
    recipe = ["cifar10_resnet", "cifar10_resnet50"]
    data_options = { sed = 1 }
    [[objectives]]
    name = ["cee", "adafocal"]
    """
    reported = complaints(HEAD + tables)
    assert [line.partition(": ")[0] for line in reported] == [
        "settings[0].recipe",
        "settings[1].recipe[0]",
        "settings[1].data_options.sed",
        "objectives[0].name[0]",
        "objectives[0].name[1]",
    ]
    assert "adafocal needs validation examples" in reported[-1]


def test_fields_that_do_not_go_together_are_a_fault_of_their_table():
    text = HEAD + '[[settings]]\nrecipe = "cifar10_resnet50"\nbatch_size = 64\nepochs = 20\n' + OBJECTIVE
    (line,) = complaints(text)
    assert line.startswith("settings[0]: warmup and milestones must lie before epochs = 20, got 250")
    clash = 'image_size = 64\nevaluation = "whole"\n'
    (line,) = complaints(HEAD + '[[settings]]\nrecipe = "cifar100_deit_small"\n' + clash + OBJECTIVE)
    assert line.startswith("settings[0]: image_size must be given for evaluation 'resize'")


def test_objectives_that_need_validation_examples_are_refused_where_there_are_none():
    setting = '[[settings]]\nrecipe = "cifar10_resnet110"\n'
    (line,) = complaints(HEAD + setting + '[[objectives]]\nname = ["ce", "adafocal"]\n')
    assert line.startswith("objectives[0].name[1]: adafocal needs validation examples")
    (line,) = complaints(HEAD + 'temperature = "validation"\n' + setting + OBJECTIVE)
    assert line.startswith("temperature: 'validation' needs validation examples, and cifar10 holds none out")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 30)
    | st.floats()
    | st.sampled_from(["", "ce", "digits_mlp_lite", "x:Y"]),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.sampled_from(KEYS), values, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6))
def test_whatever_a_file_holds_is_a_study_or_has_faults(written):
    study, faults = check_study(written)  # raises nothing
    assert faults or study.specs()


def test_an_unknown_study_names_the_known_ones():
    with pytest.raises(
        ValueError, match=r"'digit' is not a study; did you mean 'digits'\? Known: digits, cifar10-lite"
    ):
        load_study("digit")


def test_a_missing_or_unreadable_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.toml"):
        load_study(tmp_path / "none.toml")
    file = tmp_path / "latin.toml"
    file.write_bytes(b"seeds = [0]\ntitle = '\xe9'\n")
    with pytest.raises(StudyError, match=r"latin\.toml: must be text in UTF-8, got .* at byte 21"):
        load_study(file)


def test_cells_are_counted_before_they_are_made():
    values = ", ".join(f"{1 + k / 1000}" for k in range(3000))
    text = GOOD.replace("gamma = 3", f"gamma = [{values}]\nlam = [{values}]")
    tracemalloc.start()
    try:
        with pytest.raises(StudyError, match=r"objectives: must be at most 100,000 cells .*, got 9,000,000; divide"):
            parse_study(text)
        assert tracemalloc.get_traced_memory()[1] < 20e6  # bytes; the cells would take 3.4e9
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        (f"gamma = {'[' * 20_000}{']' * 20_000}", "brackets or keys nested"),
        (".".join("a" * 50) + " = 1", "'a' is not an option"),
        (".".join("a" * 20_000) + " = 1", "brackets or keys nested"),
    ],
    ids=["brackets", "some keys", "keys"],
)
def test_what_is_nested_too_deeply_is_a_fault(line, refused):
    tracemalloc.start()
    try:
        with pytest.raises(StudyError, match=rf"study\.toml: .*{refused}"):
            parse_study(GOOD.replace("gamma = 3", line))
        assert tracemalloc.get_traced_memory()[1] < 20e6  # bytes; tomllib takes 1.5e9 for the deepest
    finally:
        tracemalloc.stop()
