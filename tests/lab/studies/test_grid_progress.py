from support.stored_runs import spec

from focalcal.lab.studies.events import Examined, Failed, Finished, Progress, Started
from focalcal.lab.studies.grid_progress import GridProgress

CELLS = [spec(seed) for seed in range(4)]


def test_events_add_up():
    now = [100.0]
    progress = GridProgress(clock=lambda: now[0])
    assert progress.seconds_left is None
    progress(Examined(CELLS))
    for cell in CELLS[:2]:
        progress(Started(cell))
    assert [cell.note for cell in progress.running.values()] == ["loading", "loading"]
    progress(Progress(CELLS[0].key, 1, 2, "epoch 1 of 2"))
    now[0] = 110.0
    assert progress.done == 0.5
    assert progress.seconds_left == 70.0  # half a cell in ten seconds, three and a half are left
    progress(Finished(CELLS[0], 20.0))
    progress(Failed(CELLS[1], "error", "x"))
    assert (progress.ended, progress.done, progress.running) == (2, 2, {})
    progress(Examined(CELLS[:1]))  # another round
    assert progress.cells == 3
    progress(Started(CELLS[0]))
    progress(Finished(CELLS[0], 1.0))
    assert progress.seconds_left == 0
