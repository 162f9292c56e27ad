"""Two processes under torchrun, and one: the same numbers up to the rounding of sums.

Each process computes its share of a batch with other matrix products than one process does, and gradients are added in
another order: differences of 1e-7 per step, which training amplifies. Stated tolerance after three epochs: 1e-4 of the
logits' scale and of each metric; measured when this was written: 2e-7.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.distributed_runs import CASES, SHARES, run, updated
from support.training_runs import read_lines

from focalcal.lab.training.distributed import shard

TESTS = Path(__file__).parents[2]
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    script = [str(TESTS / "support" / "distributed_runs.py"), str(folder)]
    done = subprocess.run(
        [*launcher, *script], capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_two_processes_agree_with_one(two, case, tmp_path):
    one, both = run(case, tmp_path), json.loads((two / f"{case}.json").read_text())
    assert (one["processes"], both["processes"]) == (1, 2)
    assert read_lines(two / case / "epochs.jsonl") == both["epochs"]
    mine, theirs = np.array(one["logits"]), np.array(both["logits"])
    np.testing.assert_allclose(theirs, mine, rtol=0, atol=TOLERANCE * np.abs(mine).max())
    assert len(both["epochs"]) == len(one["epochs"]) == 3
    for ours, other in zip(one["epochs"], both["epochs"], strict=True):
        assert other["train"] == pytest.approx(ours["train"], abs=TOLERANCE)
        for split in ("val", "test"):
            smooth = ("loss", "nll", "error", "brier")  # bins make jumps of rounding errors
            assert [other[split][name] for name in smooth] == pytest.approx(
                [ours[split][name] for name in smooth], abs=TOLERANCE
            )
        if case == "adafocal":
            assert other["gammas"] == pytest.approx(ours["gammas"], abs=TOLERANCE)
            assert other["edges"] == pytest.approx(ours["edges"], abs=TOLERANCE)  # no row counts twice


@pytest.mark.slow
@pytest.mark.parametrize("case", SHARES)
def test_adafocal_is_updated_from_the_rows_of_all_processes(two, case):
    first, second = (json.loads((two / f"adafocal-{rank}.json").read_text())[case] for rank in range(2))
    assert first == second
    whole = updated(slice(0, 101))
    assert len(set(whole["gammas"])) == 7  # moved, and apart
    for name, values in whole.items():
        np.testing.assert_allclose(first[name], values, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("count", "processes"), [(64, 2), (53, 2), (53, 4), (3, 4)])
def test_shares_make_up_the_batch(count, processes):
    shares = [list(range(count))[shard(count, rank, processes)] for rank in range(processes)]
    assert [row for share in shares for row in share] == list(range(count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
