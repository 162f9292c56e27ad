"""One cell in as many processes as start this; each writes which run it got.

torchrun --nproc-per-node 2 tests/support/distributed_cell.py FOLDER
"""

import os
import sys
from pathlib import Path

from focalcal.lab.store import Store
from focalcal.lab.studies.run import run_spec
from support.small_runs import digits_spec


def spec():
    """Without dropout, whose draws depend on the number of processes."""
    return digits_spec(model_options={"features": 64, "hidden": (16,)})


if __name__ == "__main__":
    root = Path(sys.argv[1])
    told = []
    found = run_spec(spec(), Store(root / "store"), report=told.append)
    again = run_spec(spec(), Store(root / "store"), report=told.append)
    assert again.path == found.path
    (root / f"rank-{os.environ['RANK']}.txt").write_text(f"{found.key} {' '.join(one.note for one in told[-2:])}")
