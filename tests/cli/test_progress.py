import doctest

import pytest

import focalcal.cli.progress
from focalcal.cli.progress import bar, progress_text


def test_docstring_examples():
    assert doctest.testmod(focalcal.cli.progress) == doctest.TestResults(failed=0, attempted=2)


def test_the_time_left_follows_the_work_done():
    assert progress_text(1, 4, 30.0) == "25 %, about 2 min left"  # 90 s
    assert progress_text(0.5, 1.0, 7.0) == "50 %, about 7 s left"
    assert progress_text(0, 10, 3.0) == "0 %"
    assert progress_text(10, 10, 3.0) == progress_text(0, 0, 3.0) == "100 %"


def test_without_a_terminal_a_line_is_printed_every_tenth(capsys):
    with bar("cross-checking") as told:
        for done in range(1, 201):
            told(0.1 * done, 20.0)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert [line.split()[:2] for line in lines] == [["cross-checking:", f"{10 * i}"] for i in range(1, 11)]
    assert lines[-1] == "cross-checking: 100 %"


@pytest.mark.parametrize("steps", [[], [(1, 3), (3, 3)]])
def test_few_steps_print_a_line_each(capsys, steps):
    with bar("working") as told:
        for done, of in steps:
            told(done, of)
    assert len(capsys.readouterr().err.splitlines()) == len(steps)
