"""Many processes: two cells at once give the numbers of one alone, and two processes can share one cell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.distributed_cell import spec
from support.small_runs import digits_spec, same_numbers

from focalcal.experiments.executors.local import LocalExecutor
from focalcal.experiments.grid import run_grid
from focalcal.experiments.run import run_spec
from focalcal.results import Store

TESTS = Path(__file__).parents[1]
TOLERANCE = 1e-4  # as stated in tests/training/test_distributed.py


def test_parallel_jobs_change_no_number(tmp_path):
    specs = [digits_spec(seed=seed) for seed in range(3)]
    store = Store(tmp_path / "grid")
    outcome = run_grid(specs, store, executor=LocalExecutor(2))
    assert outcome.done == tuple(one.key for one in specs), store.failures()
    alone = Store(tmp_path / "alone")
    for one in specs:
        assert same_numbers(store.run(one.key), run_spec(one, alone))


@pytest.mark.slow
def test_two_processes_share_a_cell(tmp_path):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    script = [str(TESTS / "support" / "distributed_cell.py"), str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    done = subprocess.run([*launcher, *script], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    both = Store(tmp_path / "store").run(spec().key)
    assert both.record["provenance"]["machine"]["processes"] == 2
    assert (tmp_path / "rank-0.txt").read_text() == f"{both.key} stored already stored"
    assert (tmp_path / "rank-1.txt").read_text() == f"{both.key} "  # the second is not asked how far they are
    one = run_spec(spec(), Store(tmp_path / "one"))
    for split in ("train", "val", "test"):
        for name in ("error", "nll", "brier"):
            assert both.metrics(split)[name] == pytest.approx(one.metrics(split)[name], abs=TOLERANCE)
