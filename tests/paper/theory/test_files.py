import csv
import dataclasses
import io
import re

import numpy as np
import pytest
from paper.theory.result_files import FILES, write_study
from paper.theory.theory_findings import findings
from paper.theory.theory_tables import moved_slopes, paper_note
from pyarrow import parquet
from scipy import stats

from focalcal.theory.minimiser import minimise


@pytest.fixture(scope="module")
def folder(study, tmp_path_factory):
    target = tmp_path_factory.mktemp("study") / "theory"
    assert write_study(study, target) == [target / name for name in FILES]
    return target


def test_the_folder_holds_the_files_and_nothing_else(folder):
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)


@pytest.mark.parametrize(
    ("name", "part", "lists"),
    [("records", "distortion", ["eta", "q"]), ("states", "states", ["eta"]), ("calibration", "calibration", [])],
)
def test_records_come_back_bit_for_bit(folder, study, name, part, lists):
    table = parquet.read_table(folder / f"{name}.parquet")
    expected = getattr(study, part)
    assert table.column_names == [*expected, *lists]
    for key, values in expected.items():
        found = table[key].to_pylist()
        if values.dtype.kind == "f":
            np.testing.assert_array_equal(np.array(found, dtype=float), values)
        else:
            assert found == values.tolist()


def test_records_hold_the_problem_and_its_solution(folder, study):
    rows = parquet.read_table(folder / "records.parquet").to_pylist()
    assert len(rows) == 504
    for row in rows[::37]:
        assert row["eta"] == study.posteriors[row["posterior"]].tolist()
        assert row["q"] == minimise(row["eta"], gamma=row["gamma"], lam=row["lam"]).q.tolist()
    states = parquet.read_table(folder / "states.parquet").to_pylist()
    assert len(states) == 36 * 40
    row = states[1234]
    assert row["eta"] == study.population[row["state"]].tolist()
    displacement = minimise(row["eta"], gamma=row["gamma"], lam=row["lam"]).displacement
    assert row["distortion_l2"] == pytest.approx(np.linalg.norm(displacement), rel=1e-12)


def test_cases_come_back_bit_for_bit(folder, study):
    rows = list(csv.DictReader(io.StringIO((folder / "cases.csv").read_text())))
    assert [float(row["constant"]) for row in rows] == study.cases["constant"].tolist()
    assert [row["posterior"] for row in rows] == study.cases["posterior"].tolist()


def test_the_relative_error_is_in_percent(folder, study):
    rows = list(csv.DictReader(io.StringIO((folder / "cases.csv").read_text())))
    assert [float(row["constant_error_percent"]) for row in rows] == (100 * study.cases["constant_error"]).tolist()


@pytest.mark.parametrize("name", ["paper.md", "README.md"])
def test_what_must_be_known_of_the_paper_is_said_with_its_digits(folder, name):
    text = (folder / name).read_text()
    assert "over lam >= 128: the paper names no window, and of those tried this one comes closest." in text
    assert "The posteriors are ours, because the paper's are not printed in it" in text
    assert "None of our cases is steeper than -1 over any window (the steepest is -0.9995)." in text
    figures = dict(re.findall(r"^\| (.+?) +\| +(-?[\d.]+) \|", text, re.MULTILINE))
    assert figures["error of the first-order constant, median, %"] == "0.01"
    assert figures["error of the first-order constant, worst, %"] == "0.18"
    assert figures["slope of Cal2^2, gamma = 2"] == "-1.990"


def test_another_window_or_a_steep_case_would_be_reported(study):
    paper = study.paper | {"paper": study.paper["paper"] + np.array([-0.004, 0.004, -0.043, 0, 0, 0, 0])}
    assert "its slopes are closest over lam >= 1024" in paper_note(dataclasses.replace(study, paper=paper))
    slopes = study.cases["slope_from_1"].copy()
    slopes[3] = -1.01
    steep = dataclasses.replace(study, cases=study.cases | {"slope_from_1": slopes})
    assert "1 of our 140 slopes over all cases and windows are not at least -1" in paper_note(steep)


def test_the_stated_cause_of_shallow_slopes_is_true(study):
    kappa, lam = study.cases["delay"], study.distortion["lam"].max()
    np.testing.assert_allclose(kappa / (2 * lam), study.cases["constant_error"], rtol=3e-3)
    for window in ("slope_from_16", "slope_from_128", "slope_from_1024"):
        order = stats.spearmanr(kappa, study.cases[window]).statistic
        assert order > 0.97
    assert abs(stats.spearmanr(study.cases["eta_min"], study.cases["slope_from_128"]).statistic) < 0.8
    slowest = study.cases["posterior"] == "near-uniform, K = 100"
    assert kappa[slowest].min() > 2 * kappa[~slowest].max()
    assert study.cases["slope_from_128"][slowest].min() > study.cases["slope_from_128"][~slowest].max()
    assert study.cases["eta_min"][slowest].min() > 4 * study.cases["eta_min"].min()
    rate = dict(findings(study))["Rate"]
    assert "not the smallest eta: near-uniform, K = 100 (smallest eta 0.0080)" in rate
    assert "but heterogeneous, K = 100 (smallest eta 0.0019)" in rate


def test_what_the_injection_says_depends_on_its_numbers(study):
    said = dict(findings(study))["Slopes at K = 100"]
    assert moved_slopes(study, "residual") < 0.0002
    assert "puts the slope of -0.942 of its heterogeneous posterior at K = 100" in said
    assert (
        f"moves no slope by more than {moved_slopes(study, 'residual'):.5f}, so it does not explain such a slope"
        in said
    )
    assert "slopes like it occur among exact solutions (near-uniform -0.849 to -0.842 over lam >= 16" in said
    assert "heterogeneous -0.983 to -0.974 over lam >= 128)" in said
    steep = study.injection | {"slope_exact": study.injection["slope_exact"] - 0.3}
    said = dict(findings(dataclasses.replace(study, injection=steep)))["Slopes at K = 100"]
    assert "so it may explain such a slope; steeper are all exact solutions" in said


def test_the_readme_states_the_numbers(folder, study):
    text = (folder / "README.md").read_text()
    assert f"{np.median(study.cases['slope_from_128']):.3f}" in text
    assert f"worst {100 * study.cases['constant_error'].max():.3f} %" in text
    assert "No solve breaks a bound, nor does a calibration error." in text
    assert "In 504 solves, and 36 x 40 more over a population of 40 states" in text
    assert "the solutions are exact to rounding" in text
    assert "standard error of the least-squares line" in text
    assert not re.search(r"\bnan\b|\b0\.000 %|± 0\.000", text)
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
    said = dict(findings(checked))["Accuracy"]
    assert "SLSQP, an independent solver, run on 504 of 1944 problems, differs from them by 2.5e-07 at most" in said


@pytest.mark.parametrize(("part", "figure"), [("distortion", "stationarity"), ("states", "feasibility")])
@pytest.mark.parametrize("value", [2e-12, np.nan])
def test_a_poor_solve_would_not_be_called_exact(study, part, figure, value):
    values = getattr(study, part)[figure].copy()
    values[11] = value
    poor = dataclasses.replace(study, **{part: getattr(study, part) | {figure: values}})
    assert "so the solutions are not exact to rounding" in dict(findings(poor))["Accuracy"]


def test_a_broken_bound_would_be_reported(study):
    small = study.distortion["global_bound"].copy()
    small[[3, 5]] = 1e-12, np.nan
    broken = dataclasses.replace(study, distortion=study.distortion | {"global_bound": small})
    assert dict(findings(broken))["Bounds"].startswith("A bound is broken 2 times.")
    cal2 = study.calibration["cal2"].copy()
    cal2[4] = 10.0
    broken = dataclasses.replace(study, calibration=study.calibration | {"cal2": cal2})
    assert dict(findings(broken))["Bounds"].startswith("A bound is broken 3 times.")  # the interior is infinite there


def test_where_no_interior_bound_applies_no_factor_is_given(study):
    none = study.distortion | {"interior_bound": np.full(504, np.inf)}
    said = dict(findings(dataclasses.replace(study, distortion=none)))["Bounds"]
    assert "applies to 0 of 504 solves; the norm" in said


def test_a_distortion_that_does_not_fall_is_not_said_to(study):
    flat = study.cases | {"slope_from_1024": study.cases["slope_from_1024"] + 0.2}
    assert dict(findings(dataclasses.replace(study, cases=flat)))["Rate"].startswith("The distortion does not yet fall")
