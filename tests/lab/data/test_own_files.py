"""Own files: what is fitted knows the training rows alone, splits are what was asked for, bad files are refused."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from focalcal.lab.data import load_data
from focalcal.lab.data.errors import DataSetWarning
from focalcal.lab.store import Store
from focalcal.lab.studies import find_gaps, run_spec, spec_of
from focalcal.lab.studies.spec_builder import override_recipe
from focalcal.lab.training import recipe

ROWS = 240
pytestmark = pytest.mark.filterwarnings("ignore::focalcal.lab.data.errors.DataSetWarning")  # gaps make equal inputs


@pytest.fixture
def table(tmp_path):
    """A .csv with a number that has gaps, a category with a value that only test rows have, and a patient."""
    draws = np.random.default_rng(0)
    part = np.array(["train", "val", "test"])[draws.choice(3, ROWS, p=[0.6, 0.2, 0.2])]
    number = draws.normal(3, 2, ROWS)
    columns = {
        "number": [None if row % 20 == 0 else float(value) for row, value in enumerate(number)],
        "colour": ["only here" if place == "test" else str(draws.choice(["red", "blue"])) for place in part],
        "y": np.where(number + draws.normal(size=ROWS) > 3, "yes", "no"),
        "part": part,
        "patient": np.arange(ROWS) // 3,
        "name": [f"row {row}" for row in range(ROWS)],
    }
    csv.write_csv(pa.table(columns), tmp_path / "mine.csv")
    parquet.write_table(pa.table(columns), tmp_path / "mine.parquet")
    return tmp_path


def test_columns_are_fitted_to_training_rows_and_unknown_categories_have_code_0(table):
    options = {"label": "y", "split": "part", "drop": "patient,name"}
    data = load_data("csv", table, path="mine.csv", **options)
    assert data.classes == ("no", "yes")
    assert data.categories == (3,)
    numbers, marks, codes = data.train.inputs.T
    assert numbers.mean() == pytest.approx(0, abs=1e-6)
    assert numbers.std() == pytest.approx(1, abs=1e-6)
    assert set(np.unique(marks)) == {0, 1}
    assert set(codes) == {1, 2}
    assert set(data.test.inputs[:, 2]) == {0}
    again = load_data("tabular", table, path="mine.parquet", **options)
    assert again.provenance["fingerprints"] == data.provenance["fingerprints"]
    hot = load_data("csv", table, path="mine.csv", encoding="one_hot", **options)
    assert hot.categories == ()
    np.testing.assert_array_equal(hot.train.inputs[:, 2:].argmax(1), codes)


def test_quantiles_do_not_depend_on_the_unit_and_seeds_split_anew(table):
    options = {"path": "mine.csv", "label": "y", "drop": "part,patient,colour,name", "scale": "quantile"}
    first, second = (load_data("csv", table, seed=seed, **options) for seed in (0, 1))
    assert len(set(first.test.ids) & set(second.test.ids)) < len(first.test)
    assert {split: len(rows) for split, rows in first.splits.items()} == {"train": 144, "val": 48, "test": 48}
    text = (table / "mine.csv").read_text().splitlines()
    head, *rows = (line.split(",") for line in text)
    rows = [[str(float(cells[0]) ** 3) if cells[0] else "", *cells[1:]] for cells in rows]
    (table / "cubed.csv").write_text("\n".join(",".join(cells) for cells in [head, *rows]))
    cubed = load_data("csv", table, **{**options, "path": "cubed.csv"})
    np.testing.assert_allclose(cubed.train.inputs, first.train.inputs, atol=1e-3)


def test_groups_stay_whole(table):
    data = load_data("csv", table, path="mine.csv", label="y", group="patient", drop="part", ids="name")
    patients = [set(rows.groups) for rows in data.splits.values()]
    assert not patients[0] & patients[1] | patients[0] & patients[2] | patients[1] & patients[2]


@pytest.mark.filterwarnings("error")
def test_equal_rows_on_both_sides_and_classes_without_a_training_row_are_warned_of(tmp_path):
    inputs, parts = np.arange(12.0).reshape(6, 2), np.array(["train", "train", "val", "test", "test", "test"])
    inputs[4:] = inputs[0]
    np.savez(tmp_path / "mine.npz", inputs=inputs, labels=np.array([0, 1, 1, 0, 1, 2]), split=parts)
    with pytest.warns(DataSetWarning) as told:
        load_data("npz", tmp_path, path="mine.npz")
    assert [str(one.message).partition(";")[0] for one in told] == [
        "mine: 2 of 3 rows of test have the inputs of a training row",
        "mine: no training row has the class 2, of which test has 1 rows",
    ]


def test_arrays_texts_and_images(tmp_path):
    from PIL import Image

    draws = np.random.default_rng(0)
    labels = np.arange(60) % 3
    np.savez(tmp_path / "a.npz", inputs=draws.normal(5, 2, (60, 4)), labels=labels, groups=np.arange(60) // 2)
    data = load_data("npz", tmp_path, path="a.npz")
    np.testing.assert_allclose(data.train.inputs.mean(0), 0, atol=1e-6)
    assert data.train.groups is not None
    words = [" ".join(draws.choice(["good", "bad", f"word{row}"], 5)) for row in range(60)]
    csv.write_csv(pa.table({"text": words, "label": labels}), tmp_path / "t.csv")
    texts = load_data("texts", tmp_path, path="t.csv", length=6)
    seen = {word for row in texts.train.ids for word in words[int(row.rpartition("-")[2])].split()}
    assert set(texts.vocabulary) - {""} == seen
    for split, count in {"train": 6, "test": 2}.items():
        for row in range(count):
            home = tmp_path / "images" / split / "ab"[row % 2]
            home.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.full((9, 9, 3), 40 * (row % 2) + row, np.uint8)).save(home / f"{row}.png")
    images = load_data("images", tmp_path, path="images", size=8, validation=0.3)
    assert {split: len(rows) for split, rows in images.splits.items()} == {"train": 4, "val": 2, "test": 2}
    assert images.test.inputs.shape == (2, 3, 8, 8)
    assert images.classes == ("a", "b")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "path must name"),
        ({"path": "none.csv"}, "must be there"),
        ({"path": "mine.csv"}, "must have a column 'label'"),
        ({"path": "mine.csv", "label": "number"}, "must have a label in every row"),
        ({"path": "mine.csv", "label": "y", "split": "colour"}, "a split must be train, val, test"),
        ({"path": "mine.csv", "label": "y", "drop": "number,colour,part,patient,name"}, "a column besides the label"),
        ({"path": "mine.csv", "label": "y"}, "got 'name' with 144 values in 144 training rows"),
        ({"path": "mine.csv", "label": "y", "test": 1.0}, "must be shares of the rows"),
        ({"path": "mine.csv", "label": "y", "group": "y"}, "groups for each of train, val and test, got a share of"),
    ],
)
def test_bad_files_are_refused(table, options, message):
    with pytest.raises(ValueError, match=message):
        load_data("csv", table, **options)


@pytest.mark.parametrize(
    ("inputs", "message"), [([[0.0, np.nan]] * 9, "must be finite"), ([[0, -1]] * 9, "tokens must be >= 0, got -1")]
)
def test_bad_arrays_are_refused(tmp_path, inputs, message):
    np.savez(tmp_path / "bad.npz", inputs=np.array(inputs), labels=np.arange(9) % 2)
    with pytest.raises(ValueError, match=message):
        load_data("npz", tmp_path, path="bad.npz")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,label\n1,x,3\n", r"must be a table.*write it again"),
        ("a,a,label\n1,2,x\n3,4,y\n", "'a' twice"),
        ("a,label\n1,x\n3,\n4,y\n", "a label in every row, got none in row 1"),
    ],
)
def test_wrong_tables_are_refused(tmp_path, text, message):
    (tmp_path / "wrong.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_data("csv", tmp_path, path="wrong.csv")


def test_runs_of_own_files_know_what_is_in_them_and_estimators_are_runs_too(table):
    options = {"path": "mine.csv", "label": "y", "split": "part", "drop": "patient,name"}
    mine = override_recipe(
        recipe("tabular_mlp_lite"), {"data_set": "csv", "data_options": options, "classes": 2, "epochs": 2}
    )
    store = Store(table / "store")
    forest = override_recipe(
        mine, {"model": "sklearn.ensemble:RandomForestClassifier", "model_options": {"n_estimators": 5}}
    )
    runs = {one: run_spec(spec_of(one, "ce", seed=0, data_dir=table), store, data_dir=table) for one in (mine, forest)}
    assert len(find_gaps([run.spec for run in runs.values()], store)) == 0
    for run in runs.values():
        assert run.predictions("test").logits.shape[1] == 2
        assert run.spec.training["fingerprint"] == runs[mine].spec.training["fingerprint"]
    from sklearn.ensemble import RandomForestClassifier

    data = load_data("csv", table, **options)
    expected = RandomForestClassifier(5, random_state=0).fit(data.train.inputs, data.train.labels)
    probs = expected.predict_proba(data.test.inputs)
    np.testing.assert_allclose(runs[forest].predictions("test").probs, probs, atol=1e-6)
    with pytest.raises(ValueError, match="objective must be ce"):
        spec_of(forest, "brier", seed=0, data_dir=table)
    text = (table / "mine.csv").read_text()
    (table / "mine.csv").write_text(text.replace("yes", "maybe", 1))
    changed = spec_of(override_recipe(mine, {"classes": 3}), "ce", seed=0, data_dir=table)
    assert changed.training["fingerprint"] != runs[mine].spec.training["fingerprint"]


def test_own_images_are_normalised_by_their_own_training_rows(tmp_path):
    from focalcal.lab.studies.subsets import with_statistics

    draws = np.random.default_rng(0)
    inputs = draws.integers(100, 110, (40, 3, 8, 8)).astype(np.uint8)
    np.savez(tmp_path / "images.npz", inputs=inputs, labels=np.arange(40) % 2)
    given = {"data_set": "npz", "data_options": {"path": "images.npz"}, "classes": 2}
    mine = override_recipe(recipe("digits_small_cnn_lite"), given)
    assert mine.mean is None
    assert "channels" not in dict(mine.model_options)
    data = load_data("npz", tmp_path, **dict(mine.data_options))
    filled = with_statistics(mine, data)
    np.testing.assert_allclose(filled.mean, data.train.inputs.mean((0, 2, 3)) / 255)
    np.testing.assert_allclose(filled.std, data.train.inputs.std((0, 2, 3)) / 255)
    assert with_statistics(override_recipe(mine, {"mean": (0.5,) * 3, "std": (1,) * 3}), data).mean == (0.5,) * 3
