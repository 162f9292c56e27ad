"""Two processes under torchrun, and one: the same numbers up to the rounding of sums.

Each process computes its share of a batch with other matrix products than one process does, and gradients are added in
another order: differences of 1e-7 a step, which training amplifies. Stated tolerance after three epochs: 1e-4 of the
logits' scale and of each metric; measured when this was written: 2e-7.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from distributed_runs import CASES, run
from training_runs import read_lines

TESTS = Path(__file__).parents[1]
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    script = [str(TESTS / "distributed_runs.py"), str(folder)]
    done = subprocess.run(
        [*launcher, *script], capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


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
