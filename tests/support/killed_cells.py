"""Kill a run at many moments with SIGKILL, run it again each time; a program, because it has to fork before training.

    python killed_cells.py FOLDER MOMENTS

A moment is a number of calls of Python functions, evenly spaced over those of a whole run, so that some lie in the
loop, some in the writing of a checkpoint, and some in the storing. Prints a line of JSON: for each moment whether the
child was killed, and whether what was stored in the end equals the numbers of the run that nobody disturbed.
"""

import importlib
import json
import os
import signal
import sys
from pathlib import Path

from focalcal.lab.store import Store
from focalcal.lab.studies.run import run_spec
from support.small_runs import digits_spec, same_numbers

for slow in ("sklearn.datasets", "sklearn.model_selection", "torch._dynamo"):  # once, rather than in every child
    importlib.import_module(slow)


def in_child(work):
    """The exit status of a forked process that does `work`."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def run(folder, *, kill_at=None, count_in=None):
    calls = 0

    def profile(frame, event, argument):
        nonlocal calls
        calls += event == "call"
        if calls == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    spec, store = digits_spec("adafocal"), Store(folder)
    sys.setprofile(profile)
    run_spec(spec, store, checkpoint_seconds=0)
    sys.setprofile(None)
    if count_in is not None:
        count_in.write_text(str(calls))


def main(folder, moments):
    whole = folder / "whole"
    assert in_child(lambda: run(whole, count_in=folder / "calls.txt")) == 0
    calls = int((folder / "calls.txt").read_text())
    key = digits_spec("adafocal").key
    expected = Store(whole).run(key)
    found = []
    for number in range(moments):
        target = folder / f"killed-{number}"
        kill_at = max(1, calls * (2 * number + 1) // (2 * moments))
        killed = in_child(lambda at=kill_at, to=target: run(to, kill_at=at)) == signal.SIGKILL
        there = Store(target).has(key)
        resumed = in_child(lambda to=target: run(to)) == 0
        equal = resumed and same_numbers(Store(target).run(key), expected)
        left = sorted(os.listdir(target / "work"))
        found.append({"killed": killed, "there": there, "equal": equal, "left": left})
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
