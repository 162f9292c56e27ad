import csv
import dataclasses
import io

import numpy as np
import pytest
from pyarrow import parquet

from focalcal.reports.theory_findings import findings
from focalcal.reports.theory_study import FILES, write_study


@pytest.fixture(scope="module")
def folder(study, tmp_path_factory):
    target = tmp_path_factory.mktemp("study") / "theory"
    assert write_study(study, target) == [target / name for name in FILES]
    return target


def test_the_folder_holds_the_files_and_nothing_else(folder):
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)


@pytest.mark.parametrize(("name", "part"), [("records", "distortion"), ("calibration", "calibration")])
def test_records_come_back_bit_for_bit(folder, study, name, part):
    table = parquet.read_table(folder / f"{name}.parquet")
    expected = getattr(study, part)
    assert table.column_names == list(expected)
    for key, values in expected.items():
        found = table[key].to_pylist()
        if values.dtype.kind == "f":
            np.testing.assert_array_equal(np.array(found, dtype=float), values)
        else:
            assert found == values.tolist()


def test_cases_come_back_bit_for_bit(folder, study):
    rows = list(csv.DictReader(io.StringIO((folder / "cases.csv").read_text())))
    assert [float(row["constant"]) for row in rows] == study.cases["constant"].tolist()
    assert [row["posterior"] for row in rows] == study.cases["posterior"].tolist()


def test_the_latex_table_has_a_row_a_case(folder):
    lines = (folder / "cases.tex").read_text().splitlines()
    assert sum(line.endswith(r"\\") for line in lines) == 1 + 28
    assert len({line.count("&") for line in lines if line.endswith(r"\\")}) == 1
    assert r"$\gamma$" in lines[2]


def test_the_readme_states_the_numbers(folder, study):
    text = (folder / "README.md").read_text()
    assert f"{np.median(study.cases['slope_from_128']):.3f}" in text
    assert f"worst {100 * study.cases['constant_error'].max():.3f} %" in text
    assert "No solve breaks a bound." in text
    assert "The cross-check with SLSQP was left out." in text
    assert all(f"]({name})" in text for name in FILES)
    assert all(f"**{lead}.** {paragraph}" in text for lead, paragraph in findings(study))


def test_writing_again_gives_the_same_bytes(folder, study, tmp_path):
    for path in write_study(study, tmp_path):
        assert path.read_bytes() == (folder / path.name).read_bytes(), path.name


def test_the_cross_check_is_reported_by_its_largest_difference(study):
    difference = np.full(len(study.distortion["lam"]), 1e-9)
    difference[7] = 2.5e-7
    checked = dataclasses.replace(study, distortion=study.distortion | {"slsqp_difference": difference})
    assert "differs from them by 2.5e-07 at most" in dict(findings(checked))["Accuracy"]


def test_a_broken_bound_would_be_reported(study):
    small = study.distortion["global_bound"].copy()
    small[[3, 5]] = 1e-12
    broken = dataclasses.replace(study, distortion=study.distortion | {"global_bound": small})
    assert dict(findings(broken))["Bounds"].startswith("A bound is broken 2 times.")
