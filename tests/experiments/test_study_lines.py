"""Whatever is wrong with a study is said at once, with file, line, key and remedy."""

import pytest

from focalcal.experiments.study import load_study, study_of
from focalcal.experiments.study_errors import StudyError

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
SAID = [
    "1: title: must have at least 1 character, got ''",
    "2: seeds[1]: must be greater than or equal to 0, got -1",
    "2: seeds[2]: must be a valid integer, got 1.5",
    "3: tmperature: 'tmperature' is not a key here; did you mean 'temperature'? Known: title,",
    "5: settings[0].recipe[0]: 'digits_mlp_lit' is not a recipe; did you mean 'digits_mlp_lite'? Known: cifar10",
    "7: settings[0].epochs: epochs must be >= 1, got 0",
    "8: settings[0].optimizer.lr: lr must be finite and >= 0, got -1",
    "9: settings[0].optimizer.momentun: 'momentun' is not a field of the optimizer; did you mean 'momentum'?",
    "10: settings[0].batchsize: 'batchsize' is not a field of a recipe; did you mean 'batch_size'?",
    "11: settings[0].data_options.sed: data_options: 'sed' is not an option of digits; did you mean 'seed'?",
    "12: settings[1].recipe: must be given; did you write it as 'recipes'?",
    "15: objectives[0].name[1]: 'focl' is not an objective; did you mean 'focal'? Known: ce,",
    "16: objectives[0].gamma[1]: gamma must be finite and >= 0, got -1",
    "17: objectives[0].gamma[2]: gamma must be a number, got 'x'",
    "18: objectives[0].lamda: 'lamda' is not an option of fcl; did you mean 'lam'? Known: gamma, lam",
    "20: objectives[1].name: objective must suit small_cnn on digits",
    "22: objectives[2].name: must be a name or a list of names, got 3",
    "24: protocol.shifts: shifts must be a list, got 'svhn'",
    "25: protocol.severitys: 'severitys' is not a field of the protocol; did you mean 'severities'?",
    "27: smoke.epochs: must be greater than or equal to 1, got 0",
]


def complaints(text):
    with pytest.raises(StudyError) as caught:
        study_of(text, "my.toml")
    lines = str(caught.value).splitlines()
    assert all(line.startswith("my.toml:") for line in lines)
    return [line.removeprefix("my.toml:") for line in lines]


def test_all_faults_are_said_at_once():
    said = complaints(WRONG)
    assert len(said) == len(SAID)
    for line, wanted in zip(said, SAID, strict=True):
        assert line.startswith(wanted)


HEAD = 'title = "t"\nseeds = [0]\n'
SETTING = '[[settings]]\nrecipe = "digits_mlp_lite"\n'
OBJECTIVE = '[[objectives]]\nname = "ce"\n'
WHOLE = HEAD + SETTING + OBJECTIVE


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", ["1: objectives: must be given", "1: seeds: must be given", "1: settings: must be given", "1: title: "]),
        ('title = "t\nseeds = [0]', ["1: not TOML, column 11: Illegal character '\\n'"]),
        ("title = 't'\nseeds = [0", ["2: not TOML"]),
        ("a = 1\na = 2\n", ["2: not TOML, column 6: Cannot overwrite a value"]),
        (HEAD + OBJECTIVE + 'settings = ["digits"]', ["5: objectives[0].settings: 'settings' is not an option of ce"]),
        (HEAD + "settings = 3\n" + OBJECTIVE, ["3: settings: must be a valid list, got 3"]),
        (HEAD + "settings = []\n" + OBJECTIVE, ["3: settings: must have at least 1 item"]),
        (HEAD + SETTING + '[[objectives]]\nname = "fcl"\nlam = []\n', ["7: objectives[0].lam: must hold at least one"]),
        (
            HEAD + 'temperature = "half"\n' + SETTING + OBJECTIVE,
            ["3: temperature: must be 'halves' or 'validation', got"],
        ),
        (
            HEAD + SETTING + 'model = "mpl"\n' + OBJECTIVE,
            ["5: settings[0].model: 'mpl' is not a model; did you mean 'mlp'"],
        ),
        (WHOLE + "[protocol]\nseverities = [6]\n", ["8: protocol.severities: severities must be from 1 to 5"]),
        (WHOLE + "[protocol]\nshifts = ['svnh']\n", ["8: protocol.shifts: shifts: 'svnh' is not a shift"]),
        (WHOLE + "[protocol]\nsaliency = 2\n", ["8: protocol.saliency: saliency must be 0 for mlp"]),
        (WHOLE + "[smoke]\nepoch = 2\n", ["8: smoke.epoch: 'epoch' is not a key here; did you mean 'epochs'"]),
        (WHOLE + "[[smoke.objectives]]\nname = 'cee'\n", ["8: smoke.objectives[0].name: 'cee' is not"]),
        (WHOLE + "[smoke.protocol]\nsaliency = 2\n", ["8: smoke.protocol.saliency: saliency must be 0"]),
    ],
)
def test_each_fault_has_its_line_and_key(text, wanted):
    said = complaints(text)
    for one in wanted:
        assert any(line.startswith(one) for line in said), said


def test_epochs_that_a_schedule_outlasts_are_blamed_on_the_epochs():
    text = HEAD + '[[settings]]\nrecipe = "cifar10_resnet50"\nbatch_size = 64\nepochs = 20\n' + OBJECTIVE
    (line,) = complaints(text)
    assert line.startswith("6: settings[0].epochs: warmup and milestones must lie before epochs = 20, got 250")


def test_a_fault_of_values_that_only_clash_is_that_of_one_of_them():
    clash = 'image_size = 64\nevaluation = "whole"\n'
    (line,) = complaints(HEAD + '[[settings]]\nrecipe = "cifar100_deit_small"\n' + clash + OBJECTIVE)
    assert line.startswith("6: settings[0].evaluation: image_size must be given for evaluation 'resize'")


def test_objectives_that_need_validation_examples_are_refused_where_there_are_none():
    setting = '[[settings]]\nrecipe = "cifar10_resnet110"\n'
    (line,) = complaints(HEAD + setting + '[[objectives]]\nname = ["ce", "adafocal"]\n')
    assert line.startswith("6: objectives[0].name[1]: adafocal needs validation examples")
    (line,) = complaints(HEAD + 'temperature = "validation"\n' + setting + OBJECTIVE)
    assert line.startswith("3: temperature: 'validation' needs validation examples, and cifar10 holds none out")


def test_an_unknown_study_names_the_known_ones():
    with pytest.raises(ValueError, match=r"'digit' is not a study; did you mean 'digits'\? Known: digits, adafocal"):
        load_study("digit")


def test_a_missing_or_unreadable_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.toml"):
        load_study(tmp_path / "none.toml")
    file = tmp_path / "latin.toml"
    file.write_bytes(b"seeds = [0]\ntitle = '\xe9'\n")
    with pytest.raises(StudyError, match=r"latin\.toml:2: must be text in UTF-8"):
        load_study(file)
