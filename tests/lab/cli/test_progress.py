import doctest
import io

import pytest
from rich.console import Console
from support.stored_runs import spec

import focalcal.lab.cli.progress
from focalcal.lab.cli.progress import bar, grid_display, progress_text
from focalcal.lab.studies import events

NAMES = {spec(seed).key: f"newsgroups_19997/gp_cnn dual_focal gamma=3 seed {seed}" for seed in range(3)}


def test_docstring_examples():
    assert doctest.testmod(focalcal.lab.cli.progress) == doctest.TestResults(failed=0, attempted=2)


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


@pytest.fixture
def terminal(monkeypatch):
    """A console of 60 columns, instead of the one on stderr."""
    console = Console(width=60, file=io.StringIO(), force_terminal=True, color_system=None)
    monkeypatch.setattr("rich.console.Console", lambda **_: console)
    return console


def drawn(display):
    paper = Console(width=60, file=io.StringIO())
    paper.print(display._bars.get_renderable())
    return paper.file.getvalue().splitlines()


def test_every_bar_has_one_line_and_the_whole_is_not_cut_off(terminal):
    with grid_display(NAMES) as display:
        display(events.Examined([spec(seed) for seed in range(3)]))
        display(events.Started(spec(0)))
        display(events.Started(spec(1)))
        display(events.Progress(spec(0).key, 30, 60, "predicted cifar10c/gaussian_noise/5"))
        lines = drawn(display)
        assert len(lines) == 3
        assert lines[0].startswith("0 of 3, 16 %, about")
        assert "left" in lines[0]
        assert all(len(line) <= 60 for line in lines)
        display(events.Finished(spec(0), 1.25))
        display(events.Failed(spec(1), "error", "no [bold]luck[/bold]"))
        lines = drawn(display)
        assert len(lines) == 1
        assert lines[0].startswith("2 of 3, 66 %")
    printed = terminal.file.getvalue()
    assert f"[1/3] {NAMES[spec(0).key]}: 1.2 s" in printed
    assert f"[2/3] {NAMES[spec(1).key]}: error: no [bold]luck[/bold]" in printed


def test_a_cell_that_was_there_when_the_display_began_has_a_name(terminal):
    with grid_display(NAMES) as display:
        display(events.Examined([spec(0)]))
        display(events.Started(spec(2)))  # removed by another process meanwhile
        assert len(drawn(display)) == 2


def test_a_second_round_is_counted_after_the_first(terminal):
    with grid_display(NAMES) as display:
        display(events.Examined([spec(0)]))
        display(events.Finished(spec(0), 1.0))
        display(events.Examined([spec(1), spec(2)]))
        display(events.Finished(spec(1), 1.0))
    assert "[2/3]" in terminal.file.getvalue()
