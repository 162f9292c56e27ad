"""What holds for every entry of DATA_SETS, on small folders in the official layouts."""

import json
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from support.data_folders import EXAMPLES, FABRICATED

from focalcal.lab.data import CATALOGUE, DATA_SETS, LOADERS, OWN_DATA, data_options, fingerprint, load_data

TEXTS = [name for name in DATA_SETS if "num_words" in data_options(name)]
WITH_FILES = [name for name in DATA_SETS if CATALOGUE[name].folder is not None]


@pytest.fixture
def folder_of(tmp_path):
    def made(name):
        FABRICATED[name](tmp_path)
        return tmp_path

    return made


@pytest.fixture(scope="module", params=DATA_SETS)
def folder(request, tmp_path_factory):
    """A folder of every data set, for tests that change nothing in it, called as the data set is."""
    path = tmp_path_factory.mktemp("folders") / request.param
    path.mkdir()
    FABRICATED[request.param](path)
    return path


@pytest.fixture(scope="module")
def data(folder):
    return load_data(folder.name, folder, allow_partial=True)


def test_all_are_fabricated_and_catalogued():
    assert set(FABRICATED) == set(DATA_SETS)
    assert set(DATA_SETS) | {"glove"} == set(CATALOGUE)


def test_splits_share_no_example(data):
    """Nor, as an id made of a place in a file says little, an image under another id, bit for bit."""
    for first, second in combinations(data.splits.values(), 2):
        assert not set(first.ids.tolist()) & set(second.ids.tolist())
        if first.groups is not None:
            assert not set(first.groups.tolist()) & set(second.groups.tolist())
        # Inputs of `discrete` are 40 states; texts are compared as texts, since words outside the vocabulary vanish.
        if data.name != "discrete" and data.name not in TEXTS:
            assert not {row.tobytes() for row in first.inputs} & {row.tobytes() for row in second.inputs}
    if data.name in TEXTS:
        assert data.provenance["texts_also_in_train"] == {"val": 0, "test": 0}
    assert len(data.test) > 0


def test_loading_twice_gives_the_same(data, folder):
    again = load_data(data.name, folder, allow_partial=True)
    assert again.provenance == data.provenance
    assert [fingerprint(part) for part in again.splits.values()] == [fingerprint(part) for part in data.splits.values()]


def test_provenance_is_plain_and_tells_the_counts(data):
    assert json.loads(json.dumps(data.provenance)) == data.provenance
    assert data.provenance["counts"] == {split: len(examples) for split, examples in data.splits.items()}
    assert sum(data.provenance["counts"].values()) == EXAMPLES[data.name]  # nothing is lost on the way
    assert data.provenance["fingerprints"] == {split: fingerprint(part) for split, part in data.splits.items()}
    has_files = data.name in WITH_FILES
    assert data.provenance["partial"] is bool(data.provenance["files"]) is has_files
    assert data.name == data.provenance["name"]
    for file in data.provenance["files"]:
        assert len(file["sha256"]) == 64
        assert file["bytes"] > 0


def test_known_posteriors_are_distributions(data):
    for examples in data.splits.values():
        if examples.posterior is not None:
            np.testing.assert_allclose(examples.posterior.sum(1), 1, atol=1e-12)
            assert examples.posterior.min() >= 0


@pytest.mark.parametrize("name", WITH_FILES)
def test_a_part_is_refused_unless_allowed(name, folder_of):
    with pytest.raises(ValueError, match=r"must hold \d+ (examples|items).*, got \d+.*allow_partial=True"):
        load_data(name, folder_of(name))


@pytest.mark.parametrize(
    ("name", "training"),
    [
        ("cifar10", "data_batch_*"),
        ("cifar100", "train"),
        ("svhn", "train_*"),
        ("fashion_mnist", "train-*"),
        ("tiny_imagenet", "n*_*.JPEG"),
        ("chestxray14", "0000000*.png"),
    ],
)
def test_a_part_may_be_the_test_split_alone(name, training, folder_of):
    folder = folder_of(name)
    whole = load_data(name, folder, allow_partial=True)
    for path in folder.rglob(training):
        path.unlink()
    with pytest.raises(ValueError, match=r"got \d+.*allow_partial=True"):
        load_data(name, folder)
    part = load_data(name, folder, allow_partial=True)
    assert part.provenance["partial"] is True
    assert part.provenance["counts"]["train"] < whole.provenance["counts"]["train"]
    assert part.provenance["fingerprints"]["test"] == whole.provenance["fingerprints"]["test"]


@pytest.mark.parametrize("name", ["newsgroups", "ag_news"])
def test_texts_without_a_training_part_have_no_vocabulary(name, folder_of):
    folder = folder_of(name)
    for path in folder.rglob("*train*"):
        path.rename(folder / "elsewhere")
    with pytest.raises(ValueError, match=rf"{name}: train must hold \d+ examples.*allow_partial=True"):
        load_data(name, folder)
    with pytest.raises(ValueError, match=rf"{name}: train must hold texts, of which the vocabulary is made"):
        load_data(name, folder, allow_partial=True)


@pytest.mark.parametrize("name", [name for name in DATA_SETS if "validation" in data_options(name)])
def test_validation_is_what_is_asked_for_but_at_most_a_tenth_of_a_part(name, folder_of):
    folder = folder_of(name)
    none, some = (load_data(name, folder, allow_partial=True, validation=count) for count in (0, 10_000))
    assert len(none.val) == 0
    assert len(some.val) == len(none.train) // 10 > 0
    assert f"the first {len(some.val)} of a shuffle" in some.provenance["split"]
    with pytest.raises(ValueError, match=r"validation must be from 0 to \d+, as there are \d+ examples, got -1"):
        load_data(name, folder, allow_partial=True, validation=-1)


def test_an_unknown_option_lists_the_known_ones(data, folder):
    known = data_options(data.name)
    with pytest.raises(ValueError, match=rf"options of {data.name} must be among {', '.join(known)}, got 'colour'"):
        load_data(data.name, folder, allow_partial=True, colour="red")
    assert load_data(data.name, folder, allow_partial=True, **known).provenance == data.provenance


@pytest.mark.parametrize("name", WITH_FILES)
def test_a_missing_folder_says_what_to_put_where(name, tmp_path):
    with pytest.raises(ValueError, match=rf"must be the folder of {name}.*put .*{tmp_path}"):
        load_data(name, tmp_path)


# A shorter post is a post: of newsgroups only the fingerprint in the provenance tells.
@pytest.mark.parametrize("name", [name for name in WITH_FILES if not name.startswith("newsgroups")])
def test_a_truncated_file_is_refused_by_name(name, folder_of):
    folder = folder_of(name)
    largest = max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[: largest.stat().st_size // 2])
    with pytest.raises(ValueError, match=largest.name):
        load_data(name, folder, allow_partial=True)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'cifar11' is not a data set; did you mean 'cifar10'.*Known: digits, "):
        load_data("cifar11")


def test_the_guide_names_every_data_set_with_its_options_and_defaults():
    guide = Path(__file__).parents[2] / "docs" / "guide" / "data.md"
    told = {}
    for line in guide.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 4 and cells[0].startswith("`"):
            told |= {name: re.findall(r"`(\w+)(?:=(\w+))?`", cells[3]) for name in re.findall(r"`(\w+)`", cells[0])}
    assert set(told) == set(LOADERS)
    for name, options in told.items():
        known = data_options(name)
        assert {option for option, _ in options} <= set(known)
        assert name in OWN_DATA or len(options) == len(known)  # what files of one's own have in common is told once
        assert all(str(known[option]) == default for option, default in options if default)


def test_the_folder_comes_from_the_environment(folder_of, monkeypatch):
    monkeypatch.setenv("FOCALCAL_DATA", str(folder_of("ag_news")))
    assert len(load_data("ag_news", allow_partial=True).test) == 8
    monkeypatch.delenv("FOCALCAL_DATA")
    with pytest.raises(ValueError, match="set FOCALCAL_DATA"):
        load_data("ag_news")
