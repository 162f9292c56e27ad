"""The live display, drawn as in a terminal of a given width."""

import io

import pytest
from rich.console import Console
from support.stored_runs import spec

from focalcal.cli import grid_display
from focalcal.experiments import events

NAMES = {spec(seed).key: f"newsgroups_19997/gp_cnn dual_focal gamma=3 seed {seed}" for seed in range(3)}


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
    with grid_display.grid_display(NAMES) as display:
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
    with grid_display.grid_display(NAMES) as display:
        display(events.Examined([spec(0)]))
        display(events.Started(spec(2)))  # removed by another process meanwhile
        assert len(drawn(display)) == 2


def test_a_second_round_is_counted_after_the_first(terminal):
    with grid_display.grid_display(NAMES) as display:
        display(events.Examined([spec(0)]))
        display(events.Finished(spec(0), 1.0))
        display(events.Examined([spec(1), spec(2)]))
        display(events.Finished(spec(1), 1.0))
    assert "[2/3]" in terminal.file.getvalue()
